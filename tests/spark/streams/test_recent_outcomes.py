"""What a driver remembers of its last epochs. Needs no Spark that runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from filesink.commit.outcome import Outcome
from filesink.ledger.record import BatchWrite
from filesink.spark.recent_outcomes import RecentOutcomes


@pytest.mark.parametrize(
    ("files", "kept"),
    [
        ([1] * 150, list(range(50, 150))),
        ([10_000, 10_000], [0, 1]),
        ([10_000, 10_000, 1], [1, 2]),
        ([5_000, 5_000, 25_000], [2]),
        ([25_000, 0, 3], [1, 2]),
    ],
    ids=["many epochs", "as many files as fit", "one too many", "one that is too large", "small after large"],
)
def test_what_is_remembered_is_bounded_by_epochs_and_by_files(files, kept):
    """A driver that runs for months keeps 100 outcomes, or those of 20,000 files, and always the last."""
    recent = RecentOutcomes[int]()
    for slot, number in enumerate(files):
        outcome = Outcome(slot=slot, cause=BatchWrite(), rows=0, committables=range(number))
        recent.append(outcome)
        assert recent.latest()[-1] is outcome
    assert [one.slot for one in recent.latest()] == kept


def test_what_is_done_after_an_epoch_is_part_of_its_outcome():
    """It is called once for each, and what it returns is what is remembered, told and returned."""
    told, seen = [], []

    def after(outcome):
        seen.append(outcome.slot)
        return replace(outcome, behind={"copy": 3})

    recent = RecentOutcomes[int](lambda outcome: told.append(outcome) or "", after=after)
    returned = recent.append(Outcome(slot=7, cause=BatchWrite(), rows=0, committables=()))
    assert returned.behind == {"copy": 3}
    assert (seen, told, list(recent.latest())) == ([7], [returned], [returned])


def test_an_epoch_is_remembered_whatever_comes_after_it():
    """It is complete: what is raised is about something else."""

    def after(_):
        raise RuntimeError("the copy failed")

    recent = RecentOutcomes[int](after=after)
    outcome = Outcome(slot=7, cause=BatchWrite(), rows=0, committables=())
    with pytest.raises(RuntimeError, match="the copy failed"):
        recent.append(outcome)
    assert list(recent.latest()) == [outcome]
