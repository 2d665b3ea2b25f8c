"""Rows of ours in the hands of others: each reader of CSV and JSON lines, as docs/formats.md names it.

Every reader is asked with as few options as it needs, which are those of the page's table. Spark is in
``tests/spark/interchange/test_interchange.py``.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.json as pj
import pytest

from formats import Encoder

TEXTS = ['q"q', "back\\slash\\", "comma, semi;", "l\nf", " sp ", "é 漢 😀", '"', '\\"', None, "", "a\\", "#x"]
MICROS = [0, 123_000, 123_456]
TIMES = [datetime(2024, 7, 1, 12, 34, 56, MICROS[place % 3], UTC) for place in range(len(TEXTS))]
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("text", pa.string()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("wall", pa.timestamp("us")),
        ("real", pa.float64()),
    ]
)
ROWS = [
    {
        "id": place,
        "text": text,
        "day": date(2024, 2, 29),
        "at": TIMES[place],
        "wall": TIMES[place].replace(tzinfo=None),
        "real": [1.5, None, -0.0][place % 3],
    }
    for place, text in enumerate(TEXTS)
]
UNKNOWN_NULLS = [{**row, "text": row["text"] or ""} for row in ROWS]
RFC = Encoder.csv(header=True)
SPARK = Encoder.csv(header=True, dialect="spark")
JSON = Encoder.json_lines()


def plain(rows):
    """What a reader found, with nulls as ``None``, and times that it leaves as text as times."""
    return [{name: _plain(name, value) for name, value in row.items()} for row in rows]


def _plain(name, value):
    if value is None or value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, str) and name in {"day", "at", "wall"}:
        value = datetime.fromisoformat(value)
    if isinstance(value, pd.Timestamp):
        value = value.to_pydatetime()
    if isinstance(value, datetime):
        if name == "day":
            return value.date()
        return value.astimezone(UTC) if value.tzinfo else value
    return value


def pandas_csv(path):
    """The one reader here that has to be told which columns are times, and takes an empty text for null."""
    return pd.read_csv(path, parse_dates=["day", "at", "wall"]).to_dict("records")


def arrow_csv(path):
    """Told that an empty value is null and that values may hold line feeds."""
    options = pc.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False)
    parsing = pc.ParseOptions(newlines_in_values=True)
    return pc.read_csv(path, parse_options=parsing, convert_options=options).to_pylist()


def duckdb_rows(call):
    """As dicts."""
    return duckdb.sql(f"FROM {call}").to_arrow_table().to_pylist()


READERS = [
    ("csv-pandas", RFC, pandas_csv, UNKNOWN_NULLS),
    ("csv-pyarrow", RFC, arrow_csv, ROWS),
    ("csv-polars", RFC, lambda path: pl.read_csv(path, try_parse_dates=True).to_dicts(), ROWS),
    ("csv-duckdb", RFC, lambda path: duckdb_rows(f"read_csv('{path}')"), UNKNOWN_NULLS),
    ("json-pandas", JSON, lambda path: pd.read_json(path, lines=True).to_dict("records"), ROWS),
    ("json-pyarrow", JSON, lambda path: pj.read_json(path).to_pylist(), ROWS),
    ("json-polars", JSON, lambda path: pl.read_ndjson(path).to_dicts(), ROWS),
    ("json-duckdb", JSON, lambda path: duckdb_rows(f"read_json('{path}')"), ROWS),
]


def written(encoder: Encoder, path: Path) -> str:
    """A part file of the rows."""
    batch = pa.RecordBatch.from_pylist(ROWS, SCHEMA)
    path.write_bytes(encoder.header(SCHEMA) + bytes(encoder.encode(batch)))
    return str(path)


@pytest.mark.parametrize(
    ("encoder", "read", "expected"),
    [case[1:] for case in READERS],
    ids=[case[0] for case in READERS],
)
def test_each_reader_finds_the_rows(tmp_path: Path, encoder, read, expected):
    """Quotes, backslashes, line feeds, nulls and every microsecond, with the options of the page at most.

    pandas and DuckDB take an empty text of CSV for null, as they do with anybody's files.
    """
    found = plain(read(written(encoder, tmp_path / f"part-0{encoder.extension}")))
    assert [{**row, "text": row["text"] or ""} for row in found] == UNKNOWN_NULLS
    if expected is ROWS:
        assert found == ROWS


@pytest.mark.parametrize("read", [case[2] for case in READERS[:3]], ids=[case[0] for case in READERS[:3]])
def test_sparks_dialect_is_sparks_alone(tmp_path: Path, read):
    """Others find other texts, or none, as docs/formats.md says; but DuckDB guesses it."""
    try:
        found = [row.get("text") or "" for row in read(written(SPARK, tmp_path / "part-0.csv"))]
    except (ValueError, pl.exceptions.ComputeError):
        return
    assert [text if isinstance(text, str) else "" for text in found] != [text or "" for text in TEXTS]


@pytest.mark.parametrize("encoder", [RFC, SPARK], ids=["rfc4180", "spark"])
def test_our_reader_reads_both_dialects(tmp_path: Path, encoder):
    """Each by the encoder that has written it."""
    path = written(encoder, tmp_path / "part-0.csv")
    with Path(path).open("rb") as file:
        assert encoder.open_reader(file, schema=SCHEMA).read_all().to_pylist() == ROWS


def test_dialects_have_signatures_of_their_own():
    """A part that was begun in one is never continued in the other, and neither are both compacted into one.

    The dialect of Spark has the signature that was the default's until there were two.
    """
    assert SPARK.signature() == (
        "csv CsvDialect(delimiter=',', quote='\"', escape='\\\\', quote_mode='minimal') header=names "
        "CsvValues(null_value='', date_format=None, timestamp_format=None) charset=utf-8"
    )
    assert RFC.signature() != SPARK.signature()


def test_an_escape_of_ones_own_stands_above_the_dialect():
    """Whoever names a character has it in either dialect; and a dialect is one of two."""
    record = pa.record_batch({"a": ['q"q'], "b": [1]})
    assert bytes(Encoder.csv(escape="^").encode(record)) == b'"q^"q",1\n'
    assert bytes(Encoder.csv(dialect="spark", escape='"').encode(record)) == b'"q""q",1\n'
    assert bytes(Encoder.csv(quote="'").encode(pa.record_batch({"a": ["q'q"], "b": [1]}))) == b"'q''q',1\n"
    with pytest.raises(ValueError, match="dialect"):
        Encoder.csv(dialect="excel")
