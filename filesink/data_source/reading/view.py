"""Files for Spark's own reader: a small directory of the driver that names them, as a log of Spark's would.

A directory with a log in ``_spark_metadata`` is read as the files that the log names, wherever they lie, and
nothing is listed. So Spark's reader keeps all that it can do, and sees one set of files.

Rules:
1. The view lies in the session's own temporary directory, and goes with the session.
2. Where no file has a directory ``k=v``, Spark must be told to look below; else to look for partitions.
3. Spark looks for partitions from each file upwards, also above the path that was given, up to the first
   directory that is none. What it would understand otherwise than we do is read by our own reader.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from filesink.naming import name_of, parent
from filesink.source.directories import Root, locate
from filesink.source.files import SourceFile
from filesink.system import SystemIds
from formats.api import ReadableFormat
from formats.orc.writer import OrcBulkWriterFactory
from formats.parquet.writer import ParquetWriterFactory

if TYPE_CHECKING:
    from pyspark.sql import DataFrameReader, SparkSession

_HADOOP: Final = {"s3": "s3a"}  # schemes that Hadoop has another name for
_SAFE: Final = "/=!$&'()*+,;@-._~"  # in the path of a URI
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://")


@dataclass(frozen=True, slots=True)
class View:
    """A directory that stands for files; ``has_partitions`` if they have columns in their paths."""

    path: str
    has_partitions: bool


def format_name(code: ReadableFormat) -> str | None:
    """What Spark calls a format that it reads as we do; ``None`` for all others."""
    match code:
        case ParquetWriterFactory(encryption=None):
            return "parquet"
        case OrcBulkWriterFactory():
            return "orc"
        case _:
            return None


def is_reachable(spark: SparkSession, roots: Iterable[Root]) -> bool:
    """Whether Spark reads below ``roots`` by itself: it knows their stores, and nobody gave it options."""
    if not hasattr(spark, "_jsparkSession"):
        return False
    return all(_is_known(spark, root) for root in roots)


def view_of(spark: SparkSession, roots: tuple[Root, ...], files: Sequence[SourceFile]) -> View | None:
    """A view of ``files``; ``None`` if Spark would find other columns in their paths than we do."""
    has_partitions = _has_partitions(roots, files)
    if has_partitions is None:
        return None
    directory = Path(str(spark.sparkContext._temp_dir)) / f"filesink-view-{SystemIds().uuid()}"  # noqa: SLF001
    log = directory / "_spark_metadata"
    log.mkdir(parents=True)
    with (log / "0").open("w", encoding="utf-8") as text:
        text.writelines(_lines(files))
    return View(path=directory.as_uri(), has_partitions=has_partitions)


def read_view(reader: DataFrameReader, view: View) -> Any:
    """The DataFrame of a view, by a reader that has format, schema and options."""
    return reader.option("recursiveFileLookup", str(not view.has_partitions).lower()).load(view.path)


def _is_known(spark: SparkSession, root: Root) -> bool:
    found = _SCHEME.match(root.base)
    if found is None:
        return True
    scheme = _HADOOP.get(found[1], found[1])
    if root.storage_options or scheme not in {"hdfs", "webhdfs", "s3a", "abfss"}:
        return False
    hadoop = spark._jvm.org.apache.hadoop.fs.FileSystem  # type: ignore[union-attr] # noqa: SLF001
    try:
        hadoop.getFileSystemClass(scheme, spark.sparkContext._jsc.hadoopConfiguration())  # noqa: SLF001
    except Exception:  # noqa: BLE001 - Hadoop lacks the class, or one that it needs: then ours reads
        return False
    return True


def _has_partitions(roots: tuple[Root, ...], files: Iterable[SourceFile]) -> bool | None:
    """Whether all files have the same partition columns; ``None`` if it cannot be said so simply."""
    shapes = {_shape(parent(locate(roots, file.path)[1])) for file in files}
    if all("=" not in name for shape in shapes for name in shape):
        return False
    is_plain = len(shapes) == 1 and all(name.endswith("=") for shape in shapes for name in shape)
    is_below_partition = any("=" in name_of(root.base.rstrip("/")) for root in roots)
    return True if is_plain and not is_below_partition else None


def _shape(directory: str) -> tuple[str, ...]:
    """The names of a directory, those of partitions without their values."""
    names = directory.split("/") if directory else []
    return tuple(re.sub(r"=.*", "=", name, flags=re.DOTALL) for name in names)


def _lines(files: Iterable[SourceFile]) -> Iterator[str]:
    yield "v1"
    for file in files:
        value = {
            "path": _uri(file.path),
            "size": file.size,
            "isDir": False,
            "modificationTime": file.mtime_ms,
            "blockReplication": 1,
            "blockSize": 128 << 20,
            "action": "add",
        }
        yield "\n" + json.dumps(value, separators=(",", ":"))


def _uri(path: str) -> str:
    found = _SCHEME.match(path)
    if found is None:
        return "file://" + quote(path, safe=_SAFE)
    host, _, below = path[found.end() :].partition("/")
    return f"{_HADOOP.get(found[1], found[1])}://{host}/{quote(below, safe=_SAFE)}"
