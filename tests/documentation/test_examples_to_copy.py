"""Programs that people copy do what their first line asks, in a session of ours."""

from __future__ import annotations

import ast
import datetime as dt
import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from filesink import GlueCatalog
from tests.spark.conftest import spark  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TO_COPY = ("changes_to_files.py", "crash_demo.py", "daily_job.py", "kafka_to_s3.py")
FIRST, SECOND = dt.date(2026, 1, 30), dt.date(2026, 1, 31)


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a program as it imports others: its directory is on the path."""
    monkeypatch.syspath_prepend(str(EXAMPLES))

    def imported(name: str) -> ModuleType:
        return importlib.import_module(name)

    return imported


def rows(pattern: Path, columns: str) -> list[tuple[Any, ...]]:
    """What DuckDB reads, which knows nothing of sinks."""
    query = f"SELECT {columns} FROM read_parquet('{pattern}', hive_partitioning = true) ORDER BY ALL"  # noqa: S608
    return duckdb.sql(query).fetchall()


@pytest.mark.parametrize("name", TO_COPY)
def test_its_first_line_is_a_question(name: str) -> None:
    """And the page of examples asks it, too, in the same words."""
    question = (ast.get_docstring(ast.parse((EXAMPLES / name).read_text())) or "").partition("?")[0] + "?"
    assert "\n" not in question
    assert name in (EXAMPLES / "README.md").read_text()
    assert question in (EXAMPLES / "README.md").read_text()


@pytest.mark.spark
@pytest.mark.slow
def test_a_day_that_is_run_again_is_replaced_and_no_other(
    spark: SparkSession,  # noqa: F811 - the fixture
    tmp_path: Path,
    example,
) -> None:
    """The same run writes nothing; a new one replaces its day as a whole."""
    job = example("daily_job")
    base = tmp_path / "orders"
    for day in (FIRST, SECOND):
        assert not job.run_day(spark, str(base), day=day, run="scheduled").already_committed
    before = sorted(base.rglob("*.parquet"))
    assert job.run_day(spark, str(base), day=SECOND, run="scheduled").already_committed
    assert sorted(base.rglob("*.parquet")) == before
    job.run_day(spark, str(base), day=SECOND, run="manual")
    days = rows(base / "*" / "*.parquet", "day, id")
    assert days == [(day, number) for day in (FIRST, SECOND) for number in range(1000)]
    assert [file for file in sorted(base.rglob("*.parquet")) if f"day={FIRST}" in str(file)] == [
        file for file in before if f"day={FIRST}" in str(file)
    ]


@pytest.mark.spark
@pytest.mark.slow
def test_hours_are_partitions_of_a_table_in_glue(
    spark: SparkSession,  # noqa: F811 - the fixture
    tmp_path: Path,
    example,
) -> None:
    """With moto's Glue and events from files: each hour once, with its rows, and merged to one file."""
    boto3 = pytest.importorskip("boto3", reason="the extra 'glue' is not installed")
    moto = pytest.importorskip("moto", reason="moto is not installed")
    job = example("kafka_to_s3")
    events = [
        {"user": "a", "action": "buy", "amount": n, "ts": f"2026-01-31T0{n % 3}:05:00Z"} for n in range(30)
    ]
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "1.json").write_text("".join(f"{json.dumps(event)}\n" for event in events))
    stream = spark.readStream.schema(job.SCHEMA).json(str(tmp_path / "events"))
    with moto.mock_aws():
        glue = boto3.Session("testing", "testing", region_name="eu-central-1").client("glue")
        glue.create_database(DatabaseInput={"Name": "shop"})
        query = job.hourly(
            stream,
            str(tmp_path / "table"),
            checkpoint=str(tmp_path / "checkpoint"),
            table="shop.events",
            catalog=GlueCatalog(glue),
            available_now=True,
        )
        query.awaitTermination()
        found = glue.get_partitions(DatabaseName="shop", TableName="events")["Partitions"]
    assert sorted(one["Values"] for one in found) == [["2026-01-31", f"0{hour}"] for hour in range(3)]
    assert {one["Parameters"]["numFiles"] for one in found} == {"1"}
    assert len(list((tmp_path / "table").rglob("_SUCCESS"))) == 3
    amounts = rows(tmp_path / "table" / "*" / "*" / "*.parquet", "hour::INT, amount::INT")
    assert amounts == [(hour, amount) for hour in range(3) for amount in range(hour, 30, 3)]


@pytest.mark.spark
@pytest.mark.slow
def test_the_state_is_what_the_changes_left(
    spark: SparkSession,  # noqa: F811 - the fixture
    tmp_path: Path,
    example,
) -> None:
    """Every change is kept once, in its day; the state has the newest row of each id that lives."""
    job = example("changes_to_files")
    job.write_source(tmp_path / "source")
    changes, state = tmp_path / "changes", tmp_path / "state"
    for _ in range(2):  # the second time there is nothing new
        job.keep_changes(spark, tmp_path / "source", str(changes), str(tmp_path / "checkpoint"))
        assert job.make_state(spark, str(changes), str(state)) == 2
    kept = rows(changes / "*" / "*.parquet", "position, day::VARCHAR")
    assert kept == [
        (0, "2026-01-01"),
        (1, "2026-01-01"),
        (2, "2026-01-01"),
        (3, "2026-01-02"),
        (4, "2026-01-02"),
    ]
    assert rows(state / "*.parquet", "id, name, city") == [(1, "Ada", "Paris"), (3, "Grace", "New York")]
