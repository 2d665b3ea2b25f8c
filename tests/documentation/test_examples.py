"""The demo does what it says, for anybody who reads its files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from examples import flights

ROOT = Path(__file__).resolve().parents[2]
ORDER = [(name, "ascending") for name in flights.TYPES]


def test_the_source_is_every_flight_in_twelve_files(tmp_path: Path) -> None:
    """Splitting by month loses and repeats nothing: a file's month is in its name."""
    flights.prepare(tmp_path)
    months = {file.stem: pq.read_table(file) for file in tmp_path.iterdir()}
    assert sorted(months) == [f"2013-{month:02}" for month in range(1, 13)]
    assert all(pc.unique(table["month"]).to_pylist() == [int(name[-2:])] for name, table in months.items())
    assert sum(table.num_rows for table in months.values()) == flights.ROWS == flights.load().num_rows


def test_the_source_is_prepared_once(tmp_path: Path) -> None:
    """A second call leaves the files alone, or a streaming source would take them for new ones."""
    flights.prepare(tmp_path)
    before = {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    flights.prepare(tmp_path)
    assert {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()} == before


def test_an_interrupted_preparation_is_completed(tmp_path: Path) -> None:
    """A month that is missing is written; nothing unfinished has the name of a source file."""
    flights.prepare(tmp_path)
    (tmp_path / "2013-05.parquet").unlink()
    flights.prepare(tmp_path)
    assert sum(pq.read_metadata(file).num_rows for file in tmp_path.glob("*.parquet")) == flights.ROWS


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_demo_writes_every_flight_once_and_a_second_run_adds_nothing(tmp_path: Path) -> None:
    """After one run and after two, the visible files hold the source's rows, each in its day."""
    first = _run_demo(tmp_path)
    assert f"{flights.ROWS:,} rows added" in first
    files = _visible(tmp_path / "flights")
    source = flights.load()
    assert _rows(files, source.schema).equals(source.sort_by(ORDER))
    assert all(_days(file) == {file.parent.name} for file in files)

    second = _run_demo(tmp_path)
    assert "nothing to add" in second
    assert _visible(tmp_path / "flights") == files


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.timeout(1200)
def test_five_engines_read_one_directory(tmp_path: Path) -> None:
    """Each finds every flight by its own kind of table: the program compares them with the source."""
    told = _run_demo(tmp_path, program="tables_demo.py")
    answers = {line.partition(":")[2].strip() for line in told.splitlines() if ", by " in line}
    assert told.count(", by ") == 5
    assert len(answers) == 1


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.timeout(1200)
def test_the_picture_of_a_crash_is_true(tmp_path: Path) -> None:
    """Spark's sink shows rows of the killed batch, and twice in the end; ours shows none, and then all."""
    told = _run_demo(tmp_path, program="crash_demo.py")
    assert "Spark's file sink: 750 rows after the kill, 1,750 in the end" in told
    assert "filesink: 0 rows after the kill, 1,000 in the end" in told


def _run_demo(output: Path, *, program: str = "flights_demo.py") -> str:
    command = [sys.executable, str(ROOT / "examples" / program), "--output", str(output)]
    done = subprocess.run(  # noqa: S603 - our own program
        command, cwd=output, capture_output=True, text=True, check=False, timeout=500
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _visible(base: Path) -> list[Path]:
    """What a reader sees who skips names that begin with a dot or an underscore."""
    files = [file for file in base.rglob("*") if file.is_file()]
    return sorted(file for file in files if not any(part[0] in "._" for part in file.relative_to(base).parts))


def _rows(files: list[Path], schema: pa.Schema) -> pa.Table:
    tables = [pq.ParquetFile(file).read().cast(schema) for file in files]
    return pa.concat_tables(tables).combine_chunks().sort_by(ORDER)


def _days(file: Path) -> set[str]:
    hours = pq.ParquetFile(file).read(columns=["time_hour"])["time_hour"]
    return set(pc.strftime(pc.unique(hours), format="%Y-%m-%d").to_pylist())
