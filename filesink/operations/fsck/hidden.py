"""Looks at hidden files: those that a ledger needs and that are gone, and those that nobody needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from filesink.errors import StateError
from filesink.file_sink.tiers import chain_of
from filesink.inventory import sweeping
from filesink.ledger.directory import APPENDS, COMPACTION
from filesink.ledger.identity import EXCLUSIVE
from filesink.ledger.layouts import Layouts
from filesink.ledger.record import EpochRecord
from filesink.ledger.sweep import Chain, Hidden, leftovers
from filesink.naming import LEDGER_ROOT, sink_tag
from filesink.operations.fsck.seen import Draft, Look, SeenChain
from filesink.parts.committables import (
    CommittableCodec,
    DiscardFile,
    HeldFile,
    HeldFileCodec,
    PendingFile,
    UndoneFile,
)
from filesink.storage.api import Store

_OLD_MS = 7 * 24 * 3600 * 1000  # as ``sweep`` has it by default


def needed_and_gone(chains: Iterable[SeenChain], store: Store) -> Iterator[Draft]:
    """Files of ledgers that are not there as they were closed."""
    for chain in chains:
        record = chain.newest()
        if record is None or chain.sink_id == COMPACTION:
            continue
        if not chain.is_open:
            yield from _held_lost(record, store)
        for slot in sorted(chain.unfinished & chain.records.keys()):
            yield from _pending_lost(chain.records[slot], store)


def _held_lost(record: EpochRecord, store: Store) -> Iterator[Draft]:
    held = [file for section in record.states.values() for file in section.decode(HeldFileCodec())]
    gone = store.runner.run(lambda file: _look(lambda: store.is_gone(file.staged)), held)
    for file, is_gone in zip(held, gone, strict=True):
        if is_gone:
            yield Draft("HELD_LOST", file.staged.path, f"{file.rows:,} rows of '{file.bucket or '.'}'")


def _pending_lost(record: EpochRecord, store: Store) -> Iterator[Draft]:
    files = [file for file in record.committables.decode(CommittableCodec()) if isinstance(file, PendingFile)]
    lost = store.runner.run(lambda file: _look(lambda: store.is_lost(file.staged, file.target)), files)
    for file, is_lost in zip(files, lost, strict=True):
        if is_lost:
            yield Draft("PENDING_LOST", file.target, f"{file.rows:,} rows of epoch {record.slot}")


def _look(ask: Callable[[], bool]) -> bool:
    """What ``ask`` says; false of a file that a store of another kind has closed: only that one knows it."""
    try:
        return ask()
    except StateError as error:
        if error.code != "OTHER_STORE":  # a copy from a bucket to a disk, say
            raise
        return False


def not_needed(look: Look, store: Store, now_ms: int) -> Iterator[Draft]:
    """Files that nothing can refer to any more."""
    by_tag: dict[str, list[Hidden]] = {}
    for file in (*look.files.hidden, *(put for chain in look.chains for put in chain.puts)):
        by_tag.setdefault(file.tag, []).append(file)
    for chain in _sweepable(look.chains):
        files = by_tag.pop(sink_tag(chain.sink_id), ())
        dead = {leftover.path: leftover for leftover in leftovers(chain, files)}
        for leftover in dead.values():
            yield Draft("GARBAGE", leftover.path, f"{leftover.size:,} bytes: {leftover.reason}")
        if (decided := look.decided.get(chain.sink_id)) is not None and not chain.sink_id.startswith(APPENDS):
            yield from _tail(chain.sink_id, decided, (file for file in files if file.path not in dead))
    damaged = {sink_tag(chain.sink_id) for chain in look.chains}
    for tag, files in by_tag.items():
        for file in files if tag not in damaged else ():
            if now_ms - file.mtime_ms > _OLD_MS:
                yield Draft("HIDDEN_OLD", file.path, f"{file.size:,} bytes")
    for leftover in (*Layouts(store).dead(None), *sweeping.dead(store, None)):
        yield Draft("GARBAGE", leftover.path, f"{leftover.size:,} bytes: {leftover.reason}")


def _tail(sink_id: str, decided: int, files: Iterable[Hidden]) -> Iterator[Draft]:
    """A file for a slot after the next one tells that records are lost: see ``ledger.sweep.check_tail``."""
    for file in files:
        if file.slot > decided + 1 and not file.path.startswith(LEDGER_ROOT):
            detail = f"'{file.path}' was made for epoch {file.slot}, and the ledger ends with {decided}"
            yield Draft("TAIL_LOST", f"{LEDGER_ROOT}/{sink_id}", detail)


def _sweepable(chains: Sequence[SeenChain]) -> Iterator[Chain]:
    """What decides about hidden files, of each chain that is whole, and of its batch writes."""
    tags = [sink_tag(chain.sink_id) for chain in chains]
    for chain in chains:
        if not chain.is_whole or tags.count(sink_tag(chain.sink_id)) > 1:
            continue
        yield _of_chain(chain)
        if chain.is_open or chain.sink_id == EXCLUSIVE:
            yield from _of_writes(chain)


def _of_chain(chain: SeenChain) -> Chain:
    record = chain.newest()
    if chain.is_open or record is None:
        settled = chain.listing.folded_to() if chain.is_open else -1
        return Chain(sink_id=chain.sink_id, complete_slot=settled, named=frozenset())
    held = frozenset(chain_of(record).named)
    if record.slot in chain.unfinished:
        return Chain(sink_id=chain.sink_id, complete_slot=record.slot - 1, named=held | _staged(record))
    return Chain(sink_id=chain.sink_id, complete_slot=record.slot, named=held)


def _of_writes(chain: SeenChain) -> Iterator[Chain]:
    for slot, record in chain.records.items():
        if record.files_of != record.sink_id:
            is_done = slot not in chain.unfinished
            named = frozenset() if is_done else _staged(record)
            yield Chain(sink_id=record.files_of, complete_slot=0 if is_done else -1, named=named)


def _staged(record: EpochRecord) -> frozenset[str]:
    """Hidden paths that a record which is not complete refers to."""
    files = record.committables.decode(CommittableCodec())
    staged = {file.staged.path for file in files if isinstance(file, PendingFile | HeldFile | UndoneFile)}
    return frozenset(staged | {file.path for file in files if isinstance(file, DiscardFile)})
