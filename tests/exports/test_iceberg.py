"""``IcebergExport`` in a catalog of SQL, as pyiceberg reads it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest

import filesink
from filesink import ConfigError, Exporter, ExportError, IcebergExport
from filesink.exports.api import ExportPlan
from filesink.exports.following import Exports
from tests.contracts.exporter_contract import ExporterContract, Row, Site, rows_of
from tests.exports.instants import ZONES, at_noon
from tests.fakes import World
from tests.sink_directory.written import Written

pyiceberg = pytest.importorskip("pyiceberg.catalog")
pytest.importorskip("sqlalchemy")

TABLE = "lake.trips"


def catalog_of(base: Path) -> dict[str, str]:
    """Beside the path."""
    place = str(base.parent / "catalog.db")
    return {
        "name": "lake",
        "type": "sql",
        "uri": f"sqlite:///{place}",
        "warehouse": str(base.parent / "warehouse"),
    }


def catalog(base: Path):  # type: ignore[no-untyped-def]
    """As somebody else has it."""
    return pyiceberg.load_catalog(**catalog_of(base))


def load(base: Path):  # type: ignore[no-untyped-def]
    """The table, as a new reader has it."""
    return catalog(base).load_table(TABLE)


class TestIceberg(ExporterContract):
    """By pyiceberg's own reader: columns of directories come from the partitions."""

    places: ClassVar[tuple[str, ...]] = (
        "/filesink/storage/local/store.py", "/pyiceberg/catalog/sql.py", "/pyiceberg/io/pyarrow.py",
    )  # fmt: skip
    moments: ClassVar[int] = 25

    def exporter(self, base: Path) -> Exporter:
        return IcebergExport(catalog_of(base), TABLE)

    def rows(self, base: Path) -> Counter[Row]:
        return rows_of(load(base).scan().to_arrow())

    def steps(self, base: Path) -> int:
        return len(load(base).snapshots())

    def foreign(self, base: Path) -> None:
        found = catalog(base)
        found.create_namespace("lake")
        found.create_table(TABLE, pa.schema([("v", pa.int64())]))

    def intrude(self, base: Path) -> None:
        table = load(base)
        columns = {"k": pa.array(["z"]), "value": pa.array(["z"])}
        table.append(pa.table({name: columns[name] for name in table.schema().column_names}))


def test_metadata_stays_as_short_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old snapshots are forgotten, and manifests merged."""
    monkeypatch.setattr("filesink.exports.iceberg.export._SNAPSHOTS", 5)
    site = Site(tmp_path / "base")
    for number in range(30):
        site.write(str(number))
        filesink.export(site.base, IcebergExport(catalog_of(site.base), TABLE))
    table = load(site.base)
    assert 5 <= len(table.snapshots()) <= 10
    assert len(table.current_snapshot().manifests(table.io)) <= 21
    assert table.scan().to_arrow().num_rows == 30


def test_each_snapshot_is_a_version(tmp_path: Path) -> None:
    """Readers of an older one see what the path had then."""
    site = Site(tmp_path / "base")
    for number in range(3):
        site.write(str(number))
        filesink.export(site.base, IcebergExport(catalog_of(site.base), TABLE))
    table = load(site.base)
    for number, snapshot in enumerate(table.snapshots()):
        assert snapshot.summary["filesink.version"] == str(number + 1)
        assert table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().num_rows == number + 1


def test_a_copy_of_the_path_has_no_part_in_its_table(tmp_path: Path) -> None:
    """It has the same id, but its files lie elsewhere: the table would mix both."""
    site, copy = Site(tmp_path / "base"), tmp_path / "copy"
    site.write("a")
    export = IcebergExport(catalog_of(site.base), TABLE)
    filesink.export(site.base, export)
    filesink.copy(site.base, copy)
    with pytest.raises(ExportError, match="FOREIGN_TARGET"):
        filesink.export(copy, export)


def test_others_may_not_remove_files(tmp_path: Path) -> None:
    """The table says that its files are not its own."""
    site = Site(tmp_path / "base")
    site.write("a")
    filesink.export(site.base, IcebergExport(catalog_of(site.base), TABLE))
    assert load(site.base).properties["gc.enabled"] == "false"


def test_a_catalog_that_is_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Epochs go on, the export says how far it is behind, and catches up when the catalog is back."""
    site = Site(tmp_path / "base")
    exporter = IcebergExport(catalog_of(site.base), TABLE)
    exports = Exports(
        ExportPlan(exporters=(exporter,)), open_directory=lambda: site.directory, ports=World().ports()
    )
    site.write("a")
    assert exports.run() == {"iceberg": 0}
    with monkeypatch.context() as down:
        down.setattr("pyiceberg.catalog.sql.SqlCatalog.load_table", _refused)
        for number in range(1, 3):
            site.write("b")
            assert exports.run() == {"iceberg": number}
    assert load(site.base).scan().to_arrow().num_rows == 1
    assert exports.run() == {"iceberg": 0}
    assert load(site.base).scan().to_arrow().num_rows == 3


def _refused(*_: object, **__: object) -> None:
    raise ConnectionError("the catalog does not answer")


def test_wrong_arguments() -> None:
    """A secret of the properties is in no message."""
    for wrong in ("trips", "lake.", "", 5):
        with pytest.raises(ConfigError):
            IcebergExport({"type": "sql", "uri": "sqlite://"}, wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigError) as raised:
        IcebergExport({"type": "sql", "uri": "nonsense://user:secret@host"}, TABLE)
    assert "secret" not in str(raised.value)
    with pytest.raises(ConfigError, match="catalog must be"):
        IcebergExport("rest", TABLE)  # type: ignore[arg-type]


def test_instants_are_exported_whatever_zone_their_session_had(tmp_path: Path) -> None:
    """A zone is how an instant is shown, in columns of nested types, too; Iceberg's type has none."""
    base = tmp_path / "base"
    written = Written(base, partitions=())
    for zone in ZONES:
        written.write(at_noon(zone))
        filesink.export(base, IcebergExport(catalog_of(base), TABLE))
    read = [str(field.field_type) for field in load(base).schema().fields]
    assert read == ["timestamptz", "list<timestamptz>"]
