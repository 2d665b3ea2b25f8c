"""The data source with a store that breaks where a marker file says so, and that notes its aborts."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from filesink.data_source.source import FileSinkDataSource
from filesink.data_source.write import DataSourceWrite
from filesink.data_source.writers import StreamWriter
from filesink.errors import CommitConflictError
from filesink.storage.faulty import Fault, FaultyStore, Moment

if TYPE_CHECKING:
    from collections.abc import Callable

    from filesink.storage.api import Store


@dataclass(frozen=True)
class BreakableAddress:
    """Opens the store; ``publish`` fails while ``<base>.no-publish`` exists, ``sync`` kills at ``.kill``."""

    address: Callable[[], Store]
    base: str

    def __call__(self) -> Store:
        return FaultyStore(self.address(), self._plan)

    def _plan(self, operation: str, path: str) -> Fault | None:
        del path
        if operation == "publish" and Path(self.base + ".no-publish").exists():
            note(self.base, "publish")
            failure = CommitConflictError("another file stands there", code="CONFLICT")
            return Fault(moment=Moment.BEFORE, error=failure)
        if operation == "sync" and Path(self.base + ".kill").exists():
            note(self.base, "kill")
            os._exit(3)
        return None


class BreakableDataSource(FileSinkDataSource):
    """``format("breakable")``."""

    format_name = "breakable"

    def open_write(self, options, schema) -> DataSourceWrite:
        write = super().open_write(options, schema)
        breakable = BreakableAddress(write.sink.address, options.builder.base_path)
        return replace(write, sink=replace(write.sink, address=breakable))

    def streamWriter(self, schema, overwrite) -> StreamWriter:  # noqa: N802
        super().streamWriter(schema, overwrite)
        from filesink.data_source.options import parse_options

        return NotingStreamWriter(self.open_write(parse_options(self.options), schema))


class NotingStreamWriter(StreamWriter):
    """Leaves a note of each abort."""

    def abort(self, messages, batchId) -> None:  # noqa: N803
        note(self._write.sink.address.base, "abort")
        super().abort(messages, batchId)


def note(base: str, what: str) -> None:
    """Add a line with the process id."""
    with Path(base + ".notes").open("a") as notes:
        notes.write(f"{what} {os.getpid()}\n")


def noted(base: Path) -> list[list[str]]:
    """What was noted, in order, with the process ids."""
    path = Path(f"{base}.notes")
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []
