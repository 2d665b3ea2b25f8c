"""The bytes of the row formats are those that Spark itself writes; Parquet reads back with equal values."""

from __future__ import annotations

import io
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from formats import Encoder, ParquetWriterFactory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from formats.api import Buffer

pytestmark = pytest.mark.spark

SPARK_CSV = Encoder.csv(header=True, dialect="spark")

SCALARS = """
    SELECT * FROM VALUES
      (1, 1Y, -2S, 9223372036854775807L, true, 'plain', 1.50BD, DATE'2024-02-29'),
      (2, -1Y, 2S, -9223372036854775808L, false, '', -0.05BD, DATE'0001-01-01'),
      (3, null, null, null, null, null, null, null),
      (4, 0Y, 0S, 0L, true, 'é 漢 😀', 99999999.99BD, DATE'9999-12-31'),
      (5, 0Y, 0S, 0L, true, 'x', 0.00BD, DATE'1582-10-10')
    AS t(id, tiny, small, big, bool, text, money, day)
"""
TIMESTAMPS = """
    SELECT id, timestamp_micros(us) AS at, CAST(timestamp_micros(us) AS TIMESTAMP_NTZ) AS wall FROM VALUES
      (1, 1719837296123456), (2, 0), (3, -1), (4, -62135596800000000), (5, 253402300799999999),
      (6, 253402300800000000), (7, null), (8, 2540000000000000), (9, 3400000000000001), (10, 315532800000000),
      (11, -1009843200000000), (12, 1711846799999999), (13, 1711846800000000), (14, 16725225600000000)
    AS t(id, us)
"""
FLOATS = """
    SELECT id, CAST(x AS DOUBLE) AS d, CAST(x AS FLOAT) AS f FROM VALUES
      (1, '0'), (2, '-0.0'), (3, '1'), (4, '1e7'), (5, '9999999'), (6, '12345678'), (7, '1e-3'),
      (8, '9.99e-4'), (9, '1e10'), (10, '1e21'), (11, '-4194304000'), (12, 'NaN'), (13, 'Infinity'),
      (14, '-Infinity'), (15, '1.7976931348623157e308'), (16, '-12345678.5'), (17, '1.1'), (18, '0.1'),
      (19, '-1.5e-7'), (20, '33554432'), (21, '100'), (22, '1234567.125'), (23, null), (24, '123e-12')
    AS t(id, x)
"""
DECIMALS = """
    SELECT id, CAST(x AS DECIMAL(38, 18)) AS fine, CAST(x AS DECIMAL(38, 0)) AS whole,
      CAST(x AS DECIMAL(9, 7)) AS s FROM VALUES
      (1, '0'), (2, '0.0000001'), (3, '-0.00000012'), (4, '1.5'), (5, '-99'), (6, null), (7, '0.000001')
    AS t(id, x)
"""
NESTED = """
    SELECT id, array(id, null, 3) AS ints, array('a"b', null) AS texts,
      array(array(1D, double('NaN')), null) AS deep,
      named_struct('a', nullif(id, 2), 'b', 'x', 'c', named_struct('d', nullif(id, 1))) AS pair,
      map('k"', id, 'n', null) AS m, map(id, 'x') AS mi, map(id > 1, 1) AS mb, map(1.5D, 1) AS md,
      map(CAST(1.50 AS DECIMAL(5, 2)), 1) AS mdec, map(DATE'2020-01-01', 1) AS mday,
      map(TIMESTAMP'2020-01-01 00:00:00', array(1)) AS mat, map(INTERVAL 1 DAY, 1) AS mspan,
      map('x', named_struct('z', nullif(id, id), 'y', array(named_struct('q', nullif(id, 2))))) AS ms,
      CAST(array() AS ARRAY<INT>) AS none, CAST(map() AS MAP<STRING, INT>) AS nothing,
      if(id = 2, null, array(X'00FF41', X'', X'4142')) AS raw,
      if(id = 2, null, named_struct('a', id)) AS maybe, if(id = 2, null, map('k', id)) AS maybe_map,
      INTERVAL '-1 02:03:04.5' DAY TO SECOND AS span
    FROM VALUES (1), (2), (3) AS t(id)
"""
MICROSECONDS = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
LOSSLESS = {"ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}
TRICKY = [
    *(
        "a",
        " a ",
        " ",
        "#x",
        "x#",
        '"',
        '""',
        '"a"',
        'a"b',
        "a\\",
        "a\\b",
        "a,b\\",
        "a,\\b",
        'a\\"b',
        '\\"',
        "\\,",
    ),
    *("a\nb\\n", "a,b\\\\", "NULL", '"x\\', ",", "\\", 'a\\\\"b', "\t", "é,ü", "\r", "a;b", "a|b", "", "-1"),
]


@pytest.fixture(params=["UTC", "Europe/Berlin", "America/St_Johns", "+05:30"])
def zone(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    """A session time zone for one test."""
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", "UTC")


def written_by_spark(df: DataFrame, kind: str, directory: Path, **options: str) -> list[str]:
    """The records of the files that Spark's own writer makes."""
    target = directory / "spark-output"
    df.coalesce(1).write.format(kind).options(**options).save(str(target))
    return b"".join(path.read_bytes() for path in sorted(target.glob("part-*"))).decode().split("\n")


def arrow(df: DataFrame) -> pa.Table:
    """The very Arrow data that Spark's Python tasks get, with the zone of the session."""

    def serialized(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as stream:
                stream.write_batch(batch)
            yield pa.record_batch({"ipc": [sink.getvalue().to_pybytes()]})

    rows = df.coalesce(1).mapInArrow(serialized, "ipc binary").collect()
    return pa.concat_tables([pa.ipc.open_stream(row.ipc).read_all() for row in rows])


def written_by_us(df: DataFrame, encoder: Encoder) -> list[str]:
    """The records that our encoder makes of the same data; rendered by Spark they are the same bytes."""
    table = arrow(df)
    encoder.check_schema(table.schema)
    records = b"".join(bytes(encoder.encode(b)) for b in table.to_batches() if len(b))
    expression = encoder.sql_expression(table.schema)
    if expression is not None:
        batches = arrow(df.selectExpr(f"{expression} AS record")).to_batches()
        assert b"".join(bytes(encoder.encode_rendered(b.column(0))) for b in batches if len(b)) == records
    return (bytes(encoder.header(table.schema)) + records).decode().split("\n")


@pytest.mark.parametrize(
    "query", [SCALARS, FLOATS, DECIMALS, NESTED], ids=["scalars", "floats", "decimals", "nested"]
)
def test_json_lines_are_sparks(spark: SparkSession, tmp_path: Path, query: str) -> None:
    """Every type is written in JSON as by ``df.write.json``, told to keep microseconds."""
    df = spark.sql(query).orderBy("id")
    assert written_by_us(df, Encoder.json_lines()) == written_by_spark(df, "json", tmp_path, **MICROSECONDS)


@pytest.mark.parametrize("query", [SCALARS, FLOATS, DECIMALS], ids=["scalars", "floats", "decimals"])
def test_csv_is_sparks(spark: SparkSession, tmp_path: Path, query: str) -> None:
    """Every scalar type is written in CSV as by ``df.write.csv``."""
    df = spark.sql(query).orderBy("id")
    ours = written_by_us(df, SPARK_CSV)
    assert ours == written_by_spark(df, "csv", tmp_path, header="true")


def test_timestamps_are_sparks_in_every_zone(spark: SparkSession, zone: str, tmp_path: Path) -> None:
    """Instants and local times, before 1900 and after 2037 too, are written as by Spark."""
    df = spark.sql(TIMESTAMPS).orderBy("id")
    for kind, encoder in {"json": Encoder.json_lines(), "csv": Encoder.csv()}.items():
        expected = written_by_spark(df, kind, tmp_path / kind, **MICROSECONDS)
        assert written_by_us(df, encoder) == expected, zone


@pytest.mark.parametrize(
    ("query", "columns"),
    [(SCALARS, 8), (FLOATS, 3), (DECIMALS, 4), (TIMESTAMPS, 3)],
    ids=["scalars", "floats", "decimals", "timestamps"],
)
def test_text_is_sparks_cast(spark: SparkSession, zone: str, query: str, columns: int) -> None:
    """A column of any scalar type is written as ``cast(... as string)`` and null as an empty line."""
    df = spark.sql(query).orderBy("id")
    assert len(df.columns) == columns
    rows = df.selectExpr(*(f"CAST({name} AS STRING)" for name in df.columns)).collect()
    for place, (name, ours) in enumerate(texts_by_us(df).items()):
        assert ours == "".join(f"{row[place] or ''}\n" for row in rows), (name, zone)


def texts_by_us(df: DataFrame) -> dict[str, str]:
    """What our encoder makes of each column by itself; rendered by Spark it is the same."""
    encoder, table = Encoder.simple_string_encoder(), arrow(df)
    batches = [batch for batch in table.to_batches() if len(batch)]
    columns = {name: [batch.select([name]) for batch in batches] for name in df.columns}
    expressions = {name: encoder.sql_expression(pieces[0].schema) for name, pieces in columns.items()}
    known = [f"{text} AS {name}" for name, text in expressions.items() if text is not None]
    written = {name: text_of(map(encoder.encode, pieces)) for name, pieces in columns.items()}
    rendered = arrow(df.selectExpr(*known)) if known else table.select([])
    for name in rendered.column_names:
        assert text_of(map(encoder.encode_rendered, rendered.column(name).chunks)) == written[name], name
    return written


def text_of(pieces: Iterable[Buffer]) -> str:
    """The text that they make together."""
    return b"".join(map(bytes, pieces)).decode()


def test_escapes_are_sparks(spark: SparkSession) -> None:
    """Every control and special character is escaped in values, keys and field names as by ``to_json``."""
    codes = [*range(0x30), 0x5C, 0x7F, 0x80, 0x9F, 0xA0, 0x2028, 0x2029, 0xFEFF, 0x1F600]
    rows = [(code, f"{chr(code)}x{chr(code)}\\") for code in codes]
    df = spark.createDataFrame(rows, 'id int, `a"b` string').coalesce(1).orderBy("id")
    df = df.selectExpr('`a"b`', 'map(`a"b`, `a"b`) AS m')
    expected = [row[0] for row in df.selectExpr("to_json(struct(*))").collect()]
    assert written_by_us(df, Encoder.json_lines()) == [*expected, ""]


BROKEN = [0x41, 0x80, 0xBF, 0xA9, 0xC3, 0xC0, 0xE2, 0x82, 0xED, 0xA0, 0xF0, 0x9F, 0x98, 0xF4, 0x90, 0xFF]


@pytest.mark.parametrize("kind", ["json", "csv", "text"])
def test_bytes_that_are_no_text_become_what_spark_makes_of_them(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    """U+FFFD in JSON and CSV; plain text keeps them."""
    chosen = random.Random(5)  # noqa: S311 - test data
    values = [bytes(chosen.choices(BROKEN, k=chosen.randrange(1, 9))) for _ in range(1000)]
    rows = [(number, bytearray(value)) for number, value in enumerate(values)]
    df = spark.createDataFrame(rows, "id int, value binary").coalesce(1).orderBy("id")
    df = df.selectExpr("id", "CAST(value AS STRING) AS text")
    encoder = {"json": Encoder.json_lines(), "csv": Encoder.csv()}.get(kind, Encoder.simple_string_encoder())
    df = df.select("text") if kind == "text" else df
    target = tmp_path / "spark-output"
    df.coalesce(1).write.format(kind).options(**(LOSSLESS if kind == "csv" else {})).save(str(target))
    expected = b"".join(path.read_bytes() for path in sorted(target.glob("part-*")))
    assert (
        b"".join(bytes(encoder.encode(batch)) for batch in arrow(df).to_batches() if len(batch)) == expected
    )


@pytest.mark.parametrize(
    ("ours", "spark_options"),
    [
        ({"dialect": "spark"}, {}),
        ({"dialect": "spark", "quote_mode": "all"}, {"quoteAll": "true"}),
        ({}, {"escape": '"'}),
        ({"quote_mode": "all"}, {"quoteAll": "true", "escape": '"'}),
        ({"delimiter": ";"}, {"delimiter": ";", "escape": '"'}),
        ({"delimiter": "||", "dialect": "spark"}, {"delimiter": "||"}),
        ({"null_value": "a,b", "dialect": "spark"}, {"nullValue": "a,b"}),
        (
            {"null_value": "#N/A", "quote": "'"},
            {"nullValue": "#N/A", "quote": "'", "escape": "'", "emptyValue": "''"},
        ),
    ],
    ids=[
        *("spark", "spark all", "default", "all", "semicolon", "two characters", "null with delimiter"),
        "null with hash",
    ],
)
def test_csv_quotes_as_spark(spark: SparkSession, tmp_path: Path, ours: dict, spark_options: dict) -> None:
    """Every dialect quotes and escapes as Spark's writer when that keeps white space."""
    rows = [(text, text, 1) for text in TRICKY] + [(None, None, 2)]
    df = spark.createDataFrame(rows, "`#first` string, `second,one` string, n int").coalesce(1)
    expected = written_by_spark(df, "csv", tmp_path, header="true", **LOSSLESS, **spark_options)
    assert written_by_us(df, Encoder.csv(header=True, **ours)) == expected


def test_csv_times_by_patterns_are_sparks(spark: SparkSession, zone: str, tmp_path: Path) -> None:
    """Dates and timestamps by a user's pattern are those of ``dateFormat`` and ``timestampFormat``."""
    df = spark.sql(TIMESTAMPS).selectExpr("id", "at", "date(at) AS day").orderBy("id")
    date_format, timestamp_format = "dd.MM.yyyy 'o''clock'", "yyyy/MM/dd HH-mm-ss.SSSSSS XXX"
    expected = written_by_spark(df, "csv", tmp_path, dateFormat=date_format, timestampFormat=timestamp_format)
    encoder = Encoder.csv(date_format=date_format, timestamp_format=timestamp_format)
    assert written_by_us(df, encoder) == expected, zone


def test_csv_of_one_column_loses_no_record(spark: SparkSession, tmp_path: Path) -> None:
    """Spark reads as many records as were written, although one column is null; Spark's writer drops them."""
    rows = [(text,) for text in TRICKY] + [(None,), (None,)]
    df = spark.createDataFrame(rows, "c string").coalesce(1)
    encoder = Encoder.csv(dialect="spark")
    (tmp_path / "a.csv").write_bytes("\n".join(written_by_us(df, encoder)).encode())
    back = spark.read.schema("c string").csv(str(tmp_path / "a.csv"), multiLine=True, lineSep="\n")
    assert [row.c or "" for row in back.collect()] == [text or "" for (text,) in rows]


@pytest.mark.parametrize("query", [SCALARS, FLOATS, DECIMALS, TIMESTAMPS, NESTED])
def test_parquet_reads_back_in_spark_and_pyarrow(spark: SparkSession, tmp_path: Path, query: str) -> None:
    """Values and types of every column come back as they were written."""
    df = spark.sql(query).orderBy("id")
    if "at" in df.columns:
        df = df.where("at IS NULL OR at < TIMESTAMP'9999-12-31'")  # the last that Python's values reach
    df = df.drop("span", "mspan")  # Spark has no logical type of Parquet for intervals
    table = arrow(df)
    path = tmp_path / "part.parquet"
    path.write_bytes(parquet(table))
    # Text is compared because NaN is not equal to itself.
    assert str(pq.read_table(path).to_pylist()) == str(table.to_pylist())
    back = spark.read.parquet(str(path)).orderBy("id")
    assert str(arrow(back).to_pylist()) == str(table.to_pylist())
    assert [(name, kind) for name, kind in back.dtypes] == df.dtypes


def test_parquet_reads_back_in_duckdb(spark: SparkSession, tmp_path: Path) -> None:
    """DuckDB sees the same instants, local times and strings."""
    table = arrow(spark.sql(TIMESTAMPS).orderBy("id"))
    path = tmp_path / "part.parquet"
    path.write_bytes(parquet(table))
    query = 'SELECT id, epoch_us("at"), epoch_us(wall) FROM read_parquet(?) ORDER BY id'
    seen = duckdb.sql(query, params=[str(path)]).fetchall()
    written = [table.column(name).cast(pa.int64()).to_pylist() for name in table.column_names]
    assert seen == list(zip(*written, strict=True))


def parquet(table: pa.Table) -> bytes:
    """One file of all batches of a table."""
    factory = ParquetWriterFactory()
    factory.check_schema(table.schema)
    output = io.BytesIO()
    writer = factory.create(output, table.schema)
    for batch in table.to_batches():
        writer.write(batch)
    writer.finish()
    return output.getvalue()
