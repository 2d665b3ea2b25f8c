"""Proof that an epoch that comes back is the same."""

from __future__ import annotations

import pytest

from filesink.epoch_record import BatchWrite, EpochRecord, MicroBatch, Section, Upkeep
from filesink.errors import CheckpointMismatchError, ReplayMismatchError
from filesink.ledger import KEEP_BATCHES
from filesink.replay import EpochOptions, OnReplayMismatch, check_fingerprint, check_rows, same_batch
from tests.fakes import micro_batch


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
