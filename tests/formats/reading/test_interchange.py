"""Files of ours in the hands of others: DuckDB, polars, pyarrow, fastavro and pyorc find the same rows.

What hypothesis thinks of is written by every bulk format and read back by ours; what others cannot
hold is left out of theirs. Spark and Java are in ``tests/spark/interchange/test_interchange.py``.
"""

from __future__ import annotations

import io
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import fastavro
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pyorc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats import (
    ArrowWriterFactory,
    AvroWriterFactory,
    Encoder,
    OrcBulkWriterFactory,
    ParquetWriterFactory,
)

ROWS = [
    {
        "id": number,
        "text": [None, "", "é 漢 😀", "a\nb"][number % 4],
        "raw": [None, b"", b"\0\xff"][number % 3],
        "price": [None, Decimal("-0.01"), Decimal("99999999.99")][number % 3],
        "day": [None, date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31)][number % 4],
        "at": [None, datetime(1970, 1, 1, tzinfo=UTC), datetime(2024, 7, 1, 12, 34, 56, 123456, UTC)][
            number % 3
        ],
        "real": [None, -0.0, 1e300, 5e-324][number % 4],
        "yes": [None, True, False][number % 3],
        "list": [None, [], [1, None], [2]][number % 4],
        "pair": [None, {"a": None, "b": "x"}, {"a": 1, "b": None}][number % 3],
    }
    for number in range(1000)
]
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("text", pa.string()),
        ("raw", pa.binary()),
        ("price", pa.decimal128(10, 2)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("real", pa.float64()),
        ("yes", pa.bool_()),
        ("list", pa.list_(pa.int32())),
        ("pair", pa.struct([("a", pa.int64()), ("b", pa.string())])),
    ]
)


def written(factory, batch, path=None):
    """A file of ``batch``, in slices."""
    output = io.BytesIO()
    writer = factory.create(output, batch.schema)
    for start in range(0, batch.num_rows, 300):
        writer.write(batch.slice(start, 300))
    writer.finish()
    if path is not None:
        path.write_bytes(output.getvalue())
    return io.BytesIO(output.getvalue())


def duckdb_rows(function, path):
    """As DuckDB's Arrow result."""
    return duckdb.sql(f"FROM {function}('{path}')").to_arrow_table().cast(SCHEMA).to_pylist()


def polars_rows(frame):
    """As polars' Arrow table."""
    return frame.to_arrow().cast(SCHEMA).to_pylist()


def pyorc_rows(path):
    """Every row as a dict."""
    with path.open("rb") as file:
        return list(pyorc.Reader(file, struct_repr=pyorc.StructRepr.DICT))


def fastavro_rows(path):
    """Every row as a dict."""
    with path.open("rb") as file:
        return list(fastavro.reader(file))


PARQUET, ORC, AVRO, ARROW = "parquet", "orc", "avro", "arrow"
FACTORIES = {
    PARQUET: ParquetWriterFactory(),
    ORC: OrcBulkWriterFactory(),
    AVRO: AvroWriterFactory(),
    ARROW: ArrowWriterFactory(),
}
READERS = [
    (PARQUET, "duckdb", lambda path: duckdb_rows("read_parquet", path)),
    (PARQUET, "polars", lambda path: polars_rows(pl.read_parquet(path))),
    (PARQUET, "pyarrow", lambda path: pq.read_table(path).to_pylist()),
    (ORC, "pyorc", pyorc_rows),
    (ORC, "pyarrow", lambda path: pa.orc.read_table(path).cast(SCHEMA).to_pylist()),
    (AVRO, "fastavro", fastavro_rows),
    (ARROW, "polars", lambda path: polars_rows(pl.read_ipc(path))),
    (ARROW, "pyarrow", lambda path: pa.feather.read_table(path).to_pylist()),
]


@pytest.mark.parametrize(
    ("name", "reader"), [(name, read) for name, _, read in READERS], ids=[f"{f}-{r}" for f, r, _ in READERS]
)
def test_others_find_the_same_rows(tmp_path: Path, name, reader):
    """Values, types, nulls, and nothing besides."""
    path = tmp_path / f"part-0.{name}"
    written(FACTORIES[name], pa.RecordBatch.from_pylist(ROWS, SCHEMA), path)
    assert str(reader(path)).replace("zoneinfo.ZoneInfo(key='UTC')", "datetime.timezone.utc") == str(
        ROWS
    ).replace("datetime.timezone.utc", "datetime.timezone.utc")


# Before 1970 ORC takes whole seconds only; hypothesis wants times without zone.
EPOCH, LATER = (datetime(year, 1, 1, tzinfo=UTC).replace(tzinfo=None) for year in (1970, 2200))
SCALARS = st.sampled_from(
    [
        (pa.int8(), st.integers(-(2**7), 2**7 - 1)),
        (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
        (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
        (pa.float64(), st.floats(allow_nan=False)),
        (pa.float32(), st.floats(allow_nan=False, width=32)),
        (pa.bool_(), st.booleans()),
        (pa.string(), st.text(st.characters(codec="utf-8"), max_size=20)),
        (pa.binary(), st.binary(max_size=200)),
        (pa.decimal128(38, 10), st.decimals(-(10**27), 10**27, places=10)),
        (pa.date32(), st.dates()),
        (
            pa.timestamp("us", "UTC"),
            st.datetimes(EPOCH, LATER, timezones=st.just(UTC)),
        ),
    ]
)


def nested(kinds):
    """Lists, maps and structs of ``kinds``."""

    def struct(fields):
        kind = pa.struct([(f"f{place}", kind) for place, (kind, _) in enumerate(fields)])
        values = st.fixed_dictionaries(
            {f"f{place}": st.none() | value for place, (_, value) in enumerate(fields)}
        )
        return kind, values

    lists = kinds.map(lambda kind: (pa.list_(kind[0]), st.lists(st.none() | kind[1], max_size=4)))
    keys = st.text(st.characters(codec="utf-8"), max_size=3)
    maps = kinds.map(
        lambda kind: (
            pa.map_(pa.string(), kind[0]),
            st.dictionaries(keys, st.none() | kind[1], max_size=3).map(lambda pairs: list(pairs.items())),
        )
    )
    return lists | maps | st.lists(kinds, min_size=1, max_size=3).map(struct)


@st.composite
def batches(draw):
    """One to four columns of anything, and up to forty rows, sliced out of more."""
    kinds = draw(st.lists(st.recursive(SCALARS, nested, max_leaves=4), min_size=1, max_size=4))
    count = draw(st.integers(0, 40))
    arrays = [
        pa.array(draw(st.lists(st.none() | value, min_size=count, max_size=count)), kind)
        for kind, value in kinds
    ]
    batch = pa.RecordBatch.from_arrays(arrays, [f"c{place}" for place in range(len(arrays))])
    return batch.slice(draw(st.integers(0, count)))


@settings(max_examples=25, deadline=None)
@given(batch=batches())
@pytest.mark.parametrize("name", FACTORIES)
def test_whatever_is_written_is_read(name, batch):
    """Nested, null, extreme, sliced: every batch comes back as it was, types included."""
    found = FACTORIES[name].open_reader(written(FACTORIES[name], batch), schema=batch.schema).read_all()
    assert found.schema == batch.schema
    assert found.to_pylist() == batch.to_pylist()


@pytest.mark.parametrize("name", FACTORIES)
@pytest.mark.parametrize("hidden", [None, 1])
def test_what_a_null_struct_hides_is_no_value_of_the_next(name, hidden):
    """Members of a null struct may be null themselves or not; the records after it have their own."""
    inner = pa.StructArray.from_arrays(
        [pa.array([hidden, 2, 3, hidden, 5])], ["n"], mask=pa.array([True, False, False, True, False])
    )
    outer = pa.StructArray.from_arrays([inner], ["inner"])
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 2, 4, 5, 5], pa.int32()), outer)
    batch = pa.RecordBatch.from_arrays([outer, lists], ["outer", "lists"])
    found = FACTORIES[name].open_reader(written(FACTORIES[name], batch), schema=batch.schema).read_all()
    assert found.to_pylist() == batch.to_pylist()


@settings(max_examples=25, deadline=None)
@given(batch=batches(), cut=st.integers(0, 40))
def test_avro_parts_go_on_anywhere(batch, cut):
    """Whatever the records and wherever they are cut, fastavro's view of the joined segments is whole."""
    if not batch.num_rows:
        return
    part = Encoder.avro("deflate", block_size=50).start_part()
    pieces = [piece for piece in (batch.slice(0, cut), batch.slice(cut)) if piece.num_rows]
    data = part.header(batch.schema) + b"".join(bytes(part.encode(piece)) for piece in pieces)
    found = part.open_reader(io.BytesIO(data), schema=batch.schema).read_all()
    assert found.to_pylist() == batch.to_pylist()
