"""What is merged, when: Flink's cases, and what Flink leaves open."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction import planner
from compaction.planner import plan, size_of
from compaction.trigger import Moment, Trigger
from filesink.errors import SecurityError
from tests.compaction.parts import make_part
from tests.fakes import held


def trigger(size=None, epochs=None, age_ms=None):
    """Without conditions but those given."""
    return Trigger(size=size, epochs=epochs, age_ms=age_ms)


def moment(slot=0, now_ms=0, *, is_last=False, is_epoch=True):
    """An epoch with data, at the beginning of time."""
    return Moment(slot=slot, now_ms=now_ms, is_last=is_last, is_epoch=is_epoch)


def key(part):
    """As compactors do."""
    return part[-1].signature, part[-1].suffix


def sizes(groups):
    """The bytes of each part, by group."""
    return [[size_of(part) for part in group] for group in groups]


def test_size_of_a_bucket():
    """Files fire as soon as they have the threshold together, each bucket by itself."""
    first = [make_part(5, bucket="0"), make_part(6, bucket="0")]
    done = plan(first, trigger(10), moment(), key=key)
    assert (sizes(done.groups), done.waiting) == ([[5, 6]], [])
    done = plan([make_part(5, bucket="0"), make_part(5, bucket="1")], trigger(10), moment(), key=key)
    assert (done.groups, sizes([done.waiting])) == ([], [[5, 5]])


def test_a_changed_threshold_applies_to_what_waits():
    """After a restart with a smaller threshold, all that waits is looked at again."""
    waiting = [make_part(size) for size in (5, 6, 7, 8, 9)]
    assert plan(waiting, trigger(100), moment(), key=key).groups == []
    done = plan(waiting, trigger(10), moment(), key=key)
    assert sizes(done.groups) == [[5, 6], [7, 8]]
    done = plan([*done.waiting, make_part(2)], trigger(10), moment(), key=key)
    assert (sizes(done.groups), done.waiting) == ([[9, 2]], [])


def test_a_large_file_passes_alone():
    """A file as large as the threshold takes nothing along, and does not split the others."""
    done = plan([make_part(5), make_part(10), make_part(6)], trigger(10), moment(), key=key)
    assert sorted(sizes(done.groups)) == [[5, 6], [10]]


@pytest.mark.parametrize(("slot", "fires"), [(3, False), (4, False), (5, True), (9, True)])
def test_every_third_epoch(slot, fires):
    """Counted from the epoch in which the oldest was closed; all of the bucket fires with it."""
    done = plan([make_part(slot=3), make_part(slot=slot)], trigger(epochs=3), moment(slot), key=key)
    assert bool(done.groups) is fires
    assert bool(done.waiting) is not fires


def test_each_epoch():
    """With one epoch, nothing ever waits."""
    done = plan([make_part(slot=7), make_part(slot=7)], trigger(epochs=1), moment(7), key=key)
    assert sizes(done.groups) == [[1, 1]]


def test_an_epoch_is_not_made_to_count_it():
    """A timer that asks whether something is due is not itself the n-th epoch."""
    waiting = [make_part(slot=0)]
    assert not plan(waiting, trigger(epochs=2), moment(1, is_epoch=False), key=key).groups
    assert plan(waiting, trigger(epochs=2), moment(1), key=key).groups


@pytest.mark.parametrize(("now", "fires"), [(1099, False), (1100, True)])
def test_age_needs_no_data(now, fires):
    """The age of the oldest record counts, also when only a timer asks."""
    waiting = [make_part(created_ms=100), make_part(created_ms=900)]
    done = plan(waiting, trigger(10**9, age_ms=1000), moment(now_ms=now, is_epoch=False), key=key)
    assert bool(done.groups) is fires


def test_the_end_of_input_leaves_nothing_waiting():
    """All buckets fire, filled up to the threshold."""
    waiting = [make_part(4, bucket="0") for _ in range(4)] + [make_part(1, bucket="1")]
    done = plan(waiting, trigger(10), moment(is_last=True), key=key)
    assert (sizes(done.groups), done.waiting) == ([[4, 4, 4], [4], [1]], [])


def test_a_bucket_that_is_about_to_be_announced_does_not_wait():
    """It fires, whatever its size; other buckets go on waiting."""
    waiting = [make_part(bucket="0"), make_part(bucket="1")]
    pressed = Moment(slot=0, now_ms=0, is_last=False, is_epoch=True, pressing={"1"})
    done = plan(waiting, trigger(10), pressed, key=key)
    assert [part[0].bucket for group in done.groups for part in group] == ["1"]
    assert [part[0].bucket for part in done.waiting] == ["0"]


def test_only_alike_files_are_merged():
    """Files of other options or columns make files of their own, and count for the bucket all the same."""
    waiting = [make_part(4), make_part(4, signature="t"), make_part(4), make_part(4, suffix=".x")]
    done = plan(waiting, trigger(10), moment(), key=key)
    assert sorted(sizes(done.groups)) == [[4], [4], [4, 4]]


def test_without_a_threshold_one_file_is_made():
    """Nothing is aimed at, so a bucket becomes one file."""
    done = plan([make_part(10**9) for _ in range(5)], trigger(epochs=1), moment(), key=key)
    assert [len(group) for group in done.groups] == [5]


def test_what_may_wait_is_bounded(monkeypatch):
    """Beyond the bound the buckets with the most files are merged, and no others."""
    assert planner.MAX_WAITING == 10_000
    monkeypatch.setattr(planner, "MAX_WAITING", 5)
    waiting = [make_part(bucket="0") for _ in range(4)] + [make_part(bucket="1", segments=3)]
    done = plan(waiting, trigger(10**9), moment(), key=key)
    assert [part[0].bucket for group in done.groups for part in group] == ["0"] * 4
    assert [part[0].bucket for part in done.waiting] == ["1"]


def test_a_foreign_name_is_no_slot():
    """A ledger that names a file that is not ours stops the sink."""
    with pytest.raises(SecurityError):
        plan([(held("b/other"),)], trigger(epochs=3), moment(), key=key)


@given(
    given_sizes=st.lists(st.integers(0, 40), max_size=60),
    threshold=st.integers(1, 60),
    is_last=st.booleans(),
)
def test_no_file_is_lost_doubled_or_too_large(given_sizes, threshold, is_last):
    """Every part is in one group or waits; order is kept; no group exceeds threshold and one input."""
    parts = [make_part(size, bucket=str(index % 3)) for index, size in enumerate(given_sizes)]
    done = plan(parts, trigger(threshold), moment(is_last=is_last), key=key)
    seen = [*done.waiting, *(part for group in done.groups for part in group)]
    assert sorted(map(id, seen)) == sorted(map(id, parts))
    for group in done.groups:
        assert len({part[0].bucket for part in group}) == 1
        assert size_of_all(group[:-1]) < threshold or len(group) == 1
        assert [parts.index(part) for part in group] == sorted(parts.index(part) for part in group)
    for bucket in "012":
        assert size_of_all(part for part in done.waiting if part[0].bucket == bucket) < threshold
    assert not (is_last and done.waiting)


def size_of_all(parts):
    """Bytes together."""
    return sum(map(size_of, parts))


def test_ten_thousand_files_are_planned_at_once():
    """A large bucket becomes files of the size that is aimed at."""
    waiting = [make_part(1000, slot=number) for number in range(10_000)]
    done = plan(waiting, trigger(128_000, epochs=10**6, age_ms=10**9), moment(10_000), key=key)
    assert len(done.groups) == 78
