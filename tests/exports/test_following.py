"""Exports follow the epochs, whatever becomes of them."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest

import filesink
from filesink import (
    BucketAssigner,
    ConfigError,
    DeltaExport,
    ExportEnded,
    Exporter,
    ExportError,
    FileSink,
    ManifestExport,
    ParquetWriterFactory,
    SparkMetadataExport,
)
from filesink.api.events import Listeners
from filesink.errors import CommitStateUnknown
from filesink.exports.api import ExportPlan, OnExportFailure
from filesink.exports.following import Exports
from filesink.ports import Ports, SerialRunner
from filesink.storage.retrying import RetryingStore
from filesink.telemetry.measures import measures_of
from tests.exports.lists import Names, away
from tests.sink_directory.written import Written, records


class Followed:
    """A path, and the exports of a sink of it."""

    def __init__(self, base: Path, *exporters: Names, on_failure: OnExportFailure = OnExportFailure.LAG):
        self.written = Written(base)
        self.events: list[ExportEnded] = []
        world = self.written.world
        self.exports = Exports(
            ExportPlan(exporters=exporters, on_failure=on_failure),
            open_directory=lambda: filesink.open(base),
            ports=Ports(
                clock=world.clock,
                ids=world.ids,
                runner=SerialRunner(),
                audience=Listeners(str(base), [self.events.append]),
            ),
        )

    def epoch(self, value: str) -> dict[str, int | None]:
        """Write one row; what ``run`` says after it."""
        self.written.write(records(1, value))
        return dict(self.exports.run())


def test_each_is_brought_to_the_newest_version(tmp_path: Path) -> None:
    """After each epoch, and once: the target says itself how far it is."""
    one, other = Names("one"), Names("other")
    followed = Followed(tmp_path / "base", one, other)
    for version in (1, 2, 3):
        assert followed.epoch("a") == {"one": 0, "other": 0}
        assert one.files == other.files == {str(p.relative_to(tmp_path / "base")) for p in data(tmp_path)}
        assert one.at == version
    followed.exports.run()
    assert one.calls == [1, 2, 3]


def data(tmp_path: Path) -> list[Path]:
    """What a lister sees."""
    return [path for path in (tmp_path / "base").rglob("*.parquet") if not path.name.startswith(".")]


def test_one_that_fails_is_behind_and_catches_up(tmp_path: Path) -> None:
    """The others have their turn all the same; it needs one step for all that it has missed."""
    broken, whole = Names("broken"), Names("whole")
    followed = Followed(tmp_path / "base", broken, whole)
    followed.epoch("a")
    broken.fails = away()
    assert followed.epoch("b") == {"broken": 1, "whole": 0}
    assert followed.epoch("c") == {"broken": 2, "whole": 0}
    broken.fails = None
    assert followed.epoch("d") == {"broken": 0, "whole": 0}
    assert broken.calls == [1, 4]
    assert broken.files == whole.files


def test_nobody_knows_how_far_one_is_that_never_answered(tmp_path: Path) -> None:
    """That is not the same as being at no version."""
    followed = Followed(tmp_path / "base", Names("silent", away()))
    assert followed.epoch("a") == {"silent": None}


def test_a_failure_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Until it has succeeded; then the next one is news."""
    exporter = Names("names", away())
    followed = Followed(tmp_path / "base", exporter)
    with caplog.at_level(logging.WARNING, "filesink"):
        followed.epoch("a")
        followed.epoch("b")
        assert len(caplog.records) == 1
        assert "export names failed" in caplog.text
        assert "the catalog does not answer" in caplog.text
        exporter.fails = None
        followed.epoch("c")
        exporter.fails = away()
        followed.epoch("d")
    assert len(caplog.records) == 2


def test_listeners_hear_of_each_turn(tmp_path: Path) -> None:
    """And metrics have how far behind it is."""
    exporter = Names()
    followed = Followed(tmp_path / "base", exporter)
    followed.epoch("a")
    exporter.fails = ValueError("a defect")
    followed.epoch("b")
    good, bad = followed.events
    assert (good.export, good.version, good.behind, good.error, good.kind) == ("names", 1, 0, "", "export")
    assert (bad.version, bad.behind, bad.error, bad.code) == (1, 1, "ValueError", "")
    found = {(one.metric.name, one.labels): one.value for one in measures_of(bad)}
    assert found["filesink_exports_total", ("names", "failed")] == 1
    assert found["filesink_export_behind_versions", ("names",)] == 1


def test_a_failure_fails_whoever_asked_for_that(tmp_path: Path) -> None:
    """After all have had their turn; the sentence says that the data is there."""
    broken, whole = Names("broken", away()), Names("whole")
    followed = Followed(tmp_path / "base", broken, whole, on_failure=OnExportFailure.FAIL)
    with pytest.raises(ExportError, match="files are visible, but export broken failed") as raised:
        followed.epoch("a")
    assert raised.value.code == "EXPORT"
    assert whole.at == 1


def test_a_path_without_inventory_is_no_defect(tmp_path: Path) -> None:
    """The export is behind until somebody adopts the path."""
    exporter = Names()
    followed = Followed(tmp_path / "base", exporter)
    followed.epoch("a")
    followed.written.forget_inventory()
    assert followed.exports.run() == {"names": None}
    filesink.adopt(tmp_path / "base")
    assert followed.exports.run() == {"names": 0}


def test_threads_wait_for_each_other(tmp_path: Path) -> None:
    """Batch writes of one sink may run side by side; an exporter is called by one at a time."""

    class Alone(Names):
        def bring_to(self, directory: filesink.SinkDirectory, version: int) -> None:
            assert entered.acquire(blocking=False)
            super().bring_to(directory, version)
            entered.release()

    entered, exporter = threading.Lock(), Alone()
    followed = Followed(tmp_path / "base", exporter)
    followed.written.write(records(1, "a"))
    threads = [threading.Thread(target=followed.exports.run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert exporter.calls == [1]


def test_by_hand(tmp_path: Path) -> None:
    """A path that has epochs already; the second call finds it done."""
    written, exporter = Written(tmp_path / "base"), Names()
    written.write(records(1, "a"))
    written.write(records(1, "b"))
    report = filesink.export(tmp_path / "base", exporter)
    assert (report.name, report.before, report.version) == ("names", None, 2)
    assert repr(report) == "<ExportReport names: at version 2; it is new>"
    assert repr(filesink.export(tmp_path / "base", exporter)) == (
        "<ExportReport names: is at version 2 already>"
    )
    written.write(records(1, "c"))
    assert filesink.export(tmp_path / "base", exporter).line() == "names: at version 3; it was at version 2"


def test_two_exports_of_one_name_are_refused() -> None:
    """Reports and metrics could not tell them apart."""
    builder = FileSink.for_bulk_format("/nowhere", ParquetWriterFactory()).with_export(Names())
    with pytest.raises(ConfigError, match="there is an export 'names' already") as raised:
        builder.with_export(Names())
    assert raised.value.code == "CONFLICT"


def test_a_builder_takes_exporters_only() -> None:
    """A class is none, as elsewhere."""
    builder = FileSink.for_bulk_format("/nowhere", ParquetWriterFactory())
    with pytest.raises(ConfigError, match="exporter must be"):
        builder.with_export(Names)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="on_export_failure must be"):
        builder.on_export_failure("retry")  # type: ignore[arg-type]
    builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).with_export(Names()).build()


@pytest.mark.parametrize("exporter", [DeltaExport(), ManifestExport(snapshots="none"), SparkMetadataExport()])
def test_answers_that_always_get_lost_end_a_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exporter: Exporter
) -> None:
    """An export that never learns whether its entry was made gives up until the next epoch."""
    written = Written(tmp_path / "base")
    written.write(records(1, "a"))

    def lost(_store: RetryingStore, path: str, _data: bytes) -> None:
        raise CommitStateUnknown(f"it is not known whether '{path}' was created", code="UNKNOWN")

    monkeypatch.setattr(RetryingStore, "put_if_absent", lost)
    with pytest.raises(ExportError, match="Nothing is half done") as raised:
        filesink.export(tmp_path / "base", exporter)
    assert raised.value.code == "NO_PROGRESS"
