"""What a sink writes into its files: a row format or a bulk format, behind one face."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from filesink.api import SHORT_INTERVAL
from filesink.buckets.projection import rendered_schema
from filesink.errors import ConfigError, SchemaError
from filesink.naming import OutputFileConfig
from filesink.parts.bulk_part_writer import BulkPartWriter
from filesink.parts.part_writer import PartWriter, SizeHint
from filesink.parts.row_part_writer import RowPartWriter
from filesink.storage.api import Output
from formats import columns, file_extensions
from formats.api import BaseEncoder, BulkWriterFactory, Format
from formats.errors import FormatError

_LONG_NAME: Final = 64  # characters; less than any version of Arrow cuts


@dataclass(frozen=True, slots=True)
class RowFormat:
    """Records appended one after the other; a part can be continued by appending more."""

    encoder: BaseEncoder

    def start(self, output: Output, schema: pa.Schema, hint: SizeHint) -> PartWriter:
        """A writer of a new part."""
        encoder = self.encoder.start_part()
        return RowPartWriter(
            output, encoder, header=encoder.header(rendered_schema(schema) or schema), hint=hint
        )

    def resume(self, output: Output, carry_over: bytes, hint: SizeHint) -> PartWriter:
        """A writer of the next segment of a part."""
        return RowPartWriter(output, self.encoder.resume_part(carry_over), header=b"", hint=hint)


@dataclass(frozen=True, slots=True)
class BulkFormat:
    """Records laid out together, with a footer; a file is whole or nothing."""

    factory: BulkWriterFactory

    def start(self, output: Output, schema: pa.Schema, hint: SizeHint) -> PartWriter:
        """A writer of a new part."""
        return BulkPartWriter(output, self.factory, schema=schema, hint=hint)


FileFormat = RowFormat | BulkFormat


def code_of(format_: FileFormat) -> Format:
    """The encoder or factory behind a format: what knows extension, options and types."""
    match format_:
        case RowFormat(encoder):
            return encoder
        case BulkFormat(factory):
            return factory


def signature(format_: FileFormat, schema: pa.Schema) -> str:
    """Names format, options and schema; files of equal signatures may be continued and concatenated."""
    schema = rendered_schema(schema) or schema
    text = schema.remove_metadata().to_string(show_field_metadata=False)
    # Arrow cuts long names in it. What it says of others stays, since parts that are open are known by it.
    text += "".join(f"\n{path!r}" for path, field in columns.walk(schema) if len(field.name) > _LONG_NAME)
    return f"{code_of(format_).signature()}#{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def check_suffix(format_: FileFormat, names: OutputFileConfig) -> None:
    """Raise ``ConfigError`` if readers would take files of these names for something else."""
    code = code_of(format_)
    suffix = names.suffix(code.extension)
    reason = file_extensions.contradiction(code, suffix)
    if reason is not None:
        raise ConfigError(
            f"part_suffix '{suffix}' does not go with {type(code).__name__}: {reason}. Without part_suffix "
            f"files end with '{code.extension}'",
            code="CONFLICT",
        )


def check_schema(format_: FileFormat, schema: pa.Schema) -> None:
    """Raise if records of ``schema`` cannot be written, or could not be read again.

    Raises:
        SchemaError: ``DUPLICATE_COLUMN``, for members of structs too; ``TYPE``.
    """
    twin = next(_twins(schema), None)
    if twin is not None:
        raise SchemaError(
            f"column {twin!r} occurs more than once: no reader could tell which is meant; rename one",
            code="DUPLICATE_COLUMN",
        )
    try:
        code_of(format_).check_schema(schema)
    except FormatError as error:
        raise SchemaError(error.message, code="TYPE") from error


def _twins(schema: pa.Schema) -> Iterator[str]:
    """Paths of columns and members of structs beside which there is another of the same name.

    Paths alone would not tell: a column may be called ``a.b`` beside a struct ``a``.
    """
    yield from _repeated(schema.names)
    for path, field in columns.walk(schema):
        if pt.is_struct(field.type):
            members = (child.name for _, child in columns.children(field, path=path))
            yield from (f"{path}.{name}" for name in _repeated(members))


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, times in Counter(names).items() if times > 1]


def check_crossing(format_: FileFormat, schema: pa.Schema) -> None:
    """Raise ``SchemaError`` if text of columns that cross to Python would not be Spark's.

    To Arrow every interval of days and seconds is one number, and its text that of a ``DAY TO SECOND``,
    of which Spark makes null when it reads another type of interval.
    """
    if not code_of(format_).writes_text:
        return
    for field in schema:
        short = (field.metadata or {}).get(SHORT_INTERVAL)
        if short is not None:
            raise SchemaError(
                f"column {short.decode()} would be written as INTERVAL DAY TO SECOND: cast it to that, or to "
                "STRING",
                code="TYPE",
            )


def check_continues(format_: FileFormat, old: pa.Schema, new: pa.Schema) -> None:
    """Raise ``SchemaError`` if files of ``old`` and ``new`` cannot be read as ``new`` side by side.

    No format of ours says in its files that a column is never null, so a new one always may be.
    """
    before, after = (pa.schema([columns.nullable(field) for field in schema]) for schema in (old, new))
    try:
        code_of(format_).check_continues(before, after)
    except FormatError as error:
        raise SchemaError(
            f"{error.message}. Or write to another path: together with the files of earlier batches nobody "
            "could read it as one table. Nothing was written",
            code="SCHEMA_CHANGE",
        ) from error


def carry_over(writer: PartWriter) -> bytes:
    """What the next segment of the part must know of this one."""
    return writer.encoder.carry_over() if isinstance(writer, RowPartWriter) else b""
