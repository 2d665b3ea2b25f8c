"""``DeltaExport``, as delta-rs reads it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

import filesink
from filesink import ConfigError, DeltaExport, Exporter, ExportError
from tests.contracts.exporter_contract import ExporterContract, Row, Site, rows_of
from tests.exports.instants import NOON, ZONES, at_noon
from tests.sink_directory.written import Written

deltalake = pytest.importorskip("deltalake")


def commits(base: Path) -> list[list[dict[str, dict[str, object]]]]:
    """The actions of all commits."""
    names = sorted((base / "_delta_log").glob("*.json"))
    return [[json.loads(text) for text in name.read_text().splitlines()] for name in names]


class TestDelta(ExporterContract):
    """By ``deltalake``, which decodes paths and partition values by itself."""

    def exporter(self, base: Path) -> Exporter:
        del base
        return DeltaExport()

    def rows(self, base: Path) -> Counter[Row]:
        return rows_of(deltalake.DeltaTable(base.as_uri()).to_pyarrow_table())

    def steps(self, base: Path) -> int:
        return len(commits(base))

    def foreign(self, base: Path) -> None:
        deltalake.DeltaTable.create(str(base), deltalake.Schema.from_arrow(pa.schema([("v", pa.int64())])))

    def intrude(self, base: Path) -> None:
        table = deltalake.DeltaTable(str(base))
        deltalake.write_deltalake(table, pa.table({"k": ["z"], "value": ["z"]}), mode="append")


def test_compaction_is_no_change_of_data(tmp_path: Path) -> None:
    """So that a stream that reads the table sees nothing of it."""
    site = Site(tmp_path / "base")
    site.write("a")
    site.write("b")
    filesink.export(site.base, DeltaExport())
    site.compact()
    filesink.export(site.base, DeltaExport())
    *_, last = commits(site.base)
    files = [next(iter(action.values())) for action in last if action.keys() & {"add", "remove"}]
    assert [file["dataChange"] for file in files] == [False] * 3


def test_a_compaction_of_files_that_were_never_exported_brings_their_rows(tmp_path: Path) -> None:
    """A stream would miss them otherwise."""
    site = Site(tmp_path / "base")
    site.write("a")
    filesink.export(site.base, DeltaExport())
    site.write("b")
    site.compact()
    filesink.export(site.base, DeltaExport())
    *_, last = commits(site.base)
    assert [action["add"]["dataChange"] for action in last if "add" in action] == [True]


def test_the_protocol_is_the_lowest_that_will_do(tmp_path: Path) -> None:
    """Old readers can read it; columns are told once, and again when they change."""
    site = Site(tmp_path / "base")
    site.write("a")
    for more in (None, None, 1, 2):
        filesink.export(site.base, DeltaExport())
        site.write("b", more=more)
    filesink.export(site.base, DeltaExport())
    told = [action for actions in commits(site.base) for action in actions]
    assert [one["protocol"] for one in told if "protocol" in one] == [
        {"minReaderVersion": 1, "minWriterVersion": 2}
    ] * 2
    assert len([one for one in told if "metaData" in one]) == 2


def test_vacuum_of_others_takes_no_file(tmp_path: Path) -> None:
    """Not even those that wait for their export, nor the ledger."""
    site = Site(tmp_path / "base")
    site.write("a")
    filesink.export(site.base, DeltaExport())
    site.write("b")
    before = site.files()
    table = deltalake.DeltaTable(str(site.base))
    assert table.vacuum(dry_run=False) == []
    with pytest.raises(deltalake.exceptions.DeltaError, match="retention"):
        table.vacuum(retention_hours=0, dry_run=False)
    assert before.items() <= site.files().items()


def test_what_says_nothing_about_data_may_come_in_between(tmp_path: Path) -> None:
    """Spark's VACUUM, for one, writes commits without files."""
    site = Site(tmp_path / "base")
    site.write("a")
    filesink.export(site.base, DeltaExport())
    note = json.dumps({"commitInfo": {"operation": "VACUUM START", "engineInfo": "Apache-Spark"}})
    (site.base / "_delta_log" / f"{1:020d}.json").write_text(note)
    site.write("b")
    filesink.export(site.base, DeltaExport())
    assert deltalake.DeltaTable(str(site.base)).version() == 2
    assert rows_of(deltalake.DeltaTable(str(site.base)).to_pyarrow_table()).total() == 2


def test_checkpoints(tmp_path: Path) -> None:
    """As often as was asked for; readers and the next export take them."""
    site = Site(tmp_path / "base")
    for value in "abcde":
        site.write(value)
        filesink.export(site.base, DeltaExport(checkpoint_every=2))
    assert len(list((site.base / "_delta_log").glob("*.checkpoint.parquet"))) == 2
    assert rows_of(deltalake.DeltaTable(str(site.base)).to_pyarrow_table()).total() == 5


def test_without_checkpoints_no_parquet_file_is_among_the_data(tmp_path: Path) -> None:
    """For readers who take ``**/*.parquet``."""
    site = Site(tmp_path / "base")
    for value in "abcdefghijk":
        site.write(value)
        filesink.export(site.base, DeltaExport())
    assert not list((site.base / "_delta_log").glob("*.parquet"))


def test_a_timestamp_without_zone_asks_for_a_newer_reader() -> None:
    """As Delta has it; one with a zone does not."""
    from filesink.exports.delta.actions import protocol

    for zone, reader in ((None, 3), ("UTC", 1)):
        inner = pa.struct([("at", pa.list_(pa.timestamp("us", tz=zone)))])
        assert protocol(pa.schema([("x", inner)]))["minReaderVersion"] == reader


@pytest.mark.parametrize("wrong", [0, -1, True, "10", 1.5])
def test_wrong_intervals(wrong: object) -> None:
    """Are refused when they are given."""
    with pytest.raises(ConfigError, match="checkpoint_every"):
        DeltaExport(checkpoint_every=wrong)  # type: ignore[arg-type]


def test_instants_are_exported_whatever_zone_their_session_had(tmp_path: Path) -> None:
    """A zone is how an instant is shown, in columns of nested types, too; Delta's type has none."""
    base = tmp_path / "base"
    written = Written(base, partitions=())
    for zone in ZONES:
        written.write(at_noon(zone))
        filesink.export(base, DeltaExport())
    read = deltalake.DeltaTable(base.as_uri()).to_pyarrow_table().to_pylist()
    assert [(row["at"], row["all"]) for row in read] == [(NOON, [NOON])] * len(ZONES)


def test_a_type_that_delta_lacks_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A native library adds the frames of its own stack."""
    monkeypatch.setenv("RUST_BACKTRACE", "1")
    base = tmp_path / "base"
    Written(base, partitions=()).write(pa.RecordBatch.from_pydict({"for": pa.array([1], pa.duration("s"))}))
    with pytest.raises(ExportError, match=r"Delta has no such columns .*Duration.*Read the path") as raised:
        filesink.export(base, DeltaExport())
    assert raised.value.code == "NOT_EXPORTABLE"
    assert "\n" not in raised.value.message
