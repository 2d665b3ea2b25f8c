"""How many of SeaTunnel's own job files are read, planned and run: a table for docs/jobs.md.

    git clone https://github.com/apache/seatunnel /tmp/seatunnel
    python benchmarks/seatunnel_jobs.py /tmp/seatunnel --run local --run s3

Takes the files of ``seatunnel-e2e/seatunnel-connector-v2-e2e/connector-file-*``. Those that run
are not changed, but for paths and addresses: what they read and write lies below a directory of this run, or
in a server of its own. Nothing of SeaTunnel is kept.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import sys
import tarfile
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from filesink.errors import FilesinkError
from filesink.jobs import Jobs, RunOptions, plan
from filesink.jobs.text.read import read
from filesink.jobs.text.variables import Variables

ROOT = Path("seatunnel-e2e/seatunnel-connector-v2-e2e")
VARIABLES = {"ftpHost": "ftp.example"}
#: Where SeaTunnel's tests put their data, below the directory that is read.
DATA = {
    "json/e2e.json": ("json/name=tyrantlucifer/hobby=coding/e2e.json",),
    "json/e2e_gbk.json": ("encoding/json/e2e_gbk.json",),
    "text/e2e.txt": ("text/name=tyrantlucifer/hobby=coding/e2e.txt",),
    "text/e2e_gbk.txt": ("encoding/text/e2e_gbk.txt",),
    "text/e2e_delimiter.txt": ("text_delimiter/e2e.txt",),
    "text/e2e_time_format.txt": ("text_time_format/e2e.txt",),
    "xml/e2e.xml": ("xml/e2e.xml",),
    "excel/e2e.xlsx": (
        "excel/name=tyrantlucifer/hobby=coding/e2e.xlsx",
        "excel_filter/name=tyrantlucifer/hobby=coding/e2e_filter.xlsx",
    ),
    "orc/e2e.orc": ("orc/name=tyrantlucifer/hobby=coding/e2e.orc",),
    "orc/orc_for_cast.orc": ("orc_cast/e2e.orc",),
    "parquet/e2e.parquet": ("parquet/name=tyrantlucifer/hobby=coding/e2e.parquet",),
}
#: Archives that its tests make: which file lies in them, and how often.
ARCHIVES = {
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
}


@dataclass(frozen=True, kw_only=True)
class Result:
    """How far a job file came, and why no further."""

    connector: str
    file: str
    reached: str
    reason: str = ""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", type=Path, help="a checkout of apache/seatunnel")
    parser.add_argument("--run", action="append", choices=("local", "s3"), default=[], help="run these, too")
    parser.add_argument("--only", default="", help="files whose names hold this")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        places = {name: stack.enter_context(place(name, given.path, Path(directory))) for name in given.run}
        results = [
            result(file, places, Path(directory))
            for file in sorted((given.path / ROOT).glob("connector-file-*/src/test/resources/**/*.conf"))
            if given.only in file.name
        ]
    show(results)


def result(file: Path, places: Mapping[str, Mapping[str, str]], directory: Path) -> Result:
    """How far one comes."""
    connector = next(part for part in file.parts if part.startswith("connector-file-")).split("-")[2]
    try:
        read(file, Variables(given=VARIABLES))
    except FilesinkError as error:
        return Result(connector=connector, file=file.name, reached="none", reason=error.message)
    try:
        plan(file, variables=VARIABLES, inline_secrets=True)
    except FilesinkError as error:
        reason = error.message.partition(".conf:")[2]
        return Result(connector=connector, file=file.name, reached="refused", reason=reason)
    if connector not in places:
        return Result(connector=connector, file=file.name, reached="planned")
    reason = run(file, places[connector], directory)
    return Result(connector=connector, file=file.name, reached="planned" if reason else "run", reason=reason)


def run(file: Path, moved: Mapping[str, str], directory: Path) -> str:
    """Run it; why it failed."""
    text = re.sub("|".join(map(re.escape, moved)), lambda found: moved[found[0]], file.read_text())
    copy = directory / file.name
    copy.write_text(text)
    begin = time.monotonic()
    options = RunOptions(master="local[2]", say=lambda _: None)
    try:
        info = Jobs(directory / "jobs").run(copy, inline_secrets=True, options=options)
    except FilesinkError as error:
        return error.message
    print(
        f"{time.monotonic() - begin:6.1f} s {info.state} {file.name} {info.error}",
        file=sys.stderr,
        flush=True,
    )
    return "" if info.state == "FINISHED" else info.error


@contextlib.contextmanager
def place(name: str, checkout: Path, directory: Path) -> Iterator[Mapping[str, str]]:
    """Data for the files of a connector, and what their paths and addresses become."""
    data = checkout / ROOT / "connector-file-local-e2e" / "src" / "test" / "resources"
    if name == "local":
        for file, targets in DATA.items():
            for target in targets:
                copied = directory / "read" / target
                copied.parent.mkdir(parents=True, exist_ok=True)
                copied.write_bytes((data / file).read_bytes())
        for target, (file, times) in ARCHIVES.items():
            archived = directory / "read" / target
            archived.parent.mkdir(parents=True, exist_ok=True)
            archived.write_bytes(archive(target, (data / file).read_bytes(), times))
        (directory / "written" / "fake_empty").mkdir(parents=True)
        yield {'"/seatunnel/read': f'"{directory}/read', '"/tmp/': f'"{directory}/written/'}
        return
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    try:
        client = boto3.client(
            "s3",
            endpoint_url=address,
            aws_access_key_id="x",
            aws_secret_access_key="x",  # noqa: S106 - of a server of our own
            region_name="us-east-1",
        )
        client.create_bucket(Bucket="ws-package")
        for file, targets in DATA.items():
            for target in targets:
                key = f"test/seatunnel/read/{target}"
                client.put_object(Bucket="ws-package", Key=key, Body=(data / file).read_bytes())
        for target, (file, times) in ARCHIVES.items():
            body = archive(target, (data / file).read_bytes(), times)
            client.put_object(Bucket="ws-package", Key=f"test/seatunnel/read/{target}", Body=body)
        client.put_object(Bucket="ws-package", Key="tmp/fake_empty/", Body=b"")
        yield {"s3.cn-north-1.amazonaws.com.cn": address}
    finally:
        server.stop()


def archive(name: str, content: bytes, times: int) -> bytes:
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


def show(results: list[Result]) -> None:
    """The table, and the reasons."""
    print("| connector | files | read | refused by name | planned | run |\n|---|---|---|---|---|---|")
    for name in [*sorted({one.connector for one in results}), ""]:
        mine = [one for one in results if not name or one.connector == name]
        counts = Counter(one.reached for one in mine)
        planned = counts["planned"] + counts["run"]
        read_ = len(mine) - counts["none"]
        print(
            f"| {name or 'all'} | {len(mine)} | {read_} | {counts['refused']} | {planned} | {counts['run']} |"
        )
    reasons = Counter(
        (one.reached, re.sub(r"^\d+: ", "", re.sub(r"'[^']*/[^']*'", "'…'", one.reason))[:150])
        for one in results
        if one.reason
    )
    for (how, reason), number in reasons.most_common():
        print(f"{number:4} {how}: {reason}")


if __name__ == "__main__":
    main()
