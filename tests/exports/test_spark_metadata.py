"""``SparkMetadataExport``, as the rules of Spark's log are read here; ``tests/spark`` has Spark itself."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

import filesink
from filesink import Exporter, SparkMetadataExport
from filesink.buckets.partition_paths import partition_values
from tests.contracts.exporter_contract import ExporterContract, Row, Site, listed

ENTRIES = "_spark_metadata"


def entries(base: Path) -> dict[int, list[dict[str, Any]]]:
    """Lines of each entry."""
    found = {}
    for path in (base / ENTRIES).iterdir():
        header, *lines = path.read_text().split("\n")
        assert header == "v1"
        assert path.suffix == (".compact" if (int(path.stem) + 1) % 10 == 0 else "")
        found[int(path.stem)] = [json.loads(line) for line in lines]
    return found


def files(base: Path) -> list[str]:
    """What Spark's ``allFiles`` has: the newest entry, and those before it up to the last compact one."""
    found = entries(base)
    newest = max(found)
    start = max(0, (newest + 1) // 10 * 10 - 1)
    uris = [line["path"] for at in range(start, newest + 1) for line in found[at] if not line["isDir"]]
    prefix = base.absolute().as_uri() + "/"
    assert all(uri.startswith(prefix) for uri in uris)
    return [unquote(uri.removeprefix(prefix)) for uri in uris]


class TestSparkMetadata(ExporterContract):
    """A reader of the log in a few lines."""

    def exporter(self, base: Path) -> Exporter:
        del base
        return SparkMetadataExport()

    def rows(self, base: Path) -> Counter[Row]:
        found: Counter[Row] = Counter()
        for path in files(base):
            values = dict(partition_values(path.rpartition("/")[0]))
            for row in pq.ParquetFile(base / path).read().to_pylist():
                found[values.get("k", row.get("k")), row["value"], row.get("more")] += 1
        return found

    def steps(self, base: Path) -> int:
        return max(entries(base)) + 1

    def foreign(self, base: Path) -> None:
        self._put(base, 0)

    def intrude(self, base: Path) -> None:
        self._put(base, max(entries(base)) + 1)

    @staticmethod
    def _put(base: Path, number: int) -> None:
        (base / ENTRIES).mkdir(exist_ok=True)
        line = {"path": "file:///x", "size": 1, "isDir": False, "modificationTime": 1, "action": "add"}
        (base / ENTRIES / str(number)).write_text(f"v1\n{json.dumps(line)}")

    def test_files_that_are_not_parquet(self, tmp_path: Path) -> None:
        """Are named like any other."""
        from tests.exports.lines import lines

        base = lines(tmp_path / "base")
        filesink.export(base, self.exporter(base))
        assert len(files(base)) == 1


def test_compact_entries_come_in_turn_and_old_ones_go(tmp_path: Path) -> None:
    """Each tenth; an entry in between is as long as what came."""
    site = Site(tmp_path / "base")
    for number in range(45):
        site.write(str(number))
        filesink.export(site.base, SparkMetadataExport())
        assert len(files(site.base)) == number + 1
    found = entries(site.base)
    assert sorted(found) == list(range(19, 45))
    assert {at: len(lines) - 1 for at, lines in found.items() if at > 37} == {
        38: 1, 39: 40, 40: 1, 41: 1, 42: 1, 43: 1, 44: 1,
    }  # fmt: skip


def test_a_removal_is_a_compact_entry_out_of_turn(tmp_path: Path) -> None:
    """It takes the next number that is one."""
    site = Site(tmp_path / "base")
    for number in range(13):
        site.write(str(number))
        filesink.export(site.base, SparkMetadataExport())
    site.overwrite("new")
    filesink.export(site.base, SparkMetadataExport())
    assert max(entries(site.base)) == 19
    assert len(files(site.base)) == len(listed(site.base)) == 1
