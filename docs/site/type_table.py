"""The table of types in docs/formats.md: files are written, and looked at with other readers than ours."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import IO, Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pyorc

from formats import (
    AvroWriterFactory,
    BaseEncoder,
    BulkWriterFactory,
    Encoder,
    FormatError,
    OrcBulkWriterFactory,
    ParquetWriterFactory,
)

#: What Arrow has for each type of Spark.
TYPES: dict[str, pa.DataType] = {
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


def parquet(file: IO[bytes]) -> str:
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


def orc(file: IO[bytes]) -> str:
    """As ORC spells it."""
    return str(pyorc.Reader(file).schema.fields["c"])


def avro(file: IO[bytes]) -> str:
    """The branch beside null."""
    kind = fastavro.reader(file).writer_schema["fields"][0]["type"]
    branch = kind[1] if isinstance(kind, list) else kind
    if isinstance(branch, str):
        return branch
    logical = branch.get("logicalType") or branch.get("spark.sql.catalyst.type")
    return f"{branch['type']} {logical}" if logical else branch["type"]


#: Bulk formats with what tells the type of a column ``c``.
FACTORIES: dict[str, tuple[BulkWriterFactory, Any]] = {
    "Parquet": (ParquetWriterFactory(), parquet),
    "ORC": (OrcBulkWriterFactory(), orc),
    "Avro": (AvroWriterFactory(), avro),
}
ENCODERS: dict[str, BaseEncoder] = {"JSON lines": Encoder.json_lines(), "CSV": Encoder.csv()}


def cell(factory: BulkWriterFactory, look: Callable[[IO[bytes]], str], kind: pa.DataType) -> str:
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


def accepts(encoder: BaseEncoder, kind: pa.DataType) -> str:
    """Whether a row format takes a column of ``kind``."""
    try:
        encoder.check_schema(pa.schema([("c", kind)]))
    except FormatError:
        return "refused"
    return "yes"


def lines() -> Iterator[str]:
    """The lines of the table."""
    yield f"| Spark | {' | '.join([*FACTORIES, *ENCODERS])} |"
    yield "|---" * (1 + len(FACTORIES) + len(ENCODERS)) + "|"
    for name, kind in TYPES.items():
        cells = [cell(factory, look, kind) for factory, look in FACTORIES.values()]
        cells += [accepts(encoder, kind) for encoder in ENCODERS.values()]
        yield f"| `{name}` | {' | '.join(cells)} |"
