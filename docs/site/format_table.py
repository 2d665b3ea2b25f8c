"""The table of formats in docs/formats.md: files are written, and opened with and without their schema."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, get_args, get_type_hints

import pyarrow as pa

from formats import (
    ArrowWriterFactory,
    AvroWriterFactory,
    BaseEncoder,
    BulkWriterFactory,
    CompressWriterFactory,
    Encoder,
    ExcelWriterFactory,
    FormatError,
    OrcBulkWriterFactory,
    ParquetWriterFactory,
    SequenceFileWriterFactory,
    XmlWriterFactory,
)

_SCHEMA = pa.schema([("c", pa.string())])
_BATCH = pa.record_batch([["text"]], schema=_SCHEMA)
#: By its name: who makes it, what is made, and the parameter that chooses the codec.
_FORMATS: dict[str, tuple[str, BaseEncoder | BulkWriterFactory, str]] = {
    "Parquet": ("`ParquetWriterFactory`", ParquetWriterFactory(), "compression"),
    "ORC": ("`OrcBulkWriterFactory`", OrcBulkWriterFactory(), "compression"),
    "Avro": ("`AvroWriterFactory`, `Encoder.avro`", AvroWriterFactory(), "compression"),
    "Arrow IPC": ("`ArrowWriterFactory`", ArrowWriterFactory(), "compression"),
    "JSON lines": ("`Encoder.json_lines`", Encoder.json_lines(), ""),
    "CSV": ("`Encoder.csv`", Encoder.csv(), ""),
    "text": ("`Encoder.simple_string_encoder`", Encoder.simple_string_encoder(), ""),
    "a row format, compressed": (
        "`CompressWriterFactory`",
        CompressWriterFactory(encoder=Encoder.json_lines(), codec="gzip"),
        "codec",
    ),
    "SequenceFile": ("`SequenceFileWriterFactory`", SequenceFileWriterFactory(value="c"), "codec"),
    "XML": ("`XmlWriterFactory`", XmlWriterFactory(), ""),
    "Excel": ("`ExcelWriterFactory`", ExcelWriterFactory(), ""),
}


def lines() -> Iterator[str]:
    """The lines of the table."""
    yield "| format | made by | kind | codecs, the default first | reads |"
    yield "|---|---|---|---|---|"
    for name, (maker, made, codec) in _FORMATS.items():
        kind = "bulk" if isinstance(made, BulkWriterFactory) else "row"
        both = f"{kind}, row" if "Encoder." in maker and kind == "bulk" else kind
        yield f"| {name} | {maker} | {both} | {', '.join(_codecs(made, codec))} | {_reads(made)} |"


def _codecs(made: BaseEncoder | BulkWriterFactory, parameter: str) -> list[str]:
    if not parameter:
        return []
    names: list[str] = list(get_args(get_type_hints(type(made))[parameter]))
    default = next(each.default for each in fields(made) if each.name == parameter)  # type: ignore[arg-type]
    return [f"`{name}`" for name in sorted(names, key=lambda name: name != default)]


def _reads(made: Any) -> str:
    try:
        made.open_reader(io.BytesIO(_written(made))).read_all()
    except FormatError:
        made.open_reader(io.BytesIO(_written(made)), schema=_SCHEMA).read_all()
        return "with a schema"
    return "yes"


def _written(made: BaseEncoder | BulkWriterFactory) -> bytes:
    if isinstance(made, BaseEncoder):
        return made.header(_SCHEMA) + made.encode(_BATCH)
    file = io.BytesIO()
    writer = made.create(file, _SCHEMA)
    writer.write(_BATCH)
    writer.finish()
    return file.getvalue()
