"""``DeltaExport``."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from filesink.arguments import instance_of
from filesink.errors import ConfigError, FilesinkError
from filesink.exports.api import Exporter
from filesink.exports.delta.actions import file_lines, line, metadata, protocol, schema_string
from filesink.exports.delta.log import DIRECTORY, DeltaLog, Head
from filesink.exports.listed import (
    Step,
    columns_of,
    no_such_columns,
    not_exportable,
    partitions_of,
    step,
    turns,
)
from filesink.ports import Clock
from filesink.sink_directory.beside import remove_empty, store_beside
from filesink.sink_directory.directory import SinkDirectory
from filesink.system import SystemClock

log = logging.getLogger("filesink")


class DeltaExport(Exporter):
    """Keeps a log of Delta in ``_delta_log`` of the path, so that readers of Delta see its versions.

    One commit of the table for each export. Compactions do not count as changes of data. Nobody else may
    write to the table: such a write is detected, and exports are refused from then on.

    Args:
        checkpoint_every: after how many commits the log gets a checkpoint, so that readers open it
            faster; ``None`` for never. A checkpoint is a Parquet file, which whoever reads the path as
            ``**/*.parquet`` takes for data.
        storage_options: of ``deltalake``, which makes checkpoints; for a path that is not local.
        clock: tells when commits were made.

    Raises:
        ConfigError: ``BAD_VALUE``.
    """

    name = "delta"

    def __init__(
        self,
        *,
        checkpoint_every: int | None = None,
        storage_options: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._every = _checked(checkpoint_every)
        options = {} if storage_options is None else storage_options
        self._options = dict(instance_of(options, Mapping, name="storage_options"))
        self._clock = clock or SystemClock()
        self._newest: dict[tuple[str, str], int] = {}  # commits that were the newest, by path and its id

    def version(self, directory: SinkDirectory) -> int | None:
        """See ``Exporter.version``."""
        return self._head(directory, _log(directory)).version

    def bring_to(self, directory: SinkDirectory, version: int) -> None:
        """See ``Exporter.bring_to``."""
        table = _log(directory)
        for _ in turns(directory, self.name):
            head = self._head(directory, table)
            if head.version is not None and head.version >= version:
                return
            if table.put(head.number + 1, self._commit(directory, table, head, version)):
                self._checkpoint(directory, head.number + 1)
                return

    def named(self, directory: SinkDirectory) -> set[str]:
        """See ``Exporter.named``."""
        return _log(directory).live()

    def drop(self, directory: SinkDirectory) -> None:
        """Remove the log; files stay. For a table that is not exported any more.

        Raises:
            ExportError: ``FOREIGN_TARGET``, ``CHANGED_TARGET``; nothing was removed.
        """
        _log(directory).drop()
        remove_empty(directory, DIRECTORY)

    def _head(self, directory: SinkDirectory, table: DeltaLog) -> Head:
        key = directory.path, table.app_id
        head = table.head(self._newest.get(key, -1))
        self._newest[key] = head.number
        return head

    def _commit(self, directory: SinkDirectory, table: DeltaLog, head: Head, version: int) -> Iterator[str]:
        found, now_ms = step(directory, head.version, version, table.live), self._clock.now_ms()
        partitions = self._partitions(directory, head, found)
        schemas = head.schemas | {
            name for name in found.added.to_arrow()["schema"].unique().to_pylist() if name
        }
        columns = head.columns
        more: list[str] = []
        if found.adopts or schemas != head.schemas or partitions != head.partitions:
            columns, more = self._table_lines(directory, version, partitions or (), now_ms=now_ms)
        known = {"schemas": sorted(schemas), "columns": columns, "partitions": partitions}
        yield line(
            commitInfo={
                "timestamp": now_ms,
                "operation": "WRITE",
                "operationParameters": {"mode": "Append"},
                "engineInfo": "filesink",
                **table.ours(version, **known),
            }
        )
        yield line(txn={"appId": table.app_id, "version": version, "lastUpdated": now_ms})
        if columns != head.columns:
            yield from more
        yield from file_lines(found, now_ms=now_ms)

    def _table_lines(
        self, directory: SinkDirectory, version: int, partitions: tuple[str, ...], *, now_ms: int
    ) -> tuple[str, list[str]]:
        """What identifies the columns of the table, and the actions that set them."""
        schema = columns_of(directory, version)
        try:
            text = schema_string(schema)
        except FilesinkError:
            raise
        except Exception as error:  # of deltalake, which has no one class for a type that Delta lacks
            raise no_such_columns(directory, self.name, error) from error
        table_id = directory.inventory_id
        lines = [
            line(protocol=protocol(schema)),
            line(metaData=metadata(text, partitions, table_id=table_id, now_ms=now_ms)),
        ]
        return hashlib.sha256(f"{text}{list(partitions)}".encode()).hexdigest()[:16], lines

    def _partitions(self, directory: SinkDirectory, head: Head, found: Step) -> tuple[str, ...] | None:
        partitions = partitions_of(directory, found.added, self.name)
        if partitions is None:
            return head.partitions
        if head.partitions not in (None, partitions):
            here, there = list(head.partitions or ()), list(partitions)
            what = f"its partition columns are {here}, and those of new files {there}"
            raise not_exportable(directory, self.name, what)
        return partitions

    def _checkpoint(self, directory: SinkDirectory, number: int) -> None:
        if self._every is None or (number + 1) % self._every:
            return
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        path = directory.path
        path = path.replace("s3a://", "s3://", 1) if "://" in path else Path(path).absolute().as_uri()
        try:
            DeltaTable(path, storage_options=self._options or None).create_checkpoint()
        except (DeltaError, OSError) as error:  # the commit is there, and readers do without a checkpoint
            log.warning("'%s': no checkpoint of the Delta log was made (%s)", path, type(error).__name__)


def _log(directory: SinkDirectory) -> DeltaLog:
    return DeltaLog(store_beside(directory), app_id=directory.inventory_id, path=directory.path)


def _checked(every: Any) -> int | None:
    if every is None or (isinstance(every, int) and not isinstance(every, bool) and every > 0):
        return every
    raise ConfigError("checkpoint_every must be 1, 2, 3 … or None", code="BAD_VALUE")
