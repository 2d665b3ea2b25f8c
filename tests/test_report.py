"""What users are told."""

from __future__ import annotations

import pytest

from filesink.committables import DiscardFile, PendingFile
from filesink.epoch import Outcome
from filesink.epoch_record import BatchWrite
from filesink.report import EpochReport, FinishedFile, RecoveryReport, SweepPlan, report_of, size_text
from filesink.sweep import Leftover
from tests.fakes import micro_batch, staged


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
    assert repr(report) == "<EpochReport epoch 4, batch 9: committed 3 rows, 1 files, 7 B>"


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
    assert "already committed" in repr(report)


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
    assert repr(plan) == "<SweepPlan 2 hidden files, 1.5 KiB>"


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
