"""The stage that knows the layout of a path and refuses any other, no matter which sink wrote the files.

Readers take a directory for one table: of one format, of one set of partition columns, and with one type for
each column. Within one chain the ledger sees to that; this is about all chains, and all batch writes.

Rules:
1. Adding or dropping columns does not change the layout. Changing a type does, unless it only widens.
2. The check runs before the tasks, if the engine asks stages then, and just before the epoch is decided.
3. A write that replaces everything may have any layout. Until it is complete, the old layout counts.
4. A path without any file, visible or hidden, may begin anew.
5. A stream checks in its first epoch, and when its columns change: other epochs cost nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import zip_longest
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from filesink.api import EpochContext, PreCommitStage, Prepared
from filesink.errors import SchemaError
from filesink.ledger.identity import EXCLUSIVE
from filesink.ledger.layouts import Layout, Layouts, Noted
from filesink.ledger.ledger import Ledger
from filesink.ledger.sweep import hidden_files, visible
from filesink.naming import OutputFileConfig, sink_tag
from filesink.parts.committables import Committable, HeldFile
from filesink.parts.file_format import FileFormat, check_continues, code_of
from filesink.save_mode import SaveMode
from filesink.storage.api import Store
from formats.arrow import Field
from formats.file_extensions import OF_CODEC

_PATIENCE: Final = 25  # later slots, after which a write that was not decided counts as dead
_CODECS: Final = frozenset(ending.removeprefix(".") for ending in OF_CODEC.values())


class OnOtherLayout(Enum):
    """What to do with a write whose files would not go with those that are there."""

    REFUSE = "refuse"
    ALLOW = "allow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """What of a sink makes its layout.

    Attributes:
        format: of the files.
        names: of the files.
        partitions: see ``Layout``.
        in_files: which columns of an input are in the files.
        on_other: see ``OnOtherLayout``.
    """

    format: FileFormat
    names: OutputFileConfig
    partitions: Sequence[str] | None
    in_files: Callable[[pa.Schema], pa.Schema]
    on_other: OnOtherLayout

    def layout(self, schema: pa.Schema) -> Layout:
        """The layout of files with records of ``schema``."""
        extension = code_of(self.format).extension
        endings = [ending for ending in _endings(extension) if ending not in _CODECS]
        # What others have noted of the columns may be secret.
        columns = [field.remove_metadata() for field in self.in_files(schema)]
        return Layout(
            format=endings[-1] if endings else "",
            suffix=_endings(self.names.suffix(extension))[-1],
            partitions=None if self.partitions is None else tuple(self.partitions),
            columns=pa.schema(columns),
            spelled=tuple(_spelling(name, schema) for name in self.partitions or ()),
        )


class GuardLayout(PreCommitStage[HeldFile, Committable]):
    """Refuses files that do not go with those below the base path, and keeps what is known of these.

    Args:
        store: where the files are.
        open_ledger: of any sink below the base path.
        guarded: the sink.
    """

    def __init__(self, store: Store, open_ledger: Callable[[str], Ledger], guarded: Guarded) -> None:
        self._store = store
        self._open_ledger = open_ledger
        self._guarded = guarded
        self._layouts = Layouts(store)
        self._seen: Noted | None = None  # since this epoch began
        self._settled: pa.Schema | None = None  # columns that were let in by an earlier epoch of this run

    def begin(self, epoch: EpochContext) -> None:
        """Refuse an epoch before its tasks run; see ``PreCommitStage.begin``.

        Raises:
            SchemaError: ``OTHER_LAYOUT``.
        """
        replaces_all = epoch.mode is SaveMode.OVERWRITE or epoch.takes_over
        if epoch.schema is None or epoch.schema == self._settled or replaces_all:
            return
        self._seen = self._layouts.newest()
        self._with(epoch, epoch.schema, self._seen)

    def prepare(
        self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]
    ) -> Prepared[HeldFile, Committable]:
        """Look again, and put on record what is new; see ``PreCommitStage.prepare``."""
        if epoch.schema is not None and epoch.schema != self._settled:
            self._settle(epoch, epoch.schema)
            self._settled = epoch.schema
        return prepared

    def follow(
        self,
        epoch: EpochContext,
        prepared: Prepared[HeldFile, Committable],
        others: Sequence[Sequence[Committable]],
    ) -> Prepared[HeldFile, Committable]:
        """Look again, since another write may have replaced everything; see ``PreCommitStage.follow``."""
        del others
        if epoch.schema is not None:
            self._settle(epoch, epoch.schema)
        return prepared

    def _settle(self, epoch: EpochContext, schema: pa.Schema) -> None:
        while True:
            seen, self._seen = self._seen or self._layouts.newest(), None
            wanted = self._with(epoch, schema, seen)
            if wanted == seen.layouts:
                if self._layouts.is_newest(seen.number):
                    return
            elif self._layouts.put(seen.number + 1, wanted):
                return

    def _with(self, epoch: EpochContext, schema: pa.Schema, seen: Noted) -> tuple[Layout, ...]:
        """The layouts that are to count with this epoch; raises if it may not be."""
        new = self._guarded.layout(schema)
        known, fitting = self._resolved(seen.layouts)
        if epoch.mode is SaveMode.OVERWRITE:
            return self._anew(epoch, new, known)
        for layout in fitting:
            if difference(layout, new, self._guarded.format) is None:
                wider = _widened(layout, new, self._guarded.format)
                return tuple(wider if one is layout else one for one in known)
        if fitting and self._guarded.on_other is OnOtherLayout.ALLOW:
            return known
        if fitting and not self._is_empty(epoch):
            raise self._refusal(fitting[-1], new)
        return (*(one for one in known if one.by), new)

    def _anew(self, epoch: EpochContext, new: Layout, known: Sequence[Layout]) -> tuple[Layout, ...]:
        if tuple(known) == (new,):
            return (new,)
        slots = self._open_ledger(EXCLUSIVE).directory.listing().records
        ours = replace(new, by=epoch.sink_id, since=slots[-1] + 1 if slots else 0)
        others = (one for one in known if not one.by or replace(one, by="", since=0) != new)
        return (ours, *others)

    def _resolved(self, layouts: tuple[Layout, ...]) -> tuple[tuple[Layout, ...], tuple[Layout, ...]]:
        """The layouts that still count or will, and those of them that count already."""
        coming = {layout.by: layout for layout in layouts if layout.by}
        if not coming:
            return layouts, layouts
        ledger = self._open_ledger(EXCLUSIVE)
        first, newest = min(layout.since for layout in coming.values()), -1
        decided: set[str] = set()
        for record in ledger.history.newest_first():
            newest = max(newest, record.slot)
            if record.slot < first:
                break
            if record.files_of not in coming:
                continue
            if ledger.history.is_complete(record):
                waiting = [one for one in layouts if one.by and one.by != record.files_of]
                still = [one for one in waiting if one.by in decided or newest <= one.since + _PATIENCE]
                winner = replace(coming[record.files_of], by="", since=0)
                fitting = [winner, *(one for one in still if one.by in decided)]
                return (*still, winner), tuple(fitting)
            decided.add(record.files_of)
        folded = ledger.directory.listing().folded_to()
        kept = tuple(_outlived(layouts, decided=decided, newest=newest, folded=folded))
        return kept, tuple(one for one in kept if not one.by or one.by in decided)

    def _is_empty(self, epoch: EpochContext) -> bool:
        """Whether there are no files here except those of this epoch."""
        own = sink_tag(epoch.sink_id)
        # What is published meanwhile was hidden before: so this comes first.
        if any(file.tag != own for file in hidden_files(self._store)):
            return False
        return next(visible(self._store), None) is None

    def _refusal(self, there: Layout, new: Layout) -> SchemaError:
        return SchemaError(
            f"{difference(there, new, self._guarded.format)}: readers take all files below the base path for "
            "one table. Nothing of this write is visible. Write to another path, use the layout that is "
            "there, replace everything with mode='overwrite', or allow both with .on_other_layout('allow')",
            code="OTHER_LAYOUT",
        )


def _outlived(layouts: Sequence[Layout], *, decided: set[str], newest: int, folded: int) -> Iterator[Layout]:
    """``layouts`` without those of writes that are dead; where nobody can tell, they count beside others."""
    for layout in layouts:
        if not layout.by or layout.by in decided:
            yield layout
        elif folded >= layout.since:
            yield replace(layout, by="", since=0)
        elif newest <= layout.since + _PATIENCE:
            yield layout


def difference(there: Layout, new: Layout, form: FileFormat) -> str | None:
    """Why files of two layouts do not go together; ``None`` if they do."""
    if there.format and new.format and there.format != new.format:
        return f"files below the base path are {there.format}, and those of this write would be {new.format}"
    if there.suffix != new.suffix:
        return (
            f"names of files below the base path end with {_shown(there.suffix)}, and those of this write "
            f"would with {_shown(new.suffix)}"
        )
    if there.partitions is not None and new.partitions is not None:
        before, after = ([name.lower() for name in one] for one in (there.partitions, new.partitions))
        if before != after:
            return (
                f"files below the base path lie {_where(there.partitions)}, and those of this write would "
                f"lie {_where(new.partitions)}"
            )
        for name, old, now in zip(new.partitions, there.spelled, new.spelled, strict=False):
            if old and now and old != now:
                return (
                    f"partitions below the base path have {name!r} as {old}, and those of this write would "
                    f"have it as {now}: one value would be two directories"
                )
    for old, field in _common(there.columns, new.columns):
        if not _grows(form, old, field) and not _grows(form, field, old):
            return (
                f"column {old.name!r} is {old.type} in files below the base path, and would be {field.type} "
                "in those of this write"
            )
    return None


def _widened(there: Layout, new: Layout, form: FileFormat) -> Layout:
    """``there``, and what ``new`` adds to it."""
    pairs = {old.name: field for old, field in _common(there.columns, new.columns)}
    common = {field.name for field in pairs.values()}
    columns = [
        old
        if old.name not in pairs or _grows(form, pairs[old.name], old)
        else pairs[old.name].with_name(old.name)
        for old in there.columns
    ]
    return replace(
        there,
        format=there.format or new.format,
        partitions=new.partitions if there.partitions is None else there.partitions,
        spelled=tuple(now or old for old, now in zip_longest(there.spelled, new.spelled, fillvalue="")),
        columns=pa.schema([*columns, *(field for field in new.columns if field.name not in common)]),
    )


def _spelling(name: str, schema: pa.Schema) -> str:
    """How the values of a column of the path look there; ``""`` for text, which may look like any other."""
    found = [field.type for field in schema if field.name.lower() == name.lower()]
    kind: Any = found[0] if len(found) == 1 else pa.string()
    if pt.is_date(kind):
        return "a date"
    if pt.is_timestamp(kind):
        return "a timestamp"
    if pt.is_floating(kind):
        return "a number with a point"
    if pt.is_decimal(kind) and kind.scale:
        return f"a number with {kind.scale} places"
    return "a whole number" if pt.is_integer(kind) or pt.is_decimal(kind) else ""


def _common(old: pa.Schema, new: pa.Schema) -> Iterator[tuple[Field, Field]]:
    """Columns of both: of the same name, else of one that differs in case alone."""
    exact = {field.name: field for field in old}
    folded = {field.name.lower(): field for field in old if field.name not in new.names}
    for field in new:
        found = exact.get(field.name) or folded.pop(field.name.lower(), None)
        if found is not None:
            yield found, field


def _grows(form: FileFormat, old: Field, new: Field) -> bool:
    """Whether files with ``old`` may be read as ``new``, whatever the two are called."""
    if old.type == new.type:
        return True
    try:
        check_continues(form, pa.schema([old]), pa.schema([new.with_name(old.name)]))
    except SchemaError:
        return False
    return True


def _endings(name: str) -> list[str]:
    return name.lower().split(".")


def _shown(suffix: str) -> str:
    return f"'.{suffix}'" if suffix else "no suffix"


def _where(names: Sequence[str]) -> str:
    return f"in partitions by {', '.join(map(repr, names))}" if names else "in no partitions"
