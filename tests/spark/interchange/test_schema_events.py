"""Messages of Debezium, Canal and Maxwell that change a table: known for what they are, and told apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from filesink import BucketAssigner, ConfigError, FileSink, ParquetWriterFactory, SchemaError
from filesink.spark.input.job import typed
from tests.spark import outside
from tests.spark.interchange.test_changes import (
    COLUMNS,
    DECODERS,
    DOCUMENTED,
    MALFORMED,
    SOURCE,
    found,
    messages,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TABLE = {"defaultCharsetName": "utf8mb4", "primaryKeyColumnNames": ["id"], "columns": [{"name": "id"}]}
EVENTS: dict[str, list[Any]] = {
    "debezium": [
        {  # MySQL
            "source": SOURCE,
            "ts_ms": 1,
            "databaseName": "shop",
            "schemaName": None,
            "ddl": "ALTER TABLE hush ADD COLUMN fax VARCHAR(20)",
            "tableChanges": [{"type": "ALTER", "id": '"shop"."hush"', "table": TABLE}],
        },
        {"databaseName": "shop", "ddl": "SET character_set_server=utf8mb4", "tableChanges": []},
        {  # SQL Server
            "databaseName": "shop",
            "schemaName": "dbo",
            "ddl": None,
            "tableChanges": [{"type": "CREATE", "id": '"shop"."dbo"."hush"', "table": TABLE}],
        },
        {
            "schema": {"type": "struct"},
            "payload": {
                "source": SOURCE,
                "ddl": "DROP TABLE hush",
                "tableChanges": [{"type": "DROP", "id": '"shop"."hush"', "table": None}],
            },
        },
    ],
    "maxwell": [
        {
            "type": "table-alter",
            "database": "shop",
            "table": "hush",
            "old": {"database": "shop", "table": "hush", "columns": [{"type": "int", "name": "id"}]},
            "def": {"database": "shop", "table": "hush", "columns": [{"type": "bigint", "name": "id"}]},
            "ts": 1,
            "sql": "ALTER TABLE hush MODIFY id BIGINT",
        },
        {"type": "table-create", "database": "shop", "table": "hush", "def": {"columns": []}, "sql": "…"},
        {"type": "table-drop", "database": "shop", "table": "hush", "sql": "DROP TABLE hush"},
        {"type": "database-create", "database": "shop", "sql": "CREATE DATABASE shop"},
        {"type": "database-alter", "database": "shop", "characterSet": "utf8mb4", "sql": "…"},
        {"type": "database-drop", "database": "shop", "sql": "DROP DATABASE shop"},
    ],
    "canal": [
        {
            "type": "ALTER",
            "isDdl": True,
            "database": "shop",
            "table": "hush",
            "data": None,
            "old": None,
            "sql": "ALTER TABLE hush CHANGE name title TEXT",
        },
        *(
            {"type": kind, "isDdl": True, "data": None, "sql": "…"}
            for kind in ("CREATE", "ERASE", "RENAME", "CINDEX", "DINDEX", "QUERY")
        ),
    ],
}
TRUNCATES = {
    "debezium": {"op": "t", "before": None, "after": None, "source": SOURCE},
    "maxwell": {"type": "table-truncate", "database": "shop", "table": "a"},  # which Maxwell never sends
    "canal": {"type": "TRUNCATE", "isDdl": True, "data": None, "sql": "TRUNCATE TABLE a"},
}


def good(name: str) -> tuple[Any, list[Any]]:
    """A message with rows, and those."""
    return next((message, rows) for one, message, rows in DOCUMENTED if one == name and rows)


@pytest.mark.parametrize("name", EVENTS)
def test_they_fail_the_task_by_default(spark: SparkSession, name: str) -> None:
    """With an error that says what to do, and shows nothing of the message; malformed ones rescued or not."""
    for event in EVENTS[name]:
        for on_malformed in ("raise", "rescue"):
            df = DECODERS[name](messages(spark, event), COLUMNS, on_malformed=on_malformed)
            with pytest.raises(PySparkException) as raised:
                df.count()
            error = typed(raised.value)
            assert isinstance(error, SchemaError), event
            assert error.code == "SCHEMA_EVENT"
            assert "on_schema_change='ignore'" in str(error)
            assert "hush" not in str(raised.value)


@pytest.mark.parametrize("name", EVENTS)
def test_they_are_rescued_in_their_place(spark: SparkSession, name: str) -> None:
    """Each as it is, without a kind, where it stood among the rows: a batch can be cut there."""
    message, rows = good(name)
    df = messages(spark, message, *EVENTS[name], message)
    seen = DECODERS[name](df, COLUMNS, order=["offset"], on_schema_change="rescue").collect()
    texts = {row["offset"]: row["value"] for row in df.collect()}
    last = len(EVENTS[name]) + 1
    rescued = {row["row_order"][0]: row["rescued"] for row in seen if row["row_kind"] is None}
    assert rescued == {offset: text for offset, text in texts.items() if 0 < offset < last}
    kinds = [row["row_kind"] for row in seen if row["rescued"] is None]
    assert kinds == [row[0] for row in rows] * 2


@pytest.mark.parametrize("name", EVENTS)
def test_they_are_left_out_if_that_is_asked_for(spark: SparkSession, name: str) -> None:
    """The rows around them stay; there is no column more."""
    message, rows = good(name)
    df = DECODERS[name](messages(spark, message, *EVENTS[name], message), COLUMNS, on_schema_change="ignore")
    assert df.columns == ["id", "name", "row_kind"]
    assert found(df) == rows * 2


@pytest.mark.parametrize("name", EVENTS)
def test_what_is_malformed_is_never_ignored(spark: SparkSession, name: str) -> None:
    """A truncate takes rows away; and what was not understood before is no event now."""
    decode = DECODERS[name]
    for on_schema_change in ("ignore", "rescue"):
        df = decode(messages(spark, TRUNCATES[name]), COLUMNS, on_schema_change=on_schema_change)
        with pytest.raises(PySparkException, match="MALFORMED_CHANGE"):
            df.count()
    given = [TRUNCATES[name], *MALFORMED[name]]
    df = decode(messages(spark, *given), COLUMNS, on_malformed="rescue", on_schema_change="ignore")
    assert df.where("rescued IS NOT NULL").count() == len(given)


def test_a_stream_counts_what_it_leaves_out(spark: SparkSession, tmp_path: Path) -> None:
    """In its progress, by Spark; two decoders of one query each for itself, in any sink."""
    for name in ("debezium", "maxwell"):
        (tmp_path / name).mkdir()
        lines = [good(name)[0], *EVENTS[name]]
        (tmp_path / name / "1.txt").write_text("\n".join(map(json.dumps, lines)))
    first, second = (
        DECODERS[name](
            spark.readStream.text(str(tmp_path / name)), COLUMNS, on_schema_change="ignore"
        ).select("id", "name")
        for name in ("debezium", "maxwell")
    )
    builder = FileSink.for_bulk_format(tmp_path / "out", ParquetWriterFactory())
    builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    query = builder.build().start(
        first.union(second), checkpoint_location=tmp_path / "checkpoint", available_now=True
    )
    query.awaitTermination()
    counts = [
        metrics["messages"]
        for progress in query.recentProgress
        for key, metrics in progress["observedMetrics"].items()
        if key.startswith("filesink_schema_changes")
    ]
    assert sorted(counts) == sorted(len(EVENTS[name]) for name in ("debezium", "maxwell"))
    assert len(outside.parquet_ids(tmp_path / "out")) == sum(
        len(good(name)[1]) for name in ("debezium", "maxwell")
    )


def test_another_word(spark: SparkSession) -> None:
    """Refused when it is given."""
    for decode in DECODERS.values():
        with pytest.raises(ConfigError, match="on_schema_change") as raised:
            decode(messages(spark, "{}"), COLUMNS, on_schema_change="apply")
        assert raised.value.code == "BAD_VALUE"
