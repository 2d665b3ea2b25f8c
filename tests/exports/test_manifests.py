"""``ManifestExport``: who reads the newest snapshot, and who loads each manifest in turn."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import filesink
from filesink import ConfigError, Exporter, ManifestExport
from filesink.buckets.partition_paths import partition_values
from tests.contracts.exporter_contract import ExporterContract, Row, Site, listed


def manifests(base: Path, place: str = "_manifests") -> list[dict[str, Any]]:
    """All of them, in their order."""
    return [json.loads(path.read_text()) for path in sorted((base / place).glob("*.json"))]


def rows_in(base: Path, urls: list[str]) -> Counter[Row]:
    """What the files of a list have."""
    found: Counter[Row] = Counter()
    for url in urls:
        values = dict(partition_values(str(Path(url).relative_to(base).parent)))
        for row in pq.ParquetFile(url).read().to_pylist():
            found[values.get("k", row.get("k")), row["value"], row.get("more")] += 1
    return found


class TestManifests(ExporterContract):
    """The newest snapshot; the chain says the same."""

    def exporter(self, base: Path) -> Exporter:
        del base
        return ManifestExport()

    def rows(self, base: Path) -> Counter[Row]:
        newest = manifests(base, "_manifests/snapshots")[-1]["entries"]
        files: set[str] = set()
        after = 0
        for one in manifests(base):
            assert one["after"] == after
            after = one["version"]
            files -= set(one["removed"])
            files |= {entry["url"] for entry in one["entries"] + one["rewritten"]}
        assert files == {entry["url"] for entry in newest}
        return rows_in(base, sorted(files))

    def steps(self, base: Path) -> int:
        return len(manifests(base))

    def foreign(self, base: Path) -> None:
        (base / "_manifests").mkdir()
        (base / "_manifests" / f"{0:012d}.json").write_text('{"entries": []}')

    def intrude(self, base: Path) -> None:
        (base / "_manifests" / f"{len(manifests(base)):012d}.json").write_text('{"entries": []}')

    def test_files_that_are_not_parquet(self, tmp_path: Path) -> None:
        """Are named like any other."""
        from tests.exports.lines import lines

        base = lines(tmp_path / "base")
        filesink.export(base, self.exporter(base))
        assert len(manifests(base)[0]["entries"]) == 1


def test_who_loads_each_manifest_loads_each_row_once(tmp_path: Path) -> None:
    """A compaction brings no entry that is new."""
    site = Site(tmp_path / "base")
    loaded: Counter[Row] = Counter()
    for number in range(4):
        site.write(str(number))
        filesink.export(site.base, ManifestExport(snapshots="none"))
        loaded += rows_in(site.base, [entry["url"] for entry in manifests(site.base)[-1]["entries"]])
    site.compact()
    filesink.export(site.base, ManifestExport(snapshots="none"))
    last = manifests(site.base)[-1]
    assert (last["entries"], len(last["rewritten"]), len(last["removed"])) == ([], 1, 4)
    assert loaded == listed(site.base)
    assert not (site.base / "_manifests" / "snapshots").exists()


def test_what_erasure_and_rollback_write_anew_is_no_new_entry(tmp_path: Path) -> None:
    """Their files hold only rows that earlier manifests have listed."""
    site = Site(tmp_path / "base", grace_ms=3_600_000)

    def exported() -> list[int]:
        filesink.export(site.base, ManifestExport(snapshots="none"))
        return [len(manifests(site.base)[-1][kind]) for kind in ("entries", "rewritten", "removed")]

    site.write("a", "b", "c")
    assert exported() == [1, 0, 0]
    filesink.erase(site.base, "value = 'b'")
    assert exported() == [0, 1, 1]
    site.overwrite("d")
    assert exported() == [1, 0, 1]
    filesink.rollback(site.base, 2)
    assert exported()[:2] == [0, 1]
    assert filesink.open(site.base).snapshot().dataset().to_table()["value"].to_pylist() == ["a", "c"]


def test_two_snapshots_stay(tmp_path: Path) -> None:
    """Each has the shape that COPY reads: sizes and numbers of rows with every file."""
    site = Site(tmp_path / "base")
    for number in range(4):
        site.write(str(number))
        filesink.export(site.base, ManifestExport())
    snapshots = manifests(site.base, "_manifests/snapshots")
    assert [one["version"] for one in snapshots] == [3, 4]
    first = snapshots[-1]["entries"][0]
    assert first.keys() == {"url", "mandatory", "meta"}
    assert first["meta"] == {"content_length": Path(first["url"]).stat().st_size, "record_count": 1}


def test_wrong_words() -> None:
    """Are refused when they are given."""
    with pytest.raises(ConfigError, match="snapshots must be"):
        ManifestExport(snapshots="all")  # type: ignore[arg-type]
