"""What notebooks show: HTML in which every name is text."""

from __future__ import annotations

from pathlib import Path

import filesink
from filesink import FileSink, ParquetWriterFactory
from filesink.errors import StorageError
from filesink.file_sink.report import EpochReport
from filesink.sink_directory.notebook import shown
from filesink.spark.recent_outcomes import Reports
from tests.operations.broken_paths import U, flip, whole

HOSTILE = "<img src=x onerror=alert(1)>"


def test_a_directory_in_a_notebook(tmp_path: Path) -> None:
    """Path, version, rows and sinks; a hostile path is text."""
    base = tmp_path / HOSTILE / "base"
    base.parent.mkdir()
    whole(base)
    directory = filesink.open(base)
    text = directory._repr_html_()
    assert "<img" not in text
    assert "&lt;img src=x" in text
    assert f"version {directory.version}: {directory.snapshot().rows} rows" in text
    assert "<td>uid-u</td>" in text


def test_damage_in_a_notebook(tmp_path: Path) -> None:
    """Is a sentence."""
    whole(tmp_path / "base")
    flip(max((tmp_path / "base" / U).glob("*.record")))
    assert "<p>damaged: " in filesink.open(tmp_path / "base")._repr_html_()


def test_a_store_that_does_not_answer_in_a_notebook() -> None:
    """Is a sentence, too, and no traceback."""

    def look():
        raise StorageError(f"no answer from {HOSTILE}", code="X")

    assert shown(HOSTILE, look).count("&lt;img") == 2


def test_a_sink_in_a_notebook() -> None:
    """Its path is text, and its options are not there."""
    sink = (
        FileSink.for_bulk_format(f"/data/{HOSTILE}", ParquetWriterFactory())
        .with_storage_options(key="hidden")
        .build()
    )
    text = sink._repr_html_()
    assert "<img" not in text
    assert "hidden" not in text


def test_reports_in_a_notebook() -> None:
    """The newest on top; without any, that is said. They are a list all the same."""
    reports = Reports(EpochReport(epoch=number, rows=1, bytes=0, files=[]) for number in (1, 2))
    text = reports._repr_html_()
    assert text.index("epoch 2") < text.index("epoch 1")
    assert "<EpochReport" not in text
    assert len(reports) == 2
    assert Reports([])._repr_html_() == "<p>no epoch yet</p>"
