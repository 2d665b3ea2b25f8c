"""The stage that merges finished files and names them for removal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow as pa

from compaction.record_wise import RecordWiseFileCompactor
from filesink.api import EpochContext, PreCommitStage, Prepared
from filesink.committables import Committable, HeldFile, PendingFile, ReplacedFile
from filesink.errors import CompactionError, ConfigError
from filesink.file_format import BulkFormat, FileFormat, RowFormat, code_of
from filesink.naming import HiddenName, join, new_part_id, sink_tag
from filesink.storage.api import Output, Store

_COPY = 1 << 20  # bytes at a time
_ANY = pa.schema([("a", pa.string())])


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedFile:
    """A visible file as it was listed. ``size`` in bytes; ``version`` is that of the listing."""

    path: str
    size: int
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Files of one bucket that become one, in this order; it is named as they are."""

    bucket: str
    prefix: str
    suffix: str
    files: tuple[FinishedFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _FinishedInput:
    """A finished file as a compactor reads it; implements ``InputFile``."""

    store: Store
    file: FinishedFile
    signature: str
    rows: int

    @property
    def size(self) -> int:
        return self.file.size

    def open(self) -> BinaryIO:
        return self.store.open_input(self.file.path)


class Swap(PreCommitStage[HeldFile, Committable]):
    """Merges finished files.

    Args:
        store: where they are.
        form: of all of them.
        plan: what is to be merged, asked once per epoch.
    """

    def __init__(self, store: Store, form: FileFormat, *, plan: Callable[[], Sequence[Group]]) -> None:
        _check(form)
        self._store = store
        self._form = form
        self._plan = plan
        self._groups: Sequence[Group] = ()

    def is_due(self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]) -> bool:
        """Whether there is anything to merge."""
        del epoch, prepared
        self._groups = self._plan()
        return bool(self._groups)

    def prepare(
        self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]
    ) -> Prepared[HeldFile, Committable]:
        """Merge, and name the inputs for removal."""
        pending = [self._merged(epoch, group) for group in self._groups]
        self._store.sync()
        replaced = [
            ReplacedFile(path=file.path, size=file.size, version=file.version)
            for group in self._groups
            for file in group.files
        ]
        return Prepared([*prepared.committables, *pending, *replaced], prepared.states)

    def _merged(self, epoch: EpochContext, group: Group) -> PendingFile:
        tag = sink_tag(epoch.sink_id)
        name = f"{group.prefix}-{new_part_id(tag, epoch.slot, epoch.ids)}-0{group.suffix}"
        hidden = HiddenName(
            target=f"{group.prefix}-merged", tag=tag, slot=epoch.slot, attempt=epoch.ids.uuid()
        )
        target = join(group.bucket, name)
        output = self._store.create(join(group.bucket, str(hidden)), target=target)
        try:
            rows = self._write(group, output)
            staged = output.close()
        except BaseException:  # the program may be stopped; what is left has a name of ours and is swept
            output.discard()
            raise
        return PendingFile(bucket=group.bucket, target=target, staged=staged, rows=rows, size=staged.size)

    def _write(self, group: Group, output: Output) -> int:
        if isinstance(self._form, RowFormat):
            return self._join(group, output)
        inputs = [self._input(file) for file in group.files]
        rows = RecordWiseFileCompactor().rewrite(inputs, output, self._form)
        expected = sum(file.rows for file in inputs)
        if rows != expected:
            raise CompactionError(
                f"merging {len(inputs)} files of '{group.bucket}' made {rows} records of {expected}; nothing "
                "was changed. Correct the format",
                code="ROWS",
            )
        return rows

    def _join(self, group: Group, output: Output) -> int:
        for file in group.files:
            with self._store.open_input(file.path) as stream:
                while data := stream.read(_COPY):
                    output.write(data)
        expected = sum(file.size for file in group.files)
        if output.tell() != expected:
            raise CompactionError(
                f"joining {len(group.files)} files of '{group.bucket}' made {output.tell()} bytes of "
                f"{expected}: one was changed meanwhile. Nothing was changed by this call; try again",
                code="SIZE",
            )
        return 0  # not known of files that are not read

    def _input(self, file: FinishedFile) -> _FinishedInput:
        """Its schema and number of records, by reading it once."""
        with self._store.open_input(file.path) as stream:
            reader = code_of(self._form).open_reader(stream)
            rows = sum(batch.num_rows for batch in reader)
            return _FinishedInput(
                store=self._store, file=file, signature=reader.schema.to_string(), rows=rows
            )


def _check(form: FileFormat) -> None:
    """Refuse what cannot be merged without what only a sink's ledger knows."""
    match form:
        case BulkFormat():
            RecordWiseFileCompactor().check(form)
        case RowFormat(encoder=encoder) if encoder.start_part().header(_ANY):
            raise ConfigError(
                f"files of {type(encoder).__name__} begin with a header and cannot be joined afterwards; "
                "use enable_compact(), which knows the headers",
                code="COMPACTION",
            )
        case _:
            pass
