"""The row formats that come with the package, as ``Encoder.csv(…)`` and the like make them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from formats.api import BaseEncoder
from formats.avro.codecs import AvroCodecName
from formats.avro.writer import AvroEncoder
from formats.csv.dialect import CsvDialect, default_escape
from formats.csv.encoder import CsvEncoder
from formats.csv.options import CsvValues
from formats.errors import FormatError
from formats.json.encoder import JsonLinesEncoder
from formats.per_row import PerRowEncoder
from formats.text.encoder import TextEncoder


class Encoder(BaseEncoder):
    """Makes the built-in row formats. Subclass it and override ``encode`` for a format of your own."""

    @staticmethod
    def simple_string_encoder(charset: str = "UTF-8") -> BaseEncoder:
        """One line of text per record: the value of the only column, then a line feed.

        Flink's ``SimpleStringEncoder``. Null is an empty line, as in Spark's text writer.
        """
        return TextEncoder(charset=charset)

    @staticmethod
    def json_lines() -> BaseEncoder:
        """One JSON object per line with the values of Spark's ``to_json``, times to the microsecond."""
        return JsonLinesEncoder()

    @staticmethod
    def csv(  # noqa: PLR0913 - the options of a dialect, all but two by name
        delimiter: str = ",",
        header: bool = False,  # noqa: FBT001, FBT002 - Spark's name and values
        *,
        dialect: Literal["rfc4180", "spark"] = "rfc4180",
        quote: str = '"',
        escape: str | None = None,
        quote_mode: Literal["minimal", "all", "none"] = "minimal",
        null_value: str = "",
        date_format: str | None = None,
        timestamp_format: str | None = None,
        charset: str = "UTF-8",
    ) -> BaseEncoder:
        """Comma-separated values; see ``formats.csv.encoder`` for the rules.

        Args:
            delimiter: between fields; one or more characters.
            header: whether every part file begins with the names of the columns.
            dialect: ``"rfc4180"`` doubles quotes inside of quotes, as pandas, DuckDB, polars, pyarrow and
                spreadsheets read by default; ``"spark"`` puts a backslash before them, as Spark reads by
                default.
            quote: around fields that need it.
            escape: before a quote or escape character inside quotes; ``None`` for that of the dialect.
            quote_mode: ``"minimal"`` quotes where needed, ``"all"`` every field; with ``"none"`` a value
                that would need quotes cannot be written.
            null_value: what stands for null; an empty string is ``""`` and so differs from it.
            date_format: a pattern such as ``"dd.MM.yyyy"``, see ``formats.text.time_patterns``.
            timestamp_format: the same for timestamps, in the zone of the session.
            charset: of the files.

        Raises:
            FormatError: kind ``"option"``; options with which readers could not tell values apart.
        """
        if not isinstance(header, bool):  # "false" would be true
            raise FormatError("CSV header must be True or False", kind="option")
        if escape is None:
            escape = default_escape(dialect, quote=quote)
        return CsvEncoder(
            dialect=CsvDialect(delimiter=delimiter, quote=quote, escape=escape, quote_mode=quote_mode),
            header_mode="names" if header else "none",
            values=CsvValues(
                null_value=null_value, date_format=date_format, timestamp_format=timestamp_format
            ),
            charset=charset,
        )

    @staticmethod
    def avro(
        compression: AvroCodecName = "snappy",
        *,
        compression_level: int | None = None,
        block_size: int | str = "256KiB",
        metadata: Mapping[str, str] | None = None,
        schema: str | Mapping[str, Any] | None = None,
    ) -> BaseEncoder:
        """Avro object container files that can be continued; see ``formats.avro.writer.AvroOptions``.

        Raises:
            FormatError: kind ``"option"``; an unknown codec or level, an invalid size or an invalid schema.
        """
        return AvroEncoder(
            compression=compression,
            compression_level=compression_level,
            block_size=block_size,
            metadata=metadata,
            schema=schema,
        )


# They derive from the contract only. This makes isinstance() take them for encoders, too.
for _kind in (AvroEncoder, CsvEncoder, JsonLinesEncoder, PerRowEncoder, TextEncoder):
    Encoder.register(_kind)
