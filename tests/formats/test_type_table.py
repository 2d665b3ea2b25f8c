"""The table of types in docs/formats.md is what the formats do: written, and looked at with other readers."""

from __future__ import annotations

import io
import json
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pyorc
import pytest

from formats import (
    ArrowWriterFactory,
    AvroWriterFactory,
    Encoder,
    FormatError,
    OrcBulkWriterFactory,
    ParquetWriterFactory,
)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "formats.md"
TYPES = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DECIMAL(10,2)": pa.decimal128(10, 2),
    "DECIMAL(38,18)": pa.decimal128(38, 18),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
    "TIME": pa.time64("ns"),
    "INTERVAL DAY TO SECOND": pa.duration("us"),
    "ARRAY<INT>": pa.list_(pa.int32()),
    "MAP<STRING,INT>": pa.map_(pa.string(), pa.int32()),
    "MAP<INT,INT>": pa.map_(pa.int32(), pa.int32()),
    "STRUCT<a:INT>": pa.struct([("a", pa.int32())]),
    "VOID": pa.null(),
    "VARIANT": pa.struct(
        [
            pa.field("value", pa.binary()),
            pa.field("metadata", pa.binary(), metadata={"variant": "true"}),
        ]
    ),
    "GEOMETRY": pa.struct(
        [pa.field("srid", pa.int32()), pa.field("wkb", pa.binary(), metadata={"geometry": "true"})]
    ),
    "GEOGRAPHY": pa.struct(
        [pa.field("srid", pa.int32()), pa.field("wkb", pa.binary(), metadata={"geography": "true"})]
    ),
}
OPAQUE = {"VARIANT": "to_json", "GEOMETRY": "st_asbinary", "GEOGRAPHY": "st_asbinary"}


def parquet(file):
    """Physical and logical type of the first leaf, or of what is around it."""
    column = pq.ParquetFile(file).schema.column(0)
    logical = json.loads(column.logical_type.to_json())
    kind = logical.pop("Type")
    if column.path != "c":
        return {"list": "LIST", "key_": "MAP"}.get(
            column.path.split(".")[1][:4], "MAP" if "key_value" in column.path else "group"
        )
    if kind == "None":
        return column.physical_type
    adjusted = {True: ", instant", False: ", local"}.get(logical.get("isAdjustedToUTC"), "")
    unit = f" {logical['timeUnit']}" if "timeUnit" in logical else ""
    return f"{column.physical_type} {kind}{unit}{adjusted}"


def orc(file):
    """As ORC spells it."""
    return str(pyorc.Reader(file).schema.fields["c"])


def avro(file):
    """The branch beside null."""
    kind = fastavro.reader(file).writer_schema["fields"][0]["type"]
    branch = kind[1] if isinstance(kind, list) else kind
    if isinstance(branch, str):
        return branch
    logical = branch.get("logicalType") or branch.get("spark.sql.catalyst.type")
    return f"{branch['type']} {logical}" if logical else branch["type"]


FACTORIES = {
    "Parquet": (ParquetWriterFactory(), parquet),
    "ORC": (OrcBulkWriterFactory(), orc),
    "Avro": (AvroWriterFactory(), avro),
}
ENCODERS = {"JSON lines": Encoder.json_lines(), "CSV": Encoder.csv()}


def cell(factory, look, kind):
    """What the file says of a column of ``kind``."""
    schema = pa.schema([("c", kind)])
    try:
        factory.check_schema(schema)
    except FormatError:
        return "refused"
    file = io.BytesIO()
    writer = factory.create(file, schema)
    writer.write(pa.record_batch([pa.nulls(2, kind)], schema=schema))
    writer.finish()
    return f"`{look(io.BytesIO(file.getvalue()))}`"


def accepts(encoder, kind):
    """Whether a row format takes a column of ``kind``."""
    try:
        encoder.check_schema(pa.schema([("c", kind)]))
    except FormatError:
        return "refused"
    return "yes"


def table():
    """The lines of the table."""
    yield f"| Spark | {' | '.join([*FACTORIES, *ENCODERS])} |"
    yield "|---" * (1 + len(FACTORIES) + len(ENCODERS)) + "|"
    for name, kind in TYPES.items():
        cells = [cell(factory, look, kind) for factory, look in FACTORIES.values()]
        cells += [accepts(encoder, kind) for encoder in ENCODERS.values()]
        yield f"| `{name}` | {' | '.join(cells)} |"


def test_the_table_of_types_is_true():
    """Paste what this test computes when a format learns a type."""
    wanted = "\n".join(table())
    assert wanted in PAGE.read_text(), wanted


@pytest.mark.parametrize("factory", [factory for factory, _ in FACTORIES.values()], ids=FACTORIES)
def test_refusals_of_nested_types_name_the_path(factory):
    """What is refused at the top is refused inside, too."""
    for name, kind in TYPES.items():
        try:
            factory.check_schema(pa.schema([("c", kind)]))
        except FormatError:
            inner = pa.schema([("c", pa.struct([pa.field("x", pa.list_(kind))]))])
            with pytest.raises(FormatError, match=r"column 'c\.x\[\]"):
                factory.check_schema(inner)
            assert name in {*OPAQUE, "TIME", "INTERVAL DAY TO SECOND", "VOID", "MAP<INT,INT>"}


@pytest.mark.parametrize(("name", "function"), OPAQUE.items())
@pytest.mark.parametrize(
    "code",
    [*(factory for factory, _ in FACTORIES.values()), *ENCODERS.values(), ArrowWriterFactory()],
    ids=lambda code: type(code).__name__,
)
def test_what_only_spark_understands_is_refused_with_the_way_out(code, name, function):
    """Its opaque bytes would be of no use to a reader."""
    with pytest.raises(FormatError, match=rf"column 'c' is a {name}: write {function}\(c\) instead"):
        code.check_schema(pa.schema([("c", TYPES[name])]))
