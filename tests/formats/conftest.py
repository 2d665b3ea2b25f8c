"""Every format of the package, once. Registering one here enrols it in the contract tests."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from formats import (
    ArrowWriterFactory,
    AvroWriterFactory,
    BulkWriterFactory,
    CompressWriterFactory,
    Encoder,
    ExcelWriterFactory,
    OrcBulkWriterFactory,
    ParquetWriterFactory,
    RowEncoder,
    SequenceFileWriterFactory,
    XmlWriterFactory,
)
from formats.per_row import PerRowEncoder
from formats.text.line_format import TextLineFormat
from tests.examples.toy_format import ToyEncoder
from tests.formats.forms import Form, plain, row_form

TEXTS = [
    "plain",
    "",
    None,
    "é 漢 😀",
    "a\nb\r\n",
    'q"q',
    "back\\slash\\",
    "comma, semi;",
    " spaces ",
    "\0\x1f",
    "#",
]


class Repr(RowEncoder):
    """The ``repr`` of each row; what a user might write."""

    extension = ".repr"

    def encode(self, row: Mapping[str, Any]) -> bytes:
        """One line per row."""
        return f"{row!r}\n".encode()


@dataclass(frozen=True)
class Case:
    """A format and what it can write."""

    encoder: Encoder
    columns: frozenset[str] | None = None
    others: tuple[Encoder, ...] = field(default=())  # differ in one option each
    is_cut_anywhere: bool = True  # any ranges of bytes are splits

    def records(self, encoder: Encoder, *batches: pa.RecordBatch) -> object:
        """What a reader of a part finds, or its bytes if they are the same wherever it was cut."""
        data = b"".join(bytes(encoder.encode(batch)) for batch in batches)
        if not encoder.carry_over():
            return data
        file = io.BytesIO(encoder.header(batches[0].schema) + data)
        return str(encoder.open_reader(file).read_all().to_pylist())


def scalars() -> pa.RecordBatch:
    """Eleven rows of every scalar type, each with nulls and with values at its limits."""
    n = len(TEXTS)
    day, instant = date(2024, 2, 29), datetime(2024, 7, 1, 12, 34, 56, 123456, UTC)
    columns = {
        "text": pa.array(TEXTS),
        "large": pa.array(TEXTS, pa.large_string()),
        "view": pa.array(TEXTS).cast(pa.string_view()),
        "dictionary": pa.array(TEXTS).dictionary_encode(),
        "raw": pa.array([None if text is None else text.encode() for text in TEXTS]),
        "int": pa.array([None, -(2**31), 2**31 - 1, *range(n - 3)], pa.int32()),
        "long": pa.array([-(2**63), 2**63 - 1, None, *range(n - 3)], pa.int64()),
        "double": pa.array(
            [1.0, -0.0, None, float("nan"), float("-inf"), 1e7, 1e-4, 1.5e300, 0.1, 5e-324, 100.0]
        ),
        "float": pa.array([1.0, 0.1, None, 3.4e38, 1e10, *map(float, range(n - 5))], pa.float32()),
        "bool": pa.array([True, None, *[False] * (n - 2)]),
        "decimal": pa.array([Decimal("1.50"), None, *[Decimal("-0.01")] * (n - 2)], pa.decimal128(10, 2)),
        "date": pa.array([day, None, *[date(1, 1, 1)] * (n - 2)]),
        "at": pa.array(
            [instant, None, *[instant - timedelta(days=9 * i) for i in range(n - 2)]],
            pa.timestamp("us", "Europe/Berlin"),
        ),
        "wall": pa.array([None, *[instant.replace(tzinfo=None)] * (n - 1)], pa.timestamp("us")),
        "time": pa.array([time(1, 2, 3, 500000), None, *[time()] * (n - 2)], pa.time64("ns")),
        "span": pa.array([timedelta(days=-1, hours=2), None, *[timedelta()] * (n - 2)], pa.duration("us")),
        "void": pa.nulls(n),
    }
    return pa.record_batch(columns)


def nested() -> pa.RecordBatch:
    """Eleven rows of structs, lists and maps, empty and null, with scalars inside."""
    n, pairs = len(TEXTS), pa.map_(pa.string(), pa.list_(pa.int32()))
    columns = {
        "list": pa.array([[text, "x"] if text else text and [] for text in TEXTS], pa.list_(pa.string())),
        "struct": pa.array(
            [None, {"a": 1, "b": None}, {"a": None, "b": "y"}, *[{"a": 2, "b": '"'}] * (n - 3)]
        ),
        "map": pa.array([[("k", [1])], None, [], [("a", None), ('"', [])], *[[]] * (n - 4)], pairs),
        "deep": pa.array([[[{"x": [1.5]}], None], None, [], *[[[]]] * (n - 3)]),
    }
    return pa.record_batch(columns)


def everything() -> pa.RecordBatch:
    """``scalars`` and ``nested`` side by side."""
    left, right = scalars(), nested()
    return pa.record_batch([*left.columns, *right.columns], names=[*left.schema.names, *right.schema.names])


def every(*names: str) -> frozenset[str]:
    """The names of columns."""
    return frozenset(names)


ROW_FORMATS = {
    "text": Case(
        Encoder.simple_string_encoder(), every("text"), (Encoder.simple_string_encoder("UTF-16-LE"),)
    ),
    "text-utf16": Case(Encoder.simple_string_encoder("UTF-16-LE"), every("dictionary")),
    "text-of-doubles": Case(Encoder.simple_string_encoder(), every("double")),
    "json": Case(Encoder.json_lines()),
    "csv": Case(
        Encoder.csv(),
        frozenset(scalars().schema.names),
        (
            Encoder.csv(";"),
            Encoder.csv(header=True),
            Encoder.csv(quote="'"),
            Encoder.csv(dialect="spark"),
            Encoder.csv(quote_mode="all"),
            Encoder.csv(quote_mode="none"),
            Encoder.csv(null_value="NULL"),
            Encoder.csv(date_format="yyyy"),
            Encoder.csv(timestamp_format="yyyy"),
            Encoder.csv(charset="UTF-16-LE"),
        ),
        is_cut_anywhere=False,
    ),
    "csv-all": Case(
        Encoder.csv("||", header=True, quote_mode="all", escape='"', null_value="\\N"),
        frozenset(scalars().schema.names),
    ),
    "csv-minus": Case(
        Encoder.csv("-", null_value="-"), frozenset(scalars().schema.names), is_cut_anywhere=False
    ),
    "csv-utf16": Case(
        Encoder.csv(header=True, charset="UTF-16-BE"),
        frozenset(scalars().schema.names),
        is_cut_anywhere=False,
    ),
    "csv-spark": Case(
        Encoder.csv(dialect="spark", header=True), frozenset(scalars().schema.names), is_cut_anywhere=False
    ),
    "csv-patterns": Case(
        Encoder.csv(date_format="dd.MM.yyyy", timestamp_format="yyyy-MM-dd'T'HH,mm"),
        frozenset(scalars().schema.names),
    ),
    "csv-unquoted": Case(
        Encoder.csv("\x01", quote_mode="none", null_value="\\N"), every("int", "bool", "at")
    ),
    "csv-of-one": Case(Encoder.csv(), every("text"), is_cut_anywhere=False),
    "avro": Case(
        Encoder.avro(),
        None,
        (
            Encoder.avro("deflate"),
            Encoder.avro("deflate", compression_level=1),
            Encoder.avro(block_size="1MiB"),
            Encoder.avro(metadata={"who": "us"}),
            Encoder.avro(schema={"type": "record", "name": "r", "fields": []}),
        ),
    ),
    "avro-small-blocks": Case(Encoder.avro("null", block_size=1)),
    "user": Case(PerRowEncoder(Repr())),
    "toy": Case(ToyEncoder(), frozenset(scalars().schema.names)),
}
NEVER = (
    (pa.month_day_nano_interval(), "c"),
    (pa.struct([("a", pa.list_(pa.month_day_nano_interval()))]), "c.a[]"),
    (pa.map_(pa.string(), pa.struct([])), "c.value"),
)


@dataclass(frozen=True)
class BulkCase:
    """A bulk format, the columns it cannot write, and types it refuses, with the path it names."""

    factory: BulkWriterFactory
    without: frozenset[str] = frozenset()
    refused: tuple[tuple[pa.DataType, str], ...] = NEVER


NOT_IN_ORC = every("time", "span", "void")
BULK_FORMATS = {
    "parquet": BulkCase(ParquetWriterFactory()),
    "parquet-small-groups": BulkCase(
        ParquetWriterFactory(row_group_rows=3, compression="zstd", compression_level=3)
    ),
    "parquet-tiny-size": BulkCase(
        ParquetWriterFactory(row_group_size=1, compression="none", metadata={"who": "us"})
    ),
    "avro": BulkCase(AvroWriterFactory(), refused=(*NEVER, (pa.list_(pa.uint64()), "c[]"))),
    "avro-small-blocks": BulkCase(
        AvroWriterFactory(compression="zstandard", block_size=100, metadata={"who": "us"})
    ),
    "orc": BulkCase(
        OrcBulkWriterFactory(), NOT_IN_ORC, (*NEVER, (pa.list_(pa.null()), "c[]"), (pa.uint64(), "c"))
    ),
    "orc-small-stripes": BulkCase(
        OrcBulkWriterFactory(stripe_size=1, compression="none", metadata={"who": "us"}), NOT_IN_ORC
    ),
    "orc-small-snappy": BulkCase(
        OrcBulkWriterFactory(stripe_size=1, compression="snappy", metadata={"who": "us"}), NOT_IN_ORC
    ),
    "avro-in-zstd": BulkCase(CompressWriterFactory(encoder=Encoder.avro("null"), codec="zstd")),
    "avro-in-small-xz": BulkCase(
        CompressWriterFactory(encoder=Encoder.avro("null"), codec="xz", block_size=1)
    ),
    "arrow": BulkCase(ArrowWriterFactory(), refused=()),
    "arrow-small-batches": BulkCase(ArrowWriterFactory(batch_size=1, compression="none"), refused=()),
}
#: Formats of few types, or whose files do not say theirs: only the suite of splits asks the same of them.
PARTICULAR_FORMATS = {
    "csv-in-gzip": (CompressWriterFactory(encoder=Encoder.csv(header=True)), ("int", "text")),
    "text-in-zstd": (
        CompressWriterFactory(encoder=Encoder.simple_string_encoder(), codec="zstd", block_size=1),
        ("text",),
    ),
    **{
        f"sequence-{each}": (SequenceFileWriterFactory(key="int", compression=each), ("int", "text"))
        for each in ("none", "record", "block")
    },
    "xml": (XmlWriterFactory(), ("int", "text", "double")),
    "excel": (ExcelWriterFactory(), ("int", "text", "double")),
}


def _row_forms(rows: pa.RecordBatch) -> dict[str, Form]:
    forms = {}
    for name, case in ROW_FORMATS.items():
        columns = [each for each in rows.schema.names if case.columns is None or each in case.columns]
        forms[name] = row_form(case.encoder, rows.select(columns), is_cut_anywhere=case.is_cut_anywhere)
    return {name: found for name, found in forms.items() if found.rows.num_columns}


#: Each format that is read back: with records that are found as they were written, and with every type.
PLAIN_FORMS = {
    **_row_forms(plain()),
    **{
        name: Form(bulk.factory, plain().select(["int", "text", "double"]))
        for name, bulk in BULK_FORMATS.items()
    },
    **{
        name: Form(factory, plain().select(columns))
        for name, (factory, columns) in PARTICULAR_FORMATS.items()
    },
    "lines": Form(TextLineFormat(), plain().select(["text"]), made_by=Encoder.simple_string_encoder()),
}
WIDE_FORMS = {
    **_row_forms(everything()),
    **{
        name: Form(bulk.factory, everything().drop_columns(sorted(bulk.without)))
        for name, bulk in BULK_FORMATS.items()
    },
}


@pytest.fixture(scope="session", params=PLAIN_FORMS.values(), ids=PLAIN_FORMS.keys())
def plain_form(request: pytest.FixtureRequest) -> Form:
    """Each format that is read back, with plain records."""
    return request.param


@pytest.fixture(scope="session", params=WIDE_FORMS.values(), ids=WIDE_FORMS.keys())
def wide_form(request: pytest.FixtureRequest) -> Form:
    """Each format that is read back, with rows of every type that it has."""
    return request.param


@pytest.fixture(params=ROW_FORMATS.values(), ids=ROW_FORMATS.keys())
def case(request: pytest.FixtureRequest) -> Case:
    """Each registered row format."""
    return request.param


@pytest.fixture
def encoder(case: Case) -> Encoder:
    """The encoder of a part of the format of ``case``."""
    return case.encoder.start_part()


@pytest.fixture
def batch(case: Case) -> pa.RecordBatch:
    """Rows of everything that the format of ``case`` can write."""
    whole = everything()
    return (
        whole if case.columns is None else whole.select([n for n in whole.schema.names if n in case.columns])
    )


@pytest.fixture(params=BULK_FORMATS.values(), ids=BULK_FORMATS.keys())
def bulk(request: pytest.FixtureRequest) -> BulkCase:
    """Each registered bulk format."""
    return request.param


@pytest.fixture
def factory(bulk: BulkCase) -> BulkWriterFactory:
    """The factory of each registered bulk format."""
    return bulk.factory


@pytest.fixture
def rows(bulk: BulkCase) -> pa.RecordBatch:
    """Rows of every type that the format of ``bulk`` can write."""
    return everything().drop_columns(sorted(bulk.without))


@pytest.fixture
def all_rows() -> pa.RecordBatch:
    """Rows of every type."""
    return everything()
