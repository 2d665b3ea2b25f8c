"""``SparkMetadataExport``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from filesink.errors import ExportError
from filesink.exports.api import Exporter
from filesink.exports.listed import not_exportable, step, turns
from filesink.exports.spark_metadata.log import DIRECTORY, Head, SparkLog, is_compact, next_compact, status
from filesink.ports import Clock
from filesink.sink_directory.beside import remove_empty, store_beside
from filesink.sink_directory.directory import SinkDirectory
from filesink.sink_directory.live_files import LiveFiles
from filesink.system import SystemClock

_SCHEMES: Final = {"s3": "s3a", "s3a": "s3a", "hdfs": "hdfs", "abfss": "abfss"}


class SparkMetadataExport(Exporter):
    """Keeps the log of Spark's own file sink in ``_spark_metadata`` of the path.

    ``spark.read`` and ``spark.readStream`` on the path then read the files of one version, natively and
    without listing. They read nothing that was not exported: see ``drop`` for the end of the
    export. Names are absolute; a path that was moved needs its log made anew.

    Args:
        clock: tells when entries were made.
    """

    name = "spark-metadata"

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()

    def version(self, directory: SinkDirectory) -> int | None:
        """See ``Exporter.version``."""
        return self._log(directory).head().version

    def bring_to(self, directory: SinkDirectory, version: int) -> None:
        """See ``Exporter.bring_to``."""
        log = self._log(directory)
        for _ in turns(directory, self.name):
            head = log.head()
            if head.version is not None and head.version >= version:
                return
            now_ms = self._clock.now_ms()
            number, files = self._entry(directory, head, version)
            if log.put(number, version, lines=self._lines(directory, files, now_ms), now_ms=now_ms):
                if is_compact(number):
                    log.remove_before(number)
                return

    def named(self, directory: SinkDirectory) -> set[str]:
        """See ``Exporter.named``."""
        return self._log(directory).files()

    def drop(self, directory: SinkDirectory) -> None:
        """Remove the log; files stay, and Spark lists the path again. For the end of the export.

        Raises:
            ExportError: ``FOREIGN_TARGET``, ``CHANGED_TARGET``; nothing was removed. ``NO_DROP``, the
                directory has to be removed by hand: an empty one hides all files from Spark.
        """
        self._log(directory).drop()
        if not remove_empty(directory, DIRECTORY):
            raise ExportError(
                f"the log at '{directory.path}/{DIRECTORY}' is removed, but not the directory, which hides "
                "all files from Spark: remove it by hand",
                code="NO_DROP",
            )

    def _entry(self, directory: SinkDirectory, head: Head, version: int) -> tuple[int, LiveFiles]:
        """Number and files of the next entry: what came, or everything if it is a compact one."""
        number = head.number + 1
        found = step(directory, head.version, version, set)
        if is_compact(number) or found.removed or (found.adopts and head.version is not None):
            return next_compact(number), directory.snapshot(version).files
        return number, found.added

    def _lines(self, directory: SinkDirectory, files: LiveFiles, now_ms: int) -> Iterator[str]:
        uri = self._uri(directory)
        columns: dict[str, list[Any]] = files.to_arrow().select(["path", "size"]).to_pydict()
        for path, size in zip(columns["path"], columns["size"], strict=True):
            yield status(f"{uri}/{quote(path)}", size, now_ms=now_ms)

    def _log(self, directory: SinkDirectory) -> SparkLog:
        store, path_id = store_beside(directory), directory.inventory_id
        return SparkLog(store, path_id=path_id, uri=self._uri(directory), path=directory.path)

    def _uri(self, directory: SinkDirectory) -> str:
        """The path as Spark spells it."""
        scheme, separator, rest = directory.path.partition("://")
        if not separator:
            return Path(directory.path).absolute().as_uri().rstrip("/")
        if scheme not in _SCHEMES:
            raise not_exportable(directory, self.name, f"Spark has no paths of '{scheme}://'")
        return f"{_SCHEMES[scheme]}://{quote(rest)}".rstrip("/")
