"""Formats by name, with the options that each has. A new format joins here.

Every option is text, as in Spark; its name is Spark's where Spark has it. ``option_table``
says what each means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from filesink.data_source.option_texts import Texts
from filesink.errors import ConfigError
from formats.api import BaseEncoder, BulkWriterFactory
from formats.arrow_ipc.writer import ArrowWriterFactory
from formats.avro.writer import AvroWriterFactory
from formats.compressed.writer import CompressWriterFactory
from formats.encoders import Encoder
from formats.errors import FormatError
from formats.orc.writer import OrcBulkWriterFactory
from formats.parquet.writer import ParquetWriterFactory
from formats.sequence_file.writer import SequenceFileWriterFactory

Code = BaseEncoder | BulkWriterFactory


@dataclass(frozen=True, slots=True)
class _Option:
    """Which parameter an option is for, and how its text becomes a value."""

    parameter: str
    value: Callable[[Texts, str], Any]


@dataclass(frozen=True, slots=True)
class _Format:
    """What makes the format of the options that were given."""

    make: Callable[..., Code]
    options: Mapping[str, _Option]


def _text(given: Texts, name: str) -> str | None:
    return given.get(name)


def _word(given: Texts, name: str) -> str:
    return given.get(name, "").lower()


def _number(given: Texts, name: str) -> int | None:
    return given.number(name)


def _size(given: Texts, name: str) -> int | str | None:
    return given.size(name)


def _flag(given: Texts, name: str) -> bool:
    return given.flag(name)


def _delimiter(given: Texts, name: str) -> str:
    text = given.get(name, "")
    return "\t" if text == "\\t" else text  # as Spark spells it


def _quote_mode(given: Texts, name: str) -> str:
    return "all" if given.flag(name) else "minimal"


def _compressible(make: Callable[..., BaseEncoder]) -> Callable[..., Code]:
    """A row format, or with ``compression`` its compressed files."""

    def made(*, compression: Any = "none", compression_level: int | None = None, **options: Any) -> Code:
        encoder = make(**options)
        if compression != "none":
            return CompressWriterFactory(encoder=encoder, codec=compression, level=compression_level)
        if compression_level is not None:
            raise FormatError("compressionLevel needs compression", kind="option")
        return encoder

    return made


_COMPRESSION = _Option("compression", _word)
_LEVEL = _Option("compression_level", _number)
_CODEC = {"compression": _COMPRESSION, "compressionLevel": _LEVEL}
_CHARSET = {"charset": _Option("charset", _text)}
_FORMATS: Final = {
    "parquet": _Format(
        ParquetWriterFactory,
        {
            "compression": _COMPRESSION,
            "compressionLevel": _LEVEL,
            "rowGroupRows": _Option("row_group_rows", _number),
            "rowGroupSize": _Option("row_group_size", _size),
        },
    ),
    "orc": _Format(
        OrcBulkWriterFactory,
        {"compression": _COMPRESSION, "stripeSize": _Option("stripe_size", _size)},
    ),
    "avro": _Format(
        AvroWriterFactory,
        {
            "compression": _COMPRESSION,
            "compressionLevel": _LEVEL,
            "blockSize": _Option("block_size", _size),
            "avroSchema": _Option("schema", _text),
        },
    ),
    "arrow": _Format(
        ArrowWriterFactory, {"compression": _COMPRESSION, "recordBatchSize": _Option("batch_size", _size)}
    ),
    "sequencefile": _Format(
        SequenceFileWriterFactory,
        {
            "keyColumn": _Option("key", _text),
            "valueColumn": _Option("value", _text),
            "compressionType": _Option("compression", _word),
            "compression": _Option("codec", _word),
        },
    ),
    "json": _Format(_compressible(Encoder.json_lines), _CODEC),
    "csv": _Format(
        _compressible(Encoder.csv),
        {
            **_CODEC,
            **_CHARSET,
            "delimiter": _Option("delimiter", _delimiter),
            "header": _Option("header", _flag),
            "dialect": _Option("dialect", _word),
            "quote": _Option("quote", _text),
            "escape": _Option("escape", _text),
            "quoteAll": _Option("quote_mode", _quote_mode),
            "nullValue": _Option("null_value", _text),
            "dateFormat": _Option("date_format", _text),
            "timestampFormat": _Option("timestamp_format", _text),
        },
    ),
    "text": _Format(_compressible(Encoder.simple_string_encoder), {**_CODEC, **_CHARSET}),
}
#: Every option of a format, as users spell it; some belong to several.
FORMAT_OPTIONS = tuple(dict.fromkeys(name for format_ in _FORMATS.values() for name in format_.options))


def parse_format(given: Texts) -> Code:
    """The format that the options describe; Parquet if they name none.

    Raises:
        ConfigError: ``BAD_VALUE``, an unknown format or a value it does not take; ``CONFLICT``, an
            option of another format.
    """
    name = given.get("format", "parquet").lower()
    chosen = _FORMATS.get(name)
    if chosen is None:
        raise given.bad("format", f"one of {', '.join(_FORMATS)}")
    _check_options(given, name, chosen)
    arguments = {
        option.parameter: option.value(given, spelled)
        for spelled, option in chosen.options.items()
        if given.get(spelled) is not None
    }
    try:
        return chosen.make(**arguments)
    except FormatError as error:
        raise ConfigError(f"format '{name}': {error.message}", code="BAD_VALUE") from error


def _check_options(given: Texts, name: str, chosen: _Format) -> None:
    for option in FORMAT_OPTIONS:
        if option not in chosen.options and given.get(option) is not None:
            owners = [other for other, format_ in _FORMATS.items() if option in format_.options]
            raise ConfigError(
                f"option '{option}' belongs to format '{' and '.join(owners)}', and the format is '{name}'; "
                "remove it",
                code="CONFLICT",
            )
