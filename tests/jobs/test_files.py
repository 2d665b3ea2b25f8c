# ruff: noqa: E501 - job files
"""Files of jobs without Spark: where they lie, lines below a header, secrets when they are needed."""

from __future__ import annotations

import gzip
import tarfile
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import filesink
from filesink.errors import JobError
from filesink.jobs.life.secrets import Secrets
from filesink.jobs.life.session import sentence
from filesink.jobs.model.secret import Secret, without_secrets
from filesink.jobs.plans.planned import Job, planned
from filesink.jobs.plugins.files import archives
from filesink.jobs.plugins.files.archives import Archived
from filesink.jobs.plugins.files.headers import CsvBelowHeader
from filesink.jobs.plugins.files.lines import LinesBelowHeader
from filesink.jobs.text.read import read_text
from filesink.jobs.text.variables import Variables
from formats.errors import FormatError
from formats.splitting import Split
from formats.text.line_format import TextLineFormat


class Revealing:
    """As much of a run as places need."""

    def reveal(self, secret: Secret) -> str:
        return f"<{secret.name}>"


def job(text: str) -> Job:
    """The job of a text."""
    return planned(read_text(text, "job.conf", Variables()))


S3 = 'bucket = "s3a://b", access_key = ${env:K}, secret_key = ${env:S}, fs.s3a.endpoint = "h:9000"'
OSS = 'bucket = "oss://b", access_key = ${env:K}, access_secret = ${env:S}, endpoint = "https://h"'
COS = 'bucket = "cosn://b", secret_id = ${env:K}, secret_key = ${env:S}, region = ap'
SERVER = "host = h, port = 21, user = u, password = ${env:P}"


@pytest.mark.parametrize(
    ("connector", "options", "address", "storage"),
    [
        ("LocalFile", "", "/a/b c", {}),
        ("HdfsFile", 'fs.defaultFS = "hdfs://n:8020"', "hdfs://n:8020/a/b c", {}),
        ("S3File", S3, "s3://b/a/b c", {"key": "<K>", "secret": "<S>", "endpoint_url": "https://h:9000"}),
        ("S3File", "bucket = b", "s3://b/a/b c", {}),
        ("OssFile", OSS, "s3://b/a/b c", {"key": "<K>", "secret": "<S>", "endpoint_url": "https://h"}),
        (
            "CosFile",
            COS,
            "s3://b/a/b c",
            {"key": "<K>", "secret": "<S>", "endpoint_url": "https://cos.ap.myqcloud.com"},
        ),
        ("FtpFile", SERVER, "ftp://h:21/a/b c", {"username": "u", "password": "<P>"}),
        ("SftpFile", SERVER, "sftp://h:21/a/b c", {"username": "u", "password": "<P>"}),
    ],
)
def test_places(connector: str, options: str, address: str, storage: dict[str, str]) -> None:
    """Each of SeaTunnel's connectors is a path and the options of a store."""
    text = f'source {{ {connector} {{ path = "/a/b c", file_format_type = orc\n{options} }} }}\nsink {{ Console {{}} }}'
    found: Any = job(text).plugins["source-1"].options
    run: Any = Revealing()
    assert (found.address(found.path), found.storage(run)) == (address, storage)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ("file_format_type = json, compress_codec = lzo", "GPL"),
        ("file_format_type = parquet, compress_codec = lz", "takes the codecs none, snappy"),
        ("file_format_type = xml, encoding = gbk", "always UTF-8"),
        ('partition_dir_expression = "${v0}"', "${k0}=${v0}"),
        ('file_name_expression = "${now}"', "${transactionId}"),
        ("single_file_mode = true", "no counterpart"),
        ("is_enable_transaction = false", "no counterpart"),
        ("schema_save_mode = RECREATE_SCHEMA", "DROP_DATA"),
        ("data_save_mode = CUSTOM_PROCESSING", "APPEND_DATA"),
        ("row_delimiter = x", "\\n"),
        ("file_format_type = text, enable_header_write = true", "text has no header"),
        ("file_format_type = paruqet", "'parquet'"),
        ("file_format_type = orc, exports = [delta]", "take parquet"),
        ("file_format_type = parquet, exports = [dleta]", "'delta'"),
        ("file_format_type = parquet, iceberg { tabel = a.b }", "'table'"),
    ],
)
def test_what_a_sink_cannot_do(options: str, word: str) -> None:
    """Is refused with the line, and with what there is."""
    text = f"source {{ Spark {{ format = rate }} }}\nsink {{ LocalFile {{ path = x\n{options} }} }}"
    with pytest.raises(JobError) as raised:
        job(text)
    assert raised.value.message.startswith("job.conf:")
    assert word in raised.value.message


@pytest.mark.parametrize(
    ("content", "skipped", "lines"),
    [
        (b"head\na\nb\n", 1, ["a", "b"]),
        (b"head\r\na", 1, ["a"]),
        (b"1\n2\n\nx", 2, ["", "x"]),
        (b"head", 1, []),
        (b"head\n", 1, []),
        (b"", 1, []),
        (b"x" * 70_000 + b"\nlast", 1, ["last"]),
    ],
)
def test_lines_below_a_header(content: bytes, skipped: int, lines: list[str]) -> None:
    """The first lines of a file are in no value, however it is split."""
    form = LinesBelowHeader(skipped=skipped)
    assert form.open_reader(BytesIO(content)).read_all()["value"].to_pylist() == lines
    (split,) = form.splits(BytesIO(content), target=1)
    assert split == Split(0, len(content))
    assert form.open_split(BytesIO(content), split).read_all()["value"].to_pylist() == lines


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (b"a,b\n1,x\n2,y\n", [(1, "x"), (2, "y")]),
        (b'\xef\xbb\xbfb,more,"a"\nx,0,1\n', [(1, "x")]),  # by name, wherever they stand
        (b'Number,Text\n1,x\n2,"y\nz"\n', [(1, "x"), (2, "y\nz")]),  # other names: by place
        (b"9,no header\n1,x\n", [(1, "x")]),
        (b"Number\n1\n", [(1, None)]),
        (b"Number,Text\n", []),
        (b"", []),
    ],
)
def test_csv_below_a_header(content: bytes, rows: list[tuple[int, str | None]]) -> None:
    """Columns are those of the schema, by name or by place and never null for their names, however it is split."""
    csv = [filesink.Encoder.csv(",", header) for header in (True, False)]
    form = CsvBelowHeader(named=csv[0], placed=csv[1], delimiter=",", charset="UTF-8")
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    whole = form.open_reader(BytesIO(content), schema=schema).read_all().to_pylist()
    assert [tuple(row.values()) for row in whole] == rows
    splits = form.splits(BytesIO(content), target=3)
    found = [form.open_split(BytesIO(content), one, schema=schema).read_all() for one in splits]
    assert pa.concat_tables(found).to_pylist() == whole


def test_csv_with_more_columns_than_the_schema() -> None:
    """Is an error where they go by place: which of them are meant, nobody knows."""
    csv = [filesink.Encoder.csv(",", header) for header in (True, False)]
    form = CsvBelowHeader(named=csv[0], placed=csv[1], delimiter=",", charset="UTF-8")
    with pytest.raises(FormatError, match="the file has 2 columns, and the schema has 1"):
        form.open_reader(BytesIO(b"x,y\n1,2\n"), schema=pa.schema([("a", pa.int64())])).read_all()


def test_secrets_are_read_when_they_are_needed(tmp_path: Path) -> None:
    """Of the environment and of files, without the line feed at their end."""
    (tmp_path / "token").write_text("hunter2\n")
    secrets = Secrets(environment={"TOKEN": "hunter3"})
    assert secrets.reveal(Secret.of(f"${{file:{tmp_path}/token}}")) == "hunter2"
    assert secrets.reveal(Secret.of("${env:TOKEN}")) == "hunter3"
    assert secrets.reveal(Secret.of("hunter4")) == "hunter4"
    assert "hunter" not in repr(secrets)


@pytest.mark.parametrize("text", ["${env:NONE}", "${file:/none}", "${hadoop:none}", "${env:EMPTY}"])
def test_secrets_that_are_not_there(text: str) -> None:
    """Are named by their references."""
    with pytest.raises(JobError) as raised:
        Secrets(environment={"EMPTY": ""}).reveal(Secret.of(text))
    assert text in raised.value.message


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("jdbc:x://h/d?user=u&password=p&ssl=1", "jdbc:x://h/d?user=u&password=***&ssl=1"),
        ("s3://key:secret@b/x", "s3://***@b/x"),
        ("AccountKey; TOKEN = abc, x", "AccountKey; TOKEN = ***, x"),
        ("/data/tokens/x", "/data/tokens/x"),
    ],
)
def test_addresses_without_secrets(text: str, shown: str) -> None:
    """What looks like one is taken out, and nothing else."""
    assert without_secrets(text) == shown


def test_what_tasks_raise() -> None:
    """An error of ours is told in its words; what Spark says of a task may hold values of records."""
    text = "PythonException: … \nfilesink.errors.DataError: [VALUE] 'x.json': a line is no JSON\n  at java"
    assert sentence(ValueError(text)) == ("'x.json': a line is no JSON", True)
    assert sentence(ValueError("the value hunter2")) == ("ValueError; the log of the driver has more", False)
    told = "hunter2\norg.apache.spark.SparkException: lost\nCaused by: java.net.SocketTimeoutException: 10 s"
    names = "ValueError, SparkException, SocketTimeoutException"
    assert sentence(ValueError(told)) == (f"{names}; the log of the driver has more", False)


def test_sinks_of_two_jobs_have_two_names(tmp_path: Path) -> None:
    """A database or a cluster knows sinks by their uids: those of two jobs of one file differ."""

    class Of(Revealing):
        vertex, directory = "sink-1", str(tmp_path)

        def __init__(self, job: str) -> None:
            self.job = job

    options = {
        "Postgres": 'server = "host=h", table = t',
        "Http": 'url = "http://h/x"',
        "Kafka": 'bootstrap.servers = "h:1", topic = t, kafka.config { sasl.password = ${env:P} }',
    }
    for sink, text in options.items():
        made: Any = job(f"source {{ Spark {{ format = rate }} }}\nsink {{ {sink} {{ {text} }} }}").plugins[
            "sink-1"
        ]
        uids = {made.made(Of(one))._sink.uid for one in ("one", "two")}
        assert uids == {"one-sink-1", "two-sink-1"}


ROWS = [b"1\n2\n", b"3"]


def tarred(files: dict[str, bytes], mode: Any, kind: bytes = tarfile.REGTYPE) -> bytes:
    """A tar of files."""
    made = BytesIO()
    with tarfile.open(fileobj=made, mode=mode) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.type = len(content), kind
            archive.addfile(member, BytesIO(content))
    return made.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    """A zip of files."""
    made = BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


FILES = {
    "a.txt": ROWS[0],
    "b/": b"",
    "b/c.txt.gz": gzip.compress(ROWS[1], mtime=0),
    "__MACOSX/._a.txt": b"no",
}


@pytest.mark.parametrize(
    ("kind", "content", "lines"),
    [
        ("zip", zipped(FILES), ["1", "2", "3"]),
        ("tar", tarred({name: data for name, data in FILES.items() if data}, "w"), ["1", "2", "3"]),
        ("tar_gz", tarred({name: data for name, data in FILES.items() if data}, "w:gz"), ["1", "2", "3"]),
        ("gz", gzip.compress(ROWS[0], mtime=0), ["1", "2"]),
        ("zip", zipped({}), []),
    ],
)
def test_lines_in_archives(kind: Any, content: bytes, lines: list[str]) -> None:
    """All visible files of an archive, one behind the other, compressed once more or not."""
    form = Archived(inner=TextLineFormat(), archive=kind)
    schema = pa.schema([pa.field("value", pa.string())])
    found = form.open_reader(BytesIO(content), schema=schema).read_all()["value"].to_pylist()
    assert found == lines
    assert form.splits(BytesIO(content), target=1) == [Split(0, len(content))]


def test_parquet_in_an_archive_says_its_columns() -> None:
    """A format with a footer needs no schema, in an archive neither."""
    made = BytesIO()
    pq.write_table(pa.table({"id": [1, 2]}), made)
    form = Archived(inner=filesink.ParquetWriterFactory(), archive="zip")
    archive = BytesIO(zipped({"1.parquet": made.getvalue(), "2.parquet": made.getvalue()}))
    assert form.open_reader(archive).read_all().to_pydict() == {"id": [1, 2, 1, 2]}
    with pytest.raises(FormatError, match="holds no file"):
        form.open_reader(BytesIO(zipped({})))


def with_password(content: bytes) -> bytes:
    """A zip that says that its files are encrypted."""
    at = content.index(b"PK\x01\x02") + 8  # the flags of its list of files
    return content[:at] + b"\x01\x00" + content[at + 2 :]


@pytest.mark.parametrize(
    ("kind", "content", "word"),
    [
        ("zip", b"nonsense", "none of its kind"),
        ("zip", zipped(FILES)[:-30], "none of its kind"),
        ("zip", with_password(zipped(FILES)), "password"),
        ("tar", b"nonsense" * 100, "none of its kind"),
        ("tar", tarred({"a": b""}, "w", tarfile.SYMTYPE), "link"),
        ("tar_gz", tarred(FILES, "w"), "none of its kind"),
        ("tar_gz", tarred({"a": bytes(range(256)) * 400}, "w:gz")[:-40], "none of its kind"),
        ("gz", gzip.compress(b"x" * 9999, mtime=0)[:-9], "none of its kind"),
    ],
)
def test_archives_that_are_none(kind: Any, content: bytes, word: str) -> None:
    """Damage, passwords and links are an error of the file, never fewer rows."""
    schema = pa.schema([pa.field("value", pa.string())])
    with pytest.raises(FormatError, match=word) as raised:
        Archived(inner=TextLineFormat(), archive=kind).open_reader(BytesIO(content), schema=schema).read_all()
    assert raised.value.kind == "value"


def test_a_bomb_stops_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some bytes that become many are read up to a limit, and no further."""
    monkeypatch.setattr(archives, "_LARGEST", 1 << 20)
    bomb = zipped({"a.txt": b"\n" * (2 << 20)})
    with pytest.raises(FormatError, match="has more than"):
        Archived(inner=TextLineFormat(), archive="zip").open_reader(
            BytesIO(bomb), schema=pa.schema([pa.field("value", pa.string())])
        ).read_all()
