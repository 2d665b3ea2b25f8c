"""How entries are cut into batches: nothing is lost, and nothing is too large."""

from __future__ import annotations

from itertools import groupby, pairwise

from hypothesis import given
from hypothesis import strategies as st

from filesink.sinks.asynchronous.batches import Batches
from filesink.sinks.asynchronous.entries import Entry

sizes = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 12)), max_size=40)
RECORDS, LIMIT = 4, 20


def cut(entries: list[Entry]) -> list[tuple[Entry, ...]]:
    """All batches of ``entries``."""
    batches = Batches(records=RECORDS, limit=LIMIT)
    for entry in entries:
        batches.add(entry)
    batches.close()
    found = []
    while batches.has_ready:
        found.append(batches.pop())
    assert not batches.has_open
    return found


@given(sizes)
def test_batches_are_the_entries_in_their_order(given_sizes) -> None:
    """Each within the limits, of one origin, and as long as it could be."""
    entries = [Entry(origin, number, bytes(size)) for number, (origin, size) in enumerate(given_sizes)]
    found = cut(entries)
    assert [entry for batch in found for entry in batch] == entries
    for batch in found:
        assert len({entry.origin for entry in batch}) == 1
        assert len(batch) <= RECORDS
        assert len(batch) == 1 or sum(len(entry.payload) for entry in batch) <= LIMIT
    for batch, after in pairwise(found):
        size = sum(len(entry.payload) for entry in batch)
        assert (
            len(batch) == RECORDS
            or size + len(after[0].payload) > LIMIT
            or size >= LIMIT
            or batch[0].origin != after[0].origin
        )


@given(sizes)
def test_what_waits_can_be_looked_at(given_sizes) -> None:
    """In the same order, whether its batch is complete or not."""
    entries = [Entry(origin, number, bytes(size)) for number, (origin, size) in enumerate(given_sizes)]
    batches = Batches(records=RECORDS, limit=LIMIT)
    for entry in entries:
        batches.add(entry)
    assert list(batches) == entries


def test_a_batch_is_ready_as_soon_as_it_is_full() -> None:
    """By number or by size, without waiting for the entry that does not fit."""
    batches = Batches(records=2, limit=10)
    batches.add(Entry("a", 0, b"x"))
    assert not batches.has_ready
    batches.add(Entry("a", 1, b"x"))
    assert batches.has_ready
    batches.pop()
    batches.add(Entry("a", 2, bytes(10)))
    assert batches.has_ready


@given(sizes)
def test_the_cut_of_an_origin_does_not_depend_on_its_neighbours(given_sizes) -> None:
    """So what is left of an earlier epoch keeps its keys, whatever comes after it."""
    entries = [Entry(origin, number, bytes(size)) for number, (origin, size) in enumerate(given_sizes)]
    alone = [batch for _, group in groupby(entries, lambda one: one.origin) for batch in cut(list(group))]
    assert cut(entries) == alone
