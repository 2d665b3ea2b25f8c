"""Proof that an epoch that comes back is the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from filesink.commit.replay import (
    EpochOptions,
    OnGap,
    OnReplayMismatch,
    check_fingerprint,
    check_rows,
    check_same_data,
    same_batch,
)
from filesink.errors import (
    CheckpointMismatchError,
    IdentityError,
    RepeatedTxnError,
    ReplayMismatchError,
)
from filesink.ledger.folding import KEEP_BATCHES
from filesink.ledger.identity import OnNewQuery
from filesink.ledger.record import BatchWrite, EpochRecord, MicroBatch, Section, Upkeep
from tests.fakes import World, micro_batch, records


def record(rows):
    """A decided epoch."""
    return EpochRecord(
        slot=0,
        nonce="n",
        sink_id="s",
        cause=micro_batch(0),
        last_batch=micro_batch(0),
        decided_ms=0,
        rows=rows,
        committables=Section(1, b"[]"),
    )


def test_the_same_batch_has_the_same_query_and_number():
    """Whatever its fingerprint; other causes are never the same."""
    assert same_batch(micro_batch(1), micro_batch(1, fingerprint="f"))
    assert not same_batch(micro_batch(1), micro_batch(2))
    assert not same_batch(micro_batch(1), micro_batch(1, query_id="other"))
    assert not same_batch(BatchWrite(), BatchWrite())
    assert not same_batch(Upkeep(), micro_batch(1))


def test_fingerprints():
    """Equal ones pass, different ones raise, and an absent one cannot be compared."""
    check_fingerprint(micro_batch(1), micro_batch(1))
    unknown = MicroBatch(query_id="q", batch_id=1, fingerprint="")
    check_fingerprint(unknown, micro_batch(1))
    check_fingerprint(micro_batch(1), unknown)
    with pytest.raises(CheckpointMismatchError) as raised:
        check_fingerprint(micro_batch(1), micro_batch(1, fingerprint="f"))
    assert raised.value.code == "CHECKPOINT_MISMATCH"


@pytest.mark.parametrize("rows", [0, 4, 6])
def test_rows(rows):
    """Fewer and more rows are both refused, and the message says how many."""
    check_rows(record(5), 0, 5, OnReplayMismatch.RAISE)
    check_rows(record(5), 0, rows, OnReplayMismatch.KEEP_FIRST)
    with pytest.raises(ReplayMismatchError, match=f"committed with 5 rows, its replay has {rows}") as raised:
        check_rows(record(5), 0, rows, OnReplayMismatch.RAISE)
    assert raised.value.code == "REPLAY_MISMATCH"


def test_a_hundred_batches_are_kept():
    """At least as many as Spark keeps by default."""
    assert EpochOptions().keep_batches == KEEP_BATCHES == 100


@pytest.mark.parametrize(
    ("on_gap", "on_new_query", "refused"),
    [
        (OnGap.LOG, OnNewQuery.REFUSE, False),
        (OnGap.REFUSE, OnNewQuery.REFUSE, True),
        (OnGap.REFUSE, OnNewQuery.APPEND, False),
    ],
)
def test_batches_that_never_came_are_named(caplog, on_gap, on_new_query, *, refused):
    """Their rows are missing: whoever may go on without them finds a warning; the next batch is no gap."""
    world = World()
    driver = world.driver(on_gap=on_gap, on_new_query=on_new_query)
    for number in range(2):
        driver.run(micro_batch(number), world.job(records("1")))
    assert caplog.text == ""
    if refused:
        with pytest.raises(IdentityError, match="batch 3 comes after batch 1") as raised:
            driver.run(micro_batch(3), world.job(records("1")))
        assert raised.value.code == "BATCHES_MISSING"
    else:
        driver.run(micro_batch(3), world.job(records("1")))
        assert "batch 3 comes after batch 1" in caplog.text


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("2-aa-00", "2-aa-00"),
        ("2-aa", "2-aa-00"),  # an earlier release has not noted the partitions
        ("2-aa", "2-aa"),
        ("1-bb", "2-aa-00"),  # digests of two kinds cannot be compared
        ("", "2-aa-00"),  # through the data source
        ("2-aa-00", ""),
    ],
)
def test_a_repeat_is_equal_as_far_as_is_known(before, now):
    """What one of the two records does not tell is no difference."""
    check_same_data(replace(record(3), digest=before), 3, now)


@pytest.mark.parametrize(
    ("before", "now", "rows", "what"),
    [
        ("2-aa-00", "2-aa-00", 4, "3 rows, now it has 4"),
        ("2-aa-00", "2-bb-00", 3, "other values or columns"),
        ("2-aa", "2-bb-00", 3, "other values or columns"),
        ("2-aa-00", "2-aa-01", 3, "other partitions="),
    ],
)
def test_a_repeat_that_differs_is_told_how(before, now, rows, what):
    """In number of rows, values, or partitions to be emptied."""
    with pytest.raises(RepeatedTxnError, match=what) as raised:
        check_same_data(replace(record(3), digest=before), rows, now)
    assert raised.value.code == "OTHER_DATA"
