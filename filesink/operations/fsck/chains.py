"""Looks at ledgers: every record and every completion that is kept, and whether they follow one another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from filesink.errors import SecurityError, StateError, StateVersionError
from filesink.ledger.claims import Claims
from filesink.ledger.completion import Completion, End
from filesink.ledger.directory import COMPACTION, LedgerDirectory, Listing, ledger_ids
from filesink.ledger.layouts import Layouts
from filesink.ledger.record import EpochRecord, MicroBatch, TakenBack
from filesink.ledger.slots import Slots
from filesink.ledger.sweep import Hidden
from filesink.naming import LEDGER_ROOT, sink_tag
from filesink.operations.fsck.kinds import KINDS
from filesink.operations.fsck.seen import Draft, SeenChain
from filesink.parts.committables import Committable, CommittableCodec
from filesink.parts.recorded_paths import check_record
from filesink.storage.api import Kind, Store

_TXNS = f"{LEDGER_ROOT}/_txns"
_PATIENCE_MS = 600_000  # an epoch that was decided before that should be complete


def look_at_chains(store: Store, now_ms: int) -> tuple[list[SeenChain], list[Draft]]:
    """All chains, and what is wrong with each of them alone."""
    drafts: list[Draft] = []
    ids = ledger_ids(store)
    chains = [_chain(store, sink_id, drafts) for sink_id in ids]
    for one, other in combinations(ids, 2):
        if sink_tag(one) == sink_tag(other):
            drafts.append(Draft("TAG_SHARED", f"{LEDGER_ROOT}/{one}", f"'{one}' and '{other}'"))
    for chain in chains:
        drafts += _at_work(chain, now_ms)
    drafts += _claims(store)
    drafts += _layouts(store)
    return chains, drafts


def damaged(error: StateError | SecurityError, path: str, *, kind: str) -> Draft:
    """What an error says of a file; ``kind`` is how the codes of such files begin."""
    if isinstance(error, StateVersionError):
        return Draft("NEWER_RELEASE", path, error.message)
    ending = "REFUSED" if isinstance(error, SecurityError) else error.code
    code = f"{kind}_{ending}"
    return Draft(code if code in KINDS else f"{kind}_DAMAGED", path, error.message)


def _chain(store: Store, sink_id: str, drafts: list[Draft]) -> SeenChain:
    slots = Slots(store, sink_id, check=check_record)
    directory = slots.directory
    listing = directory.listing()
    found: list[Draft] = []
    records = dict(_records(slots, listing, found))
    undone = frozenset(
        record.cause.slot for record in records.values() if isinstance(record.cause, TakenBack)
    )
    ends = dict(_completions(slots, listing, records, found))
    found += _order(directory, listing, undone)
    found += _batches(directory, records)
    drafts += found
    newest = ends.get(listing.records[-1]) if listing.records else None
    return SeenChain(
        sink_id=sink_id,
        is_open=directory.is_open,
        listing=listing,
        records=records,
        unfinished=frozenset(_unfinished(directory, listing, undone)),
        undone=undone,
        done_unpublished=frozenset(slot for slot, end in ends.items() if end.end is End.TAKEN_BACK),
        left=_left(newest),
        puts=tuple(_puts(directory)),
        is_whole=not found,
    )


def _records(slots: Slots, listing: Listing, found: list[Draft]) -> Iterator[tuple[int, EpochRecord]]:
    def read(slot: int) -> EpochRecord | Draft | None:
        try:
            return slots.read(slot)
        except (StateError, SecurityError) as error:
            return damaged(error, slots.directory.path_of(slot, "record"), kind="RECORD")

    for slot, one in zip(listing.records, slots.store.runner.run(read, listing.records), strict=True):
        match one:
            case EpochRecord():
                yield slot, one
            case Draft():
                found.append(one)
            case None:  # folded away since it was listed
                pass


def _completions(
    slots: Slots, listing: Listing, records: Mapping[int, EpochRecord], found: list[Draft]
) -> Iterator[tuple[int, Completion]]:
    def read(slot: int) -> Completion | Draft | None:
        try:
            return slots.completion(records[slot])
        except (StateError, SecurityError) as error:
            if error.code == "VANISHED":  # folded away since it was listed
                return None
            return damaged(error, slots.directory.path_of(slot, "complete"), kind="COMPLETION")

    known = sorted(listing.complete & records.keys())
    for slot, one in zip(known, slots.store.runner.run(read, known), strict=True):
        match one:
            case Completion():
                yield slot, one
            case Draft():
                found.append(one)
            case None:
                pass


def _order(directory: LedgerDirectory, listing: Listing, undone: frozenset[int]) -> Iterator[Draft]:
    """What is missing between what is there."""
    for slot in listing.strays():
        path = directory.path_of(slot, "complete")
        yield Draft("COMPLETION_STRAY", path, f"slot {slot} has no record")
    if directory.sink_id == COMPACTION:  # copies of a few records of another chain
        return
    if listing.marks and not listing.records:
        path = directory.path_of(listing.marks[-1], "mark")
        if _void_records(directory, listing):
            yield Draft("MARK_STRAY", path, f"records up to slot {listing.marks[-1]} are still there")
        else:
            yield Draft("HEAD_MISSING", directory.path, f"folded up to slot {listing.marks[-1]}")
    present = set(listing.records)
    for slot in range(listing.folded_to() + 1, listing.last_slot()):
        if slot not in present:
            yield Draft("RECORD_MISSING", directory.path_of(slot, "record"), f"slot {slot} is missing")
    if not directory.is_open:
        for slot in listing.records[:-1]:
            if slot not in listing.complete and slot not in undone:
                path = directory.path_of(slot, "complete")
                yield Draft("COMPLETION_MISSING", path, f"slot {listing.records[-1]} is decided")


def _void_records(directory: LedgerDirectory, listing: Listing) -> bool:
    """Whether records stand below the newest mark: where a fold has made it, newer ones would stand above."""
    return any(not name.endswith(".mark") for name in directory.folded(listing.marks[-1]))


def _batches(directory: LedgerDirectory, records: Mapping[int, EpochRecord]) -> Iterator[Draft]:
    seen: dict[MicroBatch, int] = {}
    void = {record.cause.slot for record in records.values() if isinstance(record.cause, TakenBack)}
    for slot, record in sorted(records.items()):
        match record.cause:
            case MicroBatch() as cause if slot not in void:
                batch = MicroBatch(query_id=cause.query_id, batch_id=cause.batch_id, fingerprint="")
                if batch in seen:
                    detail = f"batch {batch.batch_id} of query {batch.query_id} is in slot {seen[batch]}, too"
                    yield Draft("BATCH_DOUBLED", directory.path_of(slot, "record"), detail)
                seen[batch] = slot
            case _:
                pass


def _unfinished(directory: LedgerDirectory, listing: Listing, undone: frozenset[int]) -> Iterator[int]:
    slots = listing.unfinished() if directory.is_open else listing.records[-1:]
    return (slot for slot in slots if slot not in listing.complete and slot not in undone)


def _left(end: Completion | None) -> tuple[Committable, ...]:
    return tuple(end.left.decode(CommittableCodec())) if end is not None and end.left.data else ()


def _puts(directory: LedgerDirectory) -> Iterator[Hidden]:
    tag = sink_tag(directory.sink_id)
    for path, slot, entry in directory.unfinished():
        yield Hidden(path=path, tag=tag, slot=slot, size=entry.size, mtime_ms=entry.mtime_ms)


def _at_work(chain: SeenChain, now_ms: int) -> Iterator[Draft]:
    for slot in sorted(chain.unfinished):
        record = chain.records.get(slot)
        if record is not None and chain.sink_id != COMPACTION:
            late = now_ms - record.decided_ms > _PATIENCE_MS
            path = f"{LEDGER_ROOT}/{chain.sink_id}/{slot:012d}.record"
            yield Draft(
                "EPOCH_UNFINISHED" if late else "EPOCH_AT_WORK", path, f"epoch {slot} of '{chain.sink_id}'"
            )


def _claims(store: Store) -> Iterator[Draft]:
    names = sorted(entry.name for entry in store.list(_TXNS) if entry.kind is Kind.DIRECTORY)
    found = store.runner.run(lambda name: _claim(store, name), names)
    return (draft for draft in found if draft is not None)


def _claim(store: Store, name: str) -> Draft | None:
    """What is wrong with the claims of one ``txn_id``."""
    path = f"{_TXNS}/{name}"
    try:
        Claims(store, name, check=check_record).standing()
    except (StateError, SecurityError) as error:
        if error.code == "GAP":
            return Draft("CLAIM_MISSING", path, error.message)
        return damaged(error, path, kind="CLAIM")
    return None


def _layouts(store: Store) -> Iterator[Draft]:
    layouts = Layouts(store)
    try:
        layouts.read()
    except StateError as error:
        if error.code != "VANISHED":  # replaced by the next one since it was listed
            yield damaged(error, layouts.directory, kind="LAYOUT")
