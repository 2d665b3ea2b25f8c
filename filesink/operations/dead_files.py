"""Hidden files below a base path that no sink can refer to any more; ``filesink.ledger.sweep`` has the rules.

Every sink sweeps its own files when it starts. Here those of all sinks below the path are looked at, also of
sinks that have no ledger any more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from filesink.file_sink.tiers import FileTiers, chain_of
from filesink.inventory import sweeping
from filesink.ledger.identity import EXCLUSIVE
from filesink.ledger.layouts import Layouts
from filesink.ledger.ledger import Ledger
from filesink.ledger.record import EpochRecord
from filesink.ledger.sweep import (
    NOT_SWEPT,
    Chain,
    Finished,
    Hidden,
    Leftover,
    all_files,
    check_tail,
    leftovers,
)
from filesink.naming import sink_tag
from filesink.operations.sink_ledgers import SinkLedgers
from filesink.parts.committables import DiscardFile, HeldFile, PendingFile, UndoneFile
from filesink.storage.api import Store

log = logging.getLogger("filesink")


class DeadFiles:
    """Finds the dead files below one base path.

    Args:
        tiers: the sink.
        store: where its files are.
        ledgers: those below the base path.
    """

    def __init__(self, tiers: FileTiers, store: Store, ledgers: SinkLedgers) -> None:
        self._tiers = tiers
        self._store = store
        self._ledgers = ledgers

    def find(self, older_than_ms: int | None, now_ms: Callable[[], int]) -> Iterator[Leftover]:
        """Every dead file.

        First the files are listed. Then each chain is read just before its own files are judged, so a
        caller that removes one at a time takes none that a driver has decided on meanwhile.

        Args:
            older_than_ms: when a chain without progress counts as dead; ``None`` for never.
            now_ms: the time by which files are dated, in milliseconds; asked only if there are any.
        """
        seen: dict[str, list[Hidden]] = {}
        newest: dict[str, Finished] = {}
        for file in all_files(self._store):
            match file:
                case Hidden():
                    seen.setdefault(file.tag, []).append(file)
                case Finished() if file.tag not in newest or newest[file.tag].slot < file.slot:
                    newest[file.tag] = file
                case _:
                    pass
        ledgers = self._ledgers.all()
        oldest = None
        if older_than_ms is not None and (seen or ledgers):
            oldest = now_ms() - older_than_ms
        _leave_shared(seen, newest, ledgers)
        for ledger in ledgers:
            tag = sink_tag(ledger.sink_id)
            files = [*seen.pop(tag, ()), *_unfinished(ledger)]
            if tag in newest or files:
                yield from self._of_chain(ledger, files, newest.get(tag), oldest)
        yield from self._without_chain(seen, oldest)
        yield from Layouts(self._store).dead(oldest)
        yield from sweeping.dead(self._store, oldest)

    def _of_chain(
        self, ledger: Ledger, files: Sequence[Hidden], newest: Finished | None, oldest: int | None
    ) -> Iterator[Leftover]:
        chain = self._chain(ledger, oldest)
        if not ledger.is_open:
            ours = [file for file in files if not file.path.startswith(ledger.directory.path)]
            decided = ledger.directory.listing().last_slot()
            check_tail(chain, [*ours, *([newest] if newest else [])], decided=decided)
        yield from leftovers(chain, files)

    def _without_chain(self, seen: dict[str, list[Hidden]], oldest: int | None) -> Iterator[Leftover]:
        """Of files with the tag of a batch write, or of a sink that has no ledger here."""
        for chain in self._batch_writes() if seen else ():
            yield from leftovers(chain, seen.pop(sink_tag(chain.sink_id), ()))
        for file in (file for files in seen.values() for file in files):
            if oldest is not None and file.mtime_ms < oldest:
                yield Leftover(path=file.path, size=file.size, reason="its sink has no ledger here")

    def _batch_writes(self) -> Iterator[Chain]:
        """Every batch write whose record is kept: its files have a tag of their own."""
        for ledger in self._ledgers.all():
            if ledger.is_open or ledger.sink_id == EXCLUSIVE:
                records = list(ledger.history.newest_first())
                # Asked afterwards: one that is decided between the two looks is no leftover of a write.
                unfinished = {record.slot for record in ledger.history.publishing()}
                for record in records:
                    if record.files_of != record.sink_id:
                        is_done = record.slot not in unfinished
                        named = frozenset() if is_done else _named(self._tiers, record)
                        yield Chain(sink_id=record.files_of, complete_slot=0 if is_done else -1, named=named)

    def _chain(self, ledger: Ledger, oldest: int | None) -> Chain:
        head = ledger.head()
        if ledger.is_open:  # others may be at work for any slot that is kept
            is_stale = oldest is not None and (head is None or ledger.directory.changed_ms() < oldest)
            return Chain(
                sink_id=ledger.sink_id,
                complete_slot=ledger.directory.listing().folded_to(),
                named=frozenset(),
                stale_before_ms=oldest if is_stale else None,
            )
        if head is None:  # what its first epoch left, if that was never decided
            return Chain(sink_id=ledger.sink_id, complete_slot=-1, named=frozenset(), stale_before_ms=oldest)
        # With its own tag: files of a batch write have another.
        chain = replace(chain_of(head.record), sink_id=ledger.sink_id, complete_slot=head.record.slot)
        if not head.complete:  # the files that it names are still to be published: none of them is dead
            return replace(chain, complete_slot=head.record.slot - 1, named=_named(self._tiers, head.record))
        is_stale = oldest is not None and ledger.directory.changed_ms() < oldest
        return replace(chain, stale_before_ms=oldest if is_stale else None)


def _leave_shared(
    seen: dict[str, list[Hidden]], newest: dict[str, Finished], ledgers: Iterable[Ledger]
) -> None:
    """Take out of ``seen`` the files whose tag belongs to two sinks: nobody knows whose they are."""
    found: dict[str, list[str]] = {}
    for ledger in ledgers:
        found.setdefault(sink_tag(ledger.sink_id), []).append(ledger.sink_id)
    for tag, ids in found.items():
        if len(ids) > 1:
            newest.pop(tag, None)
        if len(ids) > 1 and tag in seen:
            del seen[tag]
            log.warning(NOT_SWEPT, ids[0], ", ".join(ids[1:]))


def _unfinished(ledger: Ledger) -> Iterator[Hidden]:
    tag = sink_tag(ledger.sink_id)
    for path, slot, entry in ledger.directory.unfinished():
        yield Hidden(path=path, tag=tag, slot=slot, size=entry.size, mtime_ms=entry.mtime_ms)


def _named(tiers: FileTiers, record: EpochRecord) -> frozenset[str]:
    """Every hidden path that a record not yet complete refers to."""
    files = record.committables.decode(tiers.committable_codec)
    staged = {file.staged.path for file in files if isinstance(file, PendingFile | HeldFile | UndoneFile)}
    discards = {file.path for file in files if isinstance(file, DiscardFile)}
    return frozenset(staged | discards | set(chain_of(record).named))
