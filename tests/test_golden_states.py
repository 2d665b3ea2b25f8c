"""Sinks that earlier code has left on disk, in every state there is: today's code takes each of them over.

Without Spark: recovery, the end of input, sweeping, and what is known of earlier writes. How the states were
made is told in ``tests/golden/states/make_states.py``; rows are read by the names of files alone.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import compaction
from filesink import FileSinkBuilder
from filesink.commit.epoch import EpochLoop
from filesink.commit.replay import EpochOptions
from filesink.ledger.directory import ledger_ids
from filesink.ledger.identity import batch_write
from filesink.ledger.transactions import find_write
from filesink.ports import Ports, SerialRunner
from filesink.save_mode import SaveMode
from filesink.system import SystemClock, SystemIds
from tests.golden.states import reading
from tests.golden.states.frozen import FROZEN, Frozen, Txn, twice

PORTS = Ports(clock=SystemClock(), ids=SystemIds(), runner=SerialRunner())


@pytest.fixture
def sink(frozen: Frozen, tmp_path: Path) -> Path:
    """The state, unpacked."""
    return frozen.unpacked(tmp_path)


def states(*having: str) -> pytest.MarkDecorator:
    """A test of every state, or of those of which any of this is known."""
    chosen = [one for one in FROZEN if not having or any(one.known[what] for what in having)]
    return pytest.mark.parametrize("frozen", chosen, ids=str)


def finish(builder: FileSinkBuilder) -> None:
    """The input of every stream has ended."""
    tiers = builder.tiers()
    for sink_id in ledger_ids(tiers.address()):
        if sink_id.startswith(("uid-", "query-")):
            loop = EpochLoop(tiers, tiers.open_ledger(sink_id), ports=PORTS, options=EpochOptions())
            loop.finish()
            loop.close()


def is_known(builder: FileSinkBuilder, txn: Txn) -> bool:
    """Whether a repetition of a write would write nothing."""
    tiers = builder.tiers()
    sink_id, cause = batch_write(SaveMode(txn.mode), tiers.uid, txn.txn_id, SystemIds())
    ledger = tiers.open_ledger(sink_id)
    return find_write(cause, ledger) is not None


def test_there_are_states_of_every_kind():
    """None is lost on the way, and no kind was forgotten when they were frozen."""
    first = [one for one in FROZEN if one.number == "1"]
    assert len(first) == 27
    for what in ("held", "dead_letters", "announced", "committed", "free", "copied"):
        assert any(one.known[what] for one in first), what


@states()
def test_readers_see_what_they_saw(frozen, sink):
    """Unpacked, a state has the rows that it had when it was frozen."""
    assert reading.visible_ids(sink / "base") == frozen.known["visible"]


@states()
def test_recovery_carries_through_what_was_decided(frozen, sink):
    """Every row that was decided is visible, and a second call finds nothing more to do."""
    frozen.builder(sink).build().recover()
    frozen.check_recovered(sink)
    again = frozen.builder(sink).build().recover()
    assert (list(again.published), list(again.retracted), again.lost_rows, again.swept) == ([], [], 0, 0)
    frozen.check_recovered(sink)


@states()
def test_the_end_of_input_makes_everything_visible(frozen, sink):
    """What was held is published, once, and nothing hidden is left."""
    builder = frozen.builder(sink)
    builder.build().recover()
    finish(builder)
    expected = sorted([*frozen.known["recovered"], *frozen.known["held"]])
    assert reading.visible_ids(sink / "base") == expected
    assert reading.dead_letters(sink / "base") == frozen.known["dead_letters"]
    assert builder.build().plan_sweep(1).files == ()
    assert [path for path in (sink / "base").rglob(".*") if path.is_file()] == []


@states()
def test_a_sweep_takes_nothing_that_is_needed(frozen, sink):
    """However long nobody has written: what is decided or held is there for recovery and for the end."""
    builder = frozen.builder(sink)
    for age in ("7 days", 1):
        builder.build().sweep(age)
    assert reading.visible_ids(sink / "base") == frozen.known["visible"]
    builder.build().recover()
    frozen.check_recovered(sink)
    finish(builder)
    expected = sorted([*frozen.known["recovered"], *frozen.known["held"]])
    assert reading.visible_ids(sink / "base") == expected


@states("copied")
def test_who_asks_for_the_files_sees_merged_rows_once(frozen, sink):
    """Merged files and what they were made of stand side by side; ``compaction.files`` tells them apart."""
    frozen.builder(sink).build().recover()
    names = compaction.files(sink / "base")
    found = reading.ids(map(Path, names))
    assert twice(found) == []
    assert set(found) == set(frozen.known["recovered"])


@states("committed", "free")
def test_writes_are_known_by_their_txn_id(frozen, sink):
    """Those that were decided are known once they are carried through; those taken back, and others, are not.

    That a repetition carries them through by itself is tested with Spark.
    """
    builder = frozen.builder(sink)
    builder.build().recover()
    assert all(is_known(builder, txn) for txn in frozen.committed)
    assert not any(is_known(builder, txn) for txn in frozen.free)
    assert not is_known(builder, Txn(txn_id="another", mode="append", ids=()))
