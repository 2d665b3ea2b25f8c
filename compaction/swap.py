"""The stage that merges finished files, and names the inputs for removal, now or later."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import BinaryIO

import pyarrow as pa

from compaction import parquet
from compaction.inputs import signature_of
from compaction.record_wise import RecordWiseFileCompactor
from filesink.api import EpochContext, PreCommitStage, Prepared
from filesink.committables import Committable, HeldFile, PendingFile, ReplacedFile, SupersededFile
from filesink.errors import CompactionError, ConfigError, StorageError
from filesink.file_format import BulkFormat, FileFormat, RowFormat, code_of
from filesink.ledger import ledger_ids, settle
from filesink.merging import count_merged
from filesink.naming import HiddenName, join, new_part_id, sink_tag
from filesink.storage.api import Output, Store
from formats.errors import FormatError
from formats.parquet import ParquetWriterFactory

log = logging.getLogger("filesink")

_COPY = 1 << 20  # bytes at a time
#: Of the formats that filesink has; other suffixes are the user's own.
_EXTENSIONS = frozenset(
    {".parquet", ".orc", ".avro", ".arrow", ".seq", ".xml", ".xlsx", ".json", ".csv"}
    | {".gz", ".zst", ".lz4", ".bz2", ".xz", ".sz"}
)
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
class CompactionPlan:
    """What ``compact`` would do now. Sizes in bytes.

    Attributes:
        groups: the files of each become one.
        expired: files that were merged by an earlier call and may be removed now.
        waiting: those that readers may still need.
    """

    groups: tuple[Group, ...]
    expired: tuple[SupersededFile, ...] = ()
    waiting: tuple[SupersededFile, ...] = ()

    @property
    def files(self) -> int:
        """Files that would be merged."""
        return sum(len(group.files) for group in self.groups)

    @property
    def bytes(self) -> int:
        """Their size together."""
        return sum(file.size for group in self.groups for file in group.files)


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
        return _open(self.store, self.file)


class Swap(PreCommitStage[HeldFile, Committable]):
    """Merges finished files.

    Args:
        open_store: where they are; opened for each merge, since several may run at a time.
        form: of all of them.
        plan: what is to be done at a moment, in milliseconds since 1970 UTC; asked once per epoch.
        grace_ms: how long inputs stay beside what they are merged into.
    """

    def __init__(
        self,
        open_store: Callable[[], Store],
        form: FileFormat,
        *,
        plan: Callable[[int], CompactionPlan],
        grace_ms: int,
    ) -> None:
        _check(form)
        self._open_store = open_store
        self._form = form
        self._ask = plan
        self._grace_ms = grace_ms
        self._plan = CompactionPlan(groups=())

    def is_due(self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]) -> bool:
        """Whether there is anything to merge or to remove."""
        del prepared
        self._plan = self._ask(epoch.now_ms)
        return bool(self._plan.groups or self._plan.expired)

    def prepare(
        self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]
    ) -> Prepared[HeldFile, Committable]:
        """Merge, and say of every file that was merged, now or earlier, what becomes of it."""
        store = self._open_store()
        settle(store, ledger_ids(store))
        made = self._merge(epoch)
        # ``superseded.outstanding`` adds the time from here to the end of the epoch, merge included.
        inputs = self._inputs(made, until_ms=epoch.now_ms + self._grace_ms)
        return Prepared([*prepared.committables, *made, *inputs], prepared.states)

    def _merge(self, epoch: EpochContext) -> list[PendingFile]:
        """One file for each group of the plan."""
        start, groups = epoch.clock.now_ms(), self._plan.groups
        finished: list[str] = []
        try:
            made = epoch.runner.run(partial(self._merged, epoch, finished), groups)
        except BaseException:  # nothing names them, and who calls again makes others
            self._discard(finished)
            raise
        inputs = [file.size for group in groups for file in group.files]
        outputs = [file.size for file in made]
        count_merged(epoch, inputs=inputs, outputs=outputs, taken_ms=epoch.clock.now_ms() - start)
        return made

    def _discard(self, paths: Sequence[str]) -> None:
        store = self._open_store()
        try:
            for path in paths:
                store.discard(path)
        except StorageError as error:  # that of the merge is the one to be raised; what stays is swept later
            log.warning("discarding what a compaction has merged failed: %s", error)

    def _inputs(self, made: Sequence[PendingFile], *, until_ms: int) -> list[Committable]:
        """Every file that was merged, now or earlier: what holds its rows, and whether it is to be removed.

        What is removed by this epoch is named as superseded, too: readers may come before it is gone.
        """
        merged = [
            SupersededFile(
                path=file.path, size=file.size, version=file.version, by=target.target, until_ms=until_ms
            )
            for group, target in zip(self._plan.groups, made, strict=True)
            for file in group.files
        ]
        by = {file.path: file.by for file in merged}
        earlier = [*self._plan.expired, *self._plan.waiting]
        # What stands for a file may have been merged itself: then both do, until the new one is there.
        earlier += [replace(file, by=by[file.by]) for file in earlier if file.by in by]
        gone = self._plan.expired if self._grace_ms else (*self._plan.expired, *merged)
        return [*{file.path: _removed(file) for file in gone}.values(), *earlier, *merged]

    def _merged(self, epoch: EpochContext, finished: list[str], group: Group) -> PendingFile:
        store, tag = self._open_store(), sink_tag(epoch.sink_id)
        name = f"{group.prefix}-{new_part_id(tag, epoch.slot, epoch.ids)}-0{group.suffix}"
        hidden = HiddenName(
            target=f"{group.prefix}-merged", tag=tag, slot=epoch.slot, attempt=epoch.ids.uuid()
        )
        target = join(group.bucket, name)
        output = store.create(join(group.bucket, str(hidden)), target=target)
        try:
            rows = self._write(store, group, output)
            staged = output.close()
        except BaseException:  # the program may be stopped; what is left has a name of ours and is swept
            output.discard()
            raise
        finished.append(staged.path)
        store.sync()
        return PendingFile(bucket=group.bucket, target=target, staged=staged, rows=rows, size=staged.size)

    def _write(self, store: Store, group: Group, output: Output) -> int:
        _check_suffix(group, self._form)
        if isinstance(self._form, RowFormat):
            return _joined(store, group, output)
        inputs = [self._input(store, file) for file in group.files]
        rows = RecordWiseFileCompactor().rewrite(inputs, output, self._form)
        expected = sum(file.rows for file in inputs)
        if rows != expected:
            raise CompactionError(
                f"merging {len(inputs)} files of '{group.bucket}' made {rows} records of {expected}; nothing "
                "was changed. Correct the format",
                code="ROWS",
            )
        return rows

    def _input(self, store: Store, file: FinishedFile) -> _FinishedInput:
        """Its schema and number of records: from the footer of a Parquet file, else by reading it once."""
        code = code_of(self._form)
        with _open(store, file) as stream:
            try:
                if isinstance(code, ParquetWriterFactory) and code.encryption is None:
                    signature, rows = parquet.describe(stream, file.size)
                else:
                    reader = code.open_reader(stream)
                    rows = sum(batch.num_rows for batch in reader)
                    signature = signature_of(reader.schema)
            except FormatError as error:
                raise CompactionError(
                    f"'{file.path}' could not be read back: {error.message}. Nothing was changed; pass the "
                    "format that it was written with",
                    code="INPUT",
                ) from error
        return _FinishedInput(store=store, file=file, signature=signature, rows=rows)


def _joined(store: Store, group: Group, output: Output) -> int:
    for file in group.files:
        with _open(store, file) as stream:
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


def _open(store: Store, file: FinishedFile) -> BinaryIO:
    try:
        return store.open_input(file.path)
    except FileNotFoundError as error:
        raise CompactionError(
            f"'{file.path}' was removed after it was listed. Nothing was changed by this call; try again",
            code="GONE",
        ) from error


def _removed(file: SupersededFile) -> ReplacedFile:
    return ReplacedFile(path=file.path, size=file.size, version=file.version)


def _check_suffix(group: Group, form: FileFormat) -> None:
    """Refuse files that are named as those of another format: joined, they would be no files at all."""
    own = code_of(form).extension
    if own and group.suffix.endswith(own):
        return
    if group.suffix[group.suffix.rfind(".") :] in _EXTENSIONS:
        raise CompactionError(
            f"files of '{group.bucket}' are named '{group.suffix}', as {type(code_of(form)).__name__} names "
            "none. Nothing was changed; pass the format that they were written with",
            code="FORMAT",
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
