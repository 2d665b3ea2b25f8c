"""Engines that read one directory, each by means of its own.

``python engines.py NAME BASE`` answers each line of its input with one line of JSON: the rows that it reads
now, or the name of what went wrong. It imports nothing of this project, so that it runs in any environment
that has the engine. Packages of Java are found in the directory that ``ONE_DIRECTORY_JARS`` names.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

COLUMNS: Final = ("k", "id", "value", "more")
TABLE: Final = "lake.rows"
Row = tuple[Any, ...]
Reader = Callable[[], Iterable[Any]]


def catalog(base: str) -> dict[str, str]:
    """That of the table of Iceberg: beside the path."""
    return {"name": "lake", "type": "sql", "uri": f"sqlite:///{base}.db", "warehouse": f"{base}.warehouse"}


def main() -> None:
    """Answer until the input ends."""
    name, base = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what engines print is no answer
    try:
        read = ENGINES[name](base)
    except Exception as error:  # noqa: BLE001 - told: the engine is not here
        print(json.dumps({"missing": f"{type(error).__name__}: {error}"[:300]}), file=answers)
        return
    print(json.dumps({"ready": name}), file=answers)
    for _ in sys.stdin:
        try:
            answer: dict[str, Any] = {"rows": [[row.get(column) for column in COLUMNS] for row in read()]}
        except Exception as error:  # noqa: BLE001 - told, and judged by who asked
            answer = {"error": f"{type(error).__name__}: {error}"[:2000]}
        print(json.dumps(answer), file=answers)


def _duckdb_listing(base: str) -> Reader:
    import duckdb

    glob = f"{base}/**/part-*.parquet"
    options = "hive_partitioning = true, hive_types_autocast = false, union_by_name = true"
    return lambda: _of_duckdb(duckdb.connect(), f"read_parquet('{glob}', {options})")


def _duckdb_delta(base: str) -> Reader:
    connection = _with_extensions("delta")
    return lambda: _of_duckdb(connection, f"delta_scan('{base}')")


def _duckdb_iceberg(base: str) -> Reader:
    connection = _with_extensions("avro", "iceberg")
    return lambda: _of_duckdb(connection, f"iceberg_scan('{_metadata(base)}')")


def _with_extensions(*names: str) -> Any:
    """A connection with extensions that are packages of Python."""
    import duckdb

    connection = duckdb.connect()
    places = [Path(place) / "duckdb_ext" for place in sys.path]
    for name in names:
        found = [path for place in places for path in place.rglob(f"{name}.duckdb_extension")]
        if not found:
            raise ModuleNotFoundError(f"no package duckdb-ext-{name}")
        connection.load_extension(str(found[0]))
    return connection


def _of_duckdb(connection: Any, source: str) -> list[dict[str, Any]]:
    found = connection.execute(f"SELECT * FROM {source}")  # noqa: S608 - our own path
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def _metadata(base: str) -> str:
    """Where the newest metadata of the table of Iceberg is, as the catalog has it."""
    with sqlite3.connect(f"{base}.db") as connection:
        return str(connection.execute("SELECT metadata_location FROM iceberg_tables").fetchone()[0])


def _polars(base: str) -> Reader:
    import polars as pl

    types = {"k": pl.String, "id": pl.Int64, "value": pl.String, "more": pl.Int64}
    return lambda: (
        pl.scan_parquet(
            f"{base}/**/part-*.parquet",
            schema=types,
            hive_partitioning=True,
            hive_schema={"k": pl.String},
            missing_columns="insert",
        )
        .collect()
        .to_dicts()
    )


def _delta_rs(base: str) -> Reader:
    from deltalake import DeltaTable

    return lambda: DeltaTable(base).to_pyarrow_table().to_pylist()


def _pyiceberg(base: str) -> Reader:
    from pyiceberg.catalog import load_catalog

    table = TABLE
    return lambda: load_catalog(**catalog(base)).load_table(table).scan().to_arrow().to_pylist()


def _spark_log(base: str) -> Reader:
    spark, schema = _spark({}), "id long, value string, more long, k string"
    return lambda: (row.asDict() for row in spark.read.schema(schema).parquet(base).collect())


def _delta_spark(base: str) -> Reader:
    spark = _spark(
        {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.databricks.delta.snapshotPartitions": "1",
        },
        jars=("delta-spark", "delta-storage"),
    )
    return lambda: (row.asDict() for row in spark.read.format("delta").load(base).collect())


def _iceberg_spark(base: str) -> Reader:
    prefix = "spark.sql.catalog.lake"
    spark = _spark(
        {
            prefix: "org.apache.iceberg.spark.SparkCatalog",
            f"{prefix}.type": "jdbc",
            f"{prefix}.uri": f"jdbc:sqlite:{base}.db",
            f"{prefix}.warehouse": f"{base}.warehouse",
            f"{prefix}.cache-enabled": "false",
        },
        jars=("iceberg-spark-runtime", "sqlite-jdbc"),
    )
    return lambda: (row.asDict() for row in spark.table(f"lake.{TABLE}").collect())


def _spark(settings: dict[str, str], jars: Iterable[str] = ()) -> Any:
    from pyspark.sql import SparkSession

    place = Path(os.environ.get("ONE_DIRECTORY_JARS", "no directory of jars was named"))
    found = [next(iter(place.glob(f"{name}*.jar")), None) for name in jars]
    if None in found:
        raise ModuleNotFoundError(f"jars {', '.join(jars)} are not in {place}")
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.memory", "1g")
    builder = builder.config("spark.sql.shuffle.partitions", "1").config("spark.log.level", "OFF")
    if jars:
        builder = builder.config("spark.driver.extraClassPath", f"{place}/*")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


#: By name.
ENGINES: Final[dict[str, Callable[[str], Reader]]] = {
    "duckdb-listing": _duckdb_listing,
    "polars-listing": _polars,
    "delta-rs": _delta_rs,
    "duckdb-delta": _duckdb_delta,
    "delta-spark": _delta_spark,
    "pyiceberg": _pyiceberg,
    "duckdb-iceberg": _duckdb_iceberg,
    "iceberg-spark": _iceberg_spark,
    "spark-log": _spark_log,
}
#: The export that each one reads; none lists the directory.
TARGETS: Final = {
    "delta-rs": "delta",
    "duckdb-delta": "delta",
    "delta-spark": "delta",
    "pyiceberg": "iceberg",
    "duckdb-iceberg": "iceberg",
    "iceberg-spark": "iceberg",
    "spark-log": "spark-metadata",
}

if __name__ == "__main__":
    main()
