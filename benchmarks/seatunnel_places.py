"""Where SeaTunnel's job files find their data: a directory, buckets, servers of FTP and SFTP."""

from __future__ import annotations

import contextlib
import io
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.servers import KEY, SECRET, ftp, moto, sftp

ROOT = Path("seatunnel-e2e/seatunnel-connector-v2-e2e")
CONNECTORS = ("local", "s3", "oss", "obs", "cos", "ftp", "sftp")
#: Where SeaTunnel's tests put their data, below the directory that is read.
_DATA = {
    "json/e2e.json": ("json/name=tyrantlucifer/hobby=coding/e2e.json",),
    "json/e2e_gbk.json": ("encoding/json/e2e_gbk.json",),
    "text/e2e.txt": ("text/name=tyrantlucifer/hobby=coding/e2e.txt",),
    "text/e2e_gbk.txt": ("encoding/text/e2e_gbk.txt",),
    "text/e2e_delimiter.txt": ("text_delimiter/e2e.txt",),
    "text/e2e_time_format.txt": ("text_time_format/e2e.txt",),
    "xml/e2e.xml": ("xml/e2e.xml", "xml_of_sftp/name=tyrantlucifer/hobby=coding/e2e.xml"),
    "excel/e2e.xlsx": (
        "excel/name=tyrantlucifer/hobby=coding/e2e.xlsx",
        "excel_filter/name=tyrantlucifer/hobby=coding/e2e_filter.xlsx",
    ),
    "orc/e2e.orc": ("orc/name=tyrantlucifer/hobby=coding/e2e.orc",),
    "orc/orc_for_cast.orc": ("orc_cast/e2e.orc",),
    "parquet/e2e.parquet": ("parquet/name=tyrantlucifer/hobby=coding/e2e.parquet",),
}
#: Archives that its tests make: which file lies in them, and how often.
_ARCHIVES = {
    "zip/txt/single/e2e-txt.zip": ("text/e2e.txt", 1),
    "zip/txt/multifile/multiZip.zip": ("text/e2e.txt", 2),
    "tar/txt/single/e2e-txt.tar": ("text/e2e.txt", 1),
    "tar/txt/multifile/multiTar.tar": ("text/e2e.txt", 2),
    "tar_gz/txt/single/e2e-txt.tar.gz": ("text/e2e.txt", 1),
    "tar_gz/txt/multifile/multiTarGz.tar.gz": ("text/e2e.txt", 2),
    "zip/json/single/e2e-json.zip": ("json/e2e.json", 1),
    "zip/json/multifile/multiJson.zip": ("json/e2e.json", 2),
    "zip/xml/single/e2e-xml.zip": ("xml/e2e.xml", 1),
    "zip/excel/single/e2e-xlsx.zip": ("excel/e2e.xlsx", 1),
    "zip/excel/multifile/multiZip.zip": ("excel/e2e.xlsx", 2),
    "text_zip/e2e-text.zip": ("text/e2e.txt", 1),
    "zip/text/e2e-text.zip": ("text/e2e.txt", 1),
}


@dataclass(frozen=True, kw_only=True)
class _Buckets:
    """A service that speaks S3, as the files name it.

    Attributes:
        bucket: its name.
        read: where the data lie; those of OBS read what they have written.
        moved: what stands for the service's address, and what becomes of it; those of OBS have no keys.
    """

    bucket: str
    read: str
    moved: Mapping[str, str]


_BUCKETS = {
    "s3": _Buckets(
        bucket="ws-package",
        read="test/seatunnel/read/",
        moved={"s3.cn-north-1.amazonaws.com.cn": "{address}"},
    ),
    "oss": _Buckets(
        bucket="whale-ops",
        read="test/seatunnel/read/",
        moved={"https://oss-accelerate.aliyuncs.com": "{address}"},
    ),
    "obs": _Buckets(
        bucket="obs-bucket-name",
        read="",
        moved={
            "obs.xxxxxx.myhuaweicloud.com": "{address}",
            "obs://dc-for-test/seatunnel-test": "obs://obs-bucket-name",
            'access_key = ""': f'access_key = "{KEY}"',
            'access_secret = ""': f'access_secret = "{SECRET}"',
        },
    ),
    "cos": _Buckets(
        bucket="seatunnel-test",
        read="read/",
        moved={'region = "ap-chengdu"': 'region = "ap-chengdu", endpoint = "{address}"'},
    ),
}
_SERVERS = {"ftp": (ftp, "21"), "sftp": (sftp, "22")}


@contextlib.contextmanager
def place(connector: str, checkout: Path, directory: Path) -> Iterator[Mapping[str, str]]:
    """Data for the files of a connector, and what their paths and addresses become."""
    data = checkout / ROOT / "connector-file-local-e2e" / "src" / "test" / "resources"
    if connector == "local":
        _fill(directory / "read", data)
        (directory / "written" / "fake_empty").mkdir(parents=True)
        yield {'"/seatunnel/read': f'"{directory}/read', '"/tmp/': f'"{directory}/written/'}
    elif connector in _BUCKETS:
        with _buckets(_BUCKETS[connector], data, directory) as moved:
            yield moved
    else:
        root = directory / connector
        _fill(root / "tmp" / "seatunnel" / "read", data)
        server, port = _SERVERS[connector]
        with server(root, directory) as taken:
            yield {
                f'host = "{connector}"': 'host = "127.0.0.1"',
                f"port = {port}": f"port = {taken}",
                "user = seatunnel": f"user = {KEY}",
                "password = pass": f"password = {SECRET}",
                "tmp/seatunnel/read/xml": "tmp/seatunnel/read/xml_of_sftp",
            }


@contextlib.contextmanager
def _buckets(given: _Buckets, data: Path, directory: Path) -> Iterator[Mapping[str, str]]:
    with moto(directory) as server:
        client = server.client()
        client.create_bucket(Bucket=given.bucket)
        for target, content in _contents(data) if given.read else ():
            client.put_object(Bucket=given.bucket, Key=given.read + target, Body=content)
        client.put_object(Bucket=given.bucket, Key="tmp/fake_empty/", Body=b"")
        address = server.options["endpoint_url"]
        yield {found: becomes.format(address=address) for found, becomes in given.moved.items()}


def _fill(root: Path, data: Path) -> None:
    for target, content in _contents(data):
        (root / target).parent.mkdir(parents=True, exist_ok=True)
        (root / target).write_bytes(content)


def _contents(data: Path) -> Iterator[tuple[str, bytes]]:
    """Paths below the directory that is read, and what lies there."""
    for file, targets in _DATA.items():
        for target in targets:
            yield target, (data / file).read_bytes()
    for target, (file, times) in _ARCHIVES.items():
        yield target, _archive(target, (data / file).read_bytes(), times)


def _archive(name: str, content: bytes, times: int) -> bytes:
    """An archive, of the kind that its name says, that holds a file so many times."""
    made = io.BytesIO()
    names = [f"{number}/e2e.txt" for number in range(times)]
    if name.endswith(".zip"):
        with zipfile.ZipFile(made, "w") as zipped:
            for one in names:
                zipped.writestr(one, content)
        return made.getvalue()
    with tarfile.open(fileobj=made, mode="w:gz" if name.endswith(".gz") else "w") as tarred:
        for one in names:
            member = tarfile.TarInfo(one)
            member.size = len(content)
            tarred.addfile(member, io.BytesIO(content))
    return made.getvalue()
