"""Which directories the readers of docs/start.md list: what they cannot is refused as a bucket id.

A table of characters and lengths against readers. Those without a JVM are asked here, Spark in
``tests/spark/batches/test_buckets.py``. A reader that begins or ceases to see one of these breaks the test;
then ``filesink.storage.bucket_ids`` and the table in ``docs/part-files.md`` have to follow.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from filesink.buckets.partition_paths import fragment, partition_values
from filesink.ports import SerialRunner
from filesink.storage.bucket_ids import refusal
from filesink.storage.local.posix import PosixFs
from filesink.storage.local.store import LocalStore
from filesink.system import SystemIds
from tests.bucket_names import (
    CHARACTERS,
    NAMES,
    PLACES,
    UNSEEN,
    long_paths,
    make,
    path_of,
    two_files,
)

READERS = ("duckdb", "polars", "pyarrow")


def rows_seen(reader: str, base: Path) -> list[int]:
    """What a reader finds below ``base``, in the way of docs/start.md."""
    match reader:
        case "duckdb":
            return sorted(n for (n,) in duckdb.read_parquet(f"{base}/**/*.parquet").project("n").fetchall())
        case "polars":
            return sorted(pl.scan_parquet(f"{base}/**/*.parquet").select("n").collect()["n"])
        case _:
            return sorted(ds.dataset(base, format="parquet").to_table(columns=["n"])["n"].to_pylist())


def sees_all(reader: str, base: Path) -> bool:
    """Whether a reader finds both files; an error is as bad as a gap."""
    try:
        return rows_seen(reader, base) == [1, 2]
    except (duckdb.Error, pl.exceptions.PolarsError, pa.ArrowException, OSError):
        return False


@pytest.mark.parametrize("character", CHARACTERS, ids=ascii)
def test_characters(tmp_path, character):
    """At the beginning, in the middle and at the end of a name: every reader sees it, or it is refused."""
    for place, pattern in PLACES.items():
        name = pattern.format(character)
        base = two_files(tmp_path / place, name)
        blind = {reader for reader in READERS if not sees_all(reader, base)}
        assert blind == UNSEEN.get((character, place), set()) - {"spark"}
        if blind:
            assert refusal(name) is not None


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_names(tmp_path, name):
    """Globs, escapes and endings that mean something elsewhere are seen by all."""
    base = two_files(tmp_path, name)
    assert [reader for reader in READERS if not sees_all(reader, base)] == []
    assert refusal(name) is None


@pytest.mark.parametrize("character", CHARACTERS, ids=ascii)
def test_values_of_partitions_come_back(tmp_path, character):
    """Escaped as Hive does: what is refused as an id is a value like others, read back as it was."""
    values = [pattern.format(character) for pattern in PLACES.values()]
    for number, value in enumerate(values):
        directory = tmp_path / fragment("k", value)
        assert refusal(directory.name) is None
        directory.mkdir()
        pq.write_table(pa.table({"n": [number]}), directory / "part-0.parquet")
        assert partition_values(directory.name) == [("k", value)]
    found = (
        duckdb.read_parquet(f"{tmp_path}/**/*.parquet", hive_partitioning=True)
        .order("n")
        .project("k::VARCHAR")
    )
    assert [k for (k,) in found.fetchall()] == values
    schema = pa.schema([("n", pa.int64()), ("k", pa.string())])
    table = ds.dataset(
        tmp_path,
        format="parquet",
        schema=schema,
        partitioning=ds.partitioning(pa.schema([("k", pa.string())]), flavor="hive"),
    )
    assert table.to_table().sort_by("n")["k"].to_pylist() == values
    frame = pl.scan_parquet(f"{tmp_path}/**/*.parquet", hive_partitioning=True, hive_schema={"k": pl.String})
    assert frame.sort("n").collect()["k"].to_list() == values


@pytest.mark.parametrize("path", long_paths(), ids=lambda path: f"{len(path)} {path.count('/') + 1}")
def test_long_and_deep_paths(tmp_path, path):
    """As long and as deep as an id may be."""
    assert refusal(path) is None
    base = two_files(tmp_path, path)
    assert [reader for reader in READERS if not sees_all(reader, base)] == []


@pytest.mark.parametrize("length", [4095, 4096])
def test_paths_with_the_base(tmp_path, length):
    """PATH_MAX: what is a byte longer can be written, and DuckDB and Spark pass over it in silence."""
    base = two_files(tmp_path, "k=v")
    (base / "k=v" / "part-0.parquet").unlink()
    fs, path = PosixFs(str(base)), path_of(length - len(f"{base}/"))
    store = LocalStore(fs, runner=SerialRunner(), ids=SystemIds())
    make(fs, path)
    seen = [reader for reader in READERS if sees_all(reader, base)]
    shutil.rmtree(base / path[:200])  # pytest could not
    assert (seen, store.refusal(path) is None) == ((list(READERS), True) if length < 4096 else ([], False))
