"""What users are told."""

from __future__ import annotations

import pytest

from compaction import FileCompactor, FileCompactStrategy
from filesink.commit.outcome import Outcome
from filesink.file_sink.report import (
    EpochReport,
    FinishedFile,
    RecoveryReport,
    SweepPlan,
    report_of,
)
from filesink.ledger.record import BatchWrite
from filesink.ledger.sweep import Leftover
from filesink.parts.committables import DiscardFile, PendingFile
from filesink.parts.stages.closed_parts import Compaction
from filesink.parts.stages.held_rows import OPEN_ROWS
from formats.sizes import size_text
from tests.fakes import World, keep_open, micro_batch, plan_of, records, staged


def outcome(cause, *, replayed=False):
    """An epoch of one finished file and one that was merged into it."""
    file = PendingFile(bucket="a", target="a/part-0", staged=staged("a/.x", 7), rows=3, size=7)
    return Outcome(
        slot=4, cause=cause, rows=3, committables=[file, DiscardFile(path="a/.y")], replayed=replayed
    )


def test_a_report_of_an_epoch():
    """Files that became visible, their rows and bytes, and Spark's number of the batch."""
    report = report_of(outcome(micro_batch(9)))
    assert report.files == (FinishedFile(path="a/part-0", bucket="a", rows=3, bytes=7),)
    assert (report.epoch, report.rows, report.bytes, report.batch_id) == (4, 3, 7, 9)
    assert repr(report) == "<EpochReport epoch 4, batch 9: 3 rows in: 3 visible in 1 file, 7 B>"


def test_a_report_tells_where_the_rows_are():
    """Visible, in open parts, waiting for compaction and in dead letters, each apart from the others."""
    files = [FinishedFile(path=name, bucket=name, rows=4, bytes=1024) for name in ("a", "_dead_letters/a")]
    report = EpochReport(epoch=7, rows=1, bytes=2048, files=files, open_rows=1500, waiting_rows=2)
    assert (report.visible_rows, report.dead_letters) == (4, 4)
    assert repr(report) == (
        "<EpochReport epoch 7: 1 row in: 4 visible in 2 files, 2.0 KiB, 1,500 in open parts, "
        "2 waiting for compaction, 4 in dead letters>"
    )
    assert repr(EpochReport(epoch=7, rows=500, bytes=0, files=[], open_rows=500, waiting_rows=0)) == (
        "<EpochReport epoch 7: 500 rows in: 0 visible, 500 in open parts>"
    )


def test_a_report_of_an_overwrite():
    """What was replaced, and what should have been and is still there."""
    file = FinishedFile(path="a", bucket="", rows=4, bytes=5)
    replaced = EpochReport(epoch=7, rows=4, bytes=5, files=[file], replaced=["b"], not_removed=["c", "d"])
    assert repr(replaced).endswith("4 visible in 1 file, 5 B; replaced 1 file; 2 files not removed yet>")


def of_chain(world, cause, *partitions):
    """The report of one more epoch of a world."""
    return report_of(world.driver().run(cause, world.job(*partitions)))


def test_what_an_epoch_leaves_open():
    """All that is hidden in open parts when it is done; a replay does not know."""
    world = World(plan=plan_of(policy=keep_open()))
    assert of_chain(world, micro_batch(0), records("1"), records("2")).open_rows == 2
    report = of_chain(world, micro_batch(1), records("3"))
    assert (report.rows, report.visible_rows, report.open_rows, report.waiting_rows) == (1, 0, 3, 0)
    assert OPEN_ROWS not in report.metrics
    again = of_chain(world, micro_batch(1), records("3"))
    assert (again.already_committed, again.open_rows, again.waiting_rows) == (True, None, None)
    closed = report_of(world.driver().finish())
    assert (closed.rows, closed.visible_rows, closed.open_rows, closed.waiting_rows) == (0, 3, 0, 0)


def test_what_waits_for_compaction():
    """Files whose time has not come are told apart from open parts."""
    strategy = FileCompactStrategy(checkpoints=2)
    world = World(compaction=Compaction(strategy=strategy, compactor=FileCompactor.concat_file_compactor()))
    first = of_chain(world, micro_batch(0), records("1", "2"))
    assert (first.visible_rows, first.open_rows, first.waiting_rows) == (0, 0, 2)
    second = of_chain(world, micro_batch(1), records("3"))
    assert (second.visible_rows, second.open_rows, second.waiting_rows) == (3, 0, 0)


def test_a_report_of_a_merge():
    """What went in and came out, how long it took, and how often each visible byte was written."""
    merged = {"merged_files_in": 2, "merged_bytes_in": 2048, "merged_files_out": 1, "merged_bytes_out": 1024}
    files = [FinishedFile(path=name, bucket="", rows=1, bytes=1024) for name in "ab"]
    report = EpochReport(epoch=0, rows=2, bytes=2048, files=files, metrics={**merged, "merge_ms": 12})
    assert repr(report).endswith("2 files, 2.0 KiB; merged 2 (2.0 KiB) into 1 (1.0 KiB) in 12 ms>")
    assert report.write_amplification == 2.0  # one written once, one made of twice its bytes
    assert report_of(outcome(micro_batch(9))).write_amplification == 1.0
    assert EpochReport(epoch=0, rows=2, bytes=0, files=[]).write_amplification is None


def test_a_report_of_a_repeated_write():
    """A batch write has no batch id, and one that was committed before says so."""
    report = report_of(outcome(BatchWrite(txn_id="t"), replayed=True))
    assert report.already_committed
    assert report.batch_id is None
    assert repr(report) == "<EpochReport epoch 4: already committed, 3 rows in 1 file, 7 B>"


def test_a_report_in_a_notebook():
    """A table of at most 20 files in which names are escaped."""
    files = [FinishedFile(path=f"<b>{number}", bucket="", rows=1, bytes=1) for number in range(25)]
    text = EpochReport(epoch=0, rows=25, bytes=25, files=files)._repr_html_()
    assert "&lt;b&gt;0" in text
    assert "<b>" not in text
    assert text.count("<tr>") == 21
    assert "and 5 more" in text


def test_a_sweep_plan_adds_up():
    """The size of what would go."""
    plan = SweepPlan(
        files=[Leftover(path="a", size=1024, reason="r"), Leftover(path="b", size=512, reason="r")]
    )
    assert plan.bytes == 1536
    assert repr(plan) == "<SweepPlan 2 files, 1.5 KiB>"


def test_an_empty_recovery():
    """Nothing was done."""
    assert RecoveryReport() == RecoveryReport(published=(), retracted=(), lost_rows=0, swept=0)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (3 << 20, "3.0 MiB"),
        (5 << 30, "5.0 GiB"),
        (7 << 50, "7168.0 TiB"),
    ],
)
def test_sizes_for_people(size, text):
    """Binary units, one digit."""
    assert size_text(size) == text
