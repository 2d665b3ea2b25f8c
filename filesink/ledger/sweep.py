"""Removal of hidden files of ours that nothing can refer to any more.

No clock is needed for a sink that lives: once slot k is complete, nothing can be decided for a slot
up to k any more, so a hidden file made for such a slot is dead unless the last record names it.
Higher slots are never touched: they belong to an epoch that may still be decided. Files without our
tag are never touched. A tag is short: where two sinks have the same, nobody knows whose a file is, and
it stays.

Only where a chain has not moved for a long time is age the judge of what was made for its next
slot, and then that of the file: a sink that was merely idle may be at work again.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from filesink.errors import StateCorruptError
from filesink.naming import LEDGER_ROOT, is_data, join, name_of, parent, parse_ours, parse_part, sink_tag
from filesink.storage.api import Entry, Kind, Store

NOT_SWEPT = "sink %s: its files bear the same tag as those of %s, so none of them is swept"
log = logging.getLogger("filesink")

_AT_A_TIME = 64  # directories listed together, in so far as the store runs several requests at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """A hidden file: whose it is, the slot it was made for, bytes, last change in ms since 1970 UTC."""

    path: str
    tag: str
    slot: int
    size: int
    mtime_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A part file that readers see: whose it is, and the slot that its name tells."""

    path: str
    tag: str
    slot: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """A hidden file that may be removed. ``size`` in bytes, ``reason`` for people."""

    path: str
    size: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """What decides about the hidden files of one sink.

    Attributes:
        sink_id: whose they are.
        complete_slot: the newest complete slot, -1 for none.
        named: paths that the last record names.
        stale_before_ms: files for the next slot that were last changed before this moment are dead
            too, since the chain has not moved either; ``None`` while it may move.
    """

    sink_id: str
    complete_slot: int
    named: Collection[str]
    stale_before_ms: int | None = None


def leftovers(chain: Chain, files: Iterable[Hidden]) -> Iterator[Leftover]:
    """The ``files`` that are dead files of ``chain``."""
    tag = sink_tag(chain.sink_id)
    # By its own name, of which there is one only: a directory has several where case makes no difference.
    named = {name_of(path) for path in chain.named}
    for file in files:
        if file.tag != tag or name_of(file.path) in named:
            continue
        if file.slot <= chain.complete_slot:
            reason = f"slot {file.slot} is complete without it"
            yield Leftover(path=file.path, size=file.size, reason=reason)
        elif chain.stale_before_ms is not None and file.mtime_ms < chain.stale_before_ms:
            reason = "neither it nor its sink has changed for a long time"
            yield Leftover(path=file.path, size=file.size, reason=reason)


def hidden_files(store: Store, directories: Iterable[str] | None = None) -> Iterator[Hidden]:
    """Every hidden file of any filesink that belongs to this base path.

    What lies below another base path inside this one is judged by its own ledgers, never by ours.

    Args:
        store: where to look.
        directories: where to look; ``None`` is everywhere below the base.
    """
    for directory, entries in walk(store, directories):
        for entry in entries:
            if (file := hidden_of(directory, entry)) is not None:
                yield file


def all_files(store: Store) -> Iterator[Hidden | Finished]:
    """Every file of any filesink that belongs to this base path, hidden or not."""
    for directory, entries in walk(store):
        for entry in entries:
            if (file := hidden_of(directory, entry)) is not None:
                yield file
            elif entry.kind is Kind.FILE and (name := parse_part(entry.name)):
                yield Finished(path=join(directory, entry.name), tag=name.tag, slot=name.slot)


def hidden_of(directory: str, entry: Entry) -> Hidden | None:
    """``entry`` as a hidden file of any filesink; ``None`` if it is none."""
    name = parse_ours(entry.name) if entry.kind is Kind.FILE else None
    if name is None:
        return None
    return Hidden(
        path=join(directory, entry.name),
        tag=name.tag,
        slot=name.slot,
        size=entry.size,
        mtime_ms=entry.mtime_ms,
    )


def check_tail(chain: Chain, files: Iterable[Hidden | Finished], *, decided: int) -> None:
    """Look whether a file tells that its chain was longer than it is: records were lost, and their marks.

    One that readers see is only a hint, told in the log: somebody may have begun anew beside old data, or
    copied files here.

    Args:
        chain: read after ``files`` were seen.
        files: with the tag of ``chain``.
        decided: its newest slot.

    Raises:
        StateCorruptError: ``LOST_TAIL``; a hidden file tells.
    """
    for file in files:
        # Files for a slot are made when the one before it is decided, and seen when it is decided itself.
        if file.slot > decided + isinstance(file, Hidden):
            what = (
                f"'{file.path}' was made for epoch {file.slot} of sink '{chain.sink_id}', and its ledger "
                f"ends with epoch {decided}: its newest records may be lost"
            )
            if isinstance(file, Hidden):
                raise StateCorruptError(
                    f"{what}. Nothing was removed. Bring the directory of the ledger back from a backup; or "
                    "remove this file, if the sink was begun anew",
                    code="LOST_TAIL",
                )
            log.warning("%s. Unless the sink was begun anew beside old data, restore its ledger", what)


def walk(store: Store, directories: Iterable[str] | None = None) -> Iterator[tuple[str, list[Entry]]]:
    """Buckets and what is in them, but nothing that lies below another base path inside this one.

    Args:
        store: where to look.
        directories: which ones, not those below; ``None`` is everywhere below the base.
    """
    return _everywhere(store) if directories is None else _there(store, directories)


def visible(store: Store, directories: Iterable[str] | None = None) -> Iterator[tuple[str, Entry]]:
    """Path and entry of all that readers of the base path see, but for directories.

    Links are among them: readers follow them, and nobody here knows what is behind. ``directories`` as
    in ``walk``.
    """
    for directory, entries in walk(store, directories):
        for entry in entries:
            if entry.kind is not Kind.DIRECTORY and entry.name[0] not in "._" and is_data(directory):
                yield join(directory, entry.name), entry


def _everywhere(store: Store) -> Iterator[tuple[str, list[Entry]]]:
    waiting = [""]
    while waiting:
        now, waiting = waiting[-_AT_A_TIME:], waiting[:-_AT_A_TIME]
        for directory, entries in zip(now, store.runner.run(store.list, now), strict=True):
            if directory and _holds_ledgers(entries):
                continue
            found = [join(directory, entry.name) for entry in entries if entry.kind is Kind.DIRECTORY]
            waiting += [path for path in found if _is_bucket(path)]
            yield directory, entries


def _is_bucket(directory: str) -> bool:
    """Whether files of ours may be in a directory whose parent may hold some.

    Dead letters stand beside all data. A directory of their name in a bucket is somebody else's.
    """
    is_skipped = name_of(directory)[0] in "._"
    return not is_skipped or (not is_data(directory) and not parent(directory))


def _there(store: Store, directories: Iterable[str]) -> Iterator[tuple[str, list[Entry]]]:
    foreign: dict[str, bool] = {"": False}
    for directory in directories:
        entries = store.list(directory)
        foreign[directory] = bool(directory) and _holds_ledgers(entries)
        if not any(_is_foreign(store, path, foreign) for path in _upwards(directory)):
            yield directory, entries


def _is_foreign(store: Store, directory: str, known: dict[str, bool]) -> bool:
    if directory not in known:
        known[directory] = _holds_ledgers(store.list(directory))
    return known[directory]


def _upwards(directory: str) -> Iterator[str]:
    while directory:
        yield directory
        directory = parent(directory)


def _holds_ledgers(entries: Iterable[Entry]) -> bool:
    return any(entry.name == LEDGER_ROOT and entry.kind is Kind.DIRECTORY for entry in entries)
