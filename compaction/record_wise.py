"""Merging by records: what the files of the inputs hold, decoded and encoded anew."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as pt

from compaction import parquet
from compaction.contract import RewritingFileCompactor
from compaction.inputs import InputFile
from filesink.errors import CompactionError, ConfigError
from filesink.parts.file_format import BulkFormat, FileFormat, RowFormat, code_of
from filesink.parts.stages.merger import UNREADABLE
from formats import columns
from formats.errors import FormatError
from formats.evolution import check_readable_as
from formats.parquet.writer import ParquetWriterFactory
from formats.read_limits import own_file

if TYPE_CHECKING:
    from formats.api import BaseEncoder, BinaryOutput, BulkWriterFactory, Format


_SEVERAL = 2


class RecordWiseFileCompactor(RewritingFileCompactor):
    """See ``FileCompactor.record_wise_file_compactor``."""

    def check(self, form: FileFormat) -> None:
        """See ``FileCompactor.check``; the format must read its own files without being told a schema."""
        match form:
            case BulkFormat(factory=ParquetWriterFactory(layout=layout)) if layout.sorted_by:
                raise ConfigError(
                    "files that are sorted one by one would not be sorted after a merge; leave out "
                    "sorted_by, or use FileCompactor.identical_file_compactor()",
                    code="COMPACTION",
                )
            case _:
                self._check_reader(form)

    def _check_reader(self, form: FileFormat) -> None:
        try:
            code_of(form).open_reader(io.BytesIO())
        except FormatError as error:
            if error.kind == "option":
                other = "identical" if isinstance(form, BulkFormat) else "concat"
                raise ConfigError(
                    f"records of {type(code_of(form)).__name__} cannot be read back ({error.message}); use "
                    f"FileCompactor.{other}_file_compactor()",
                    code="COMPACTION",
                ) from error

    def rewrite(self, inputs: Sequence[InputFile], output: BinaryOutput, form: FileFormat) -> int:
        """See ``RewritingFileCompactor.rewrite``.

        Raises:
            CompactionError: ``SCHEMA``, no schema holds the records of all inputs; ``INPUT``, an
                input cannot be read.
        """
        try:
            rows = merge_records(inputs, output, form)
        except FormatError as error:
            raise _as_ours(error) from error
        expected = sum(file.rows for file in inputs)
        if rows != expected:
            raise CompactionError(
                f"files of {expected} records were read back as {rows}, as happens if values of text hold "
                "line breaks; they are kept as they are",
                code=UNREADABLE,
            )
        return rows


def merge_records(inputs: Sequence[InputFile], output: BinaryOutput, form: FileFormat) -> int:
    """Write the records of ``inputs``, in their order, into ``output`` and say how many.

    Raises:
        FormatError: no schema holds the records of all inputs, or one cannot be read.
    """
    is_alike = len({file.signature for file in inputs}) == 1
    match form:
        case BulkFormat(factory=ParquetWriterFactory() as own) if is_alike and parquet.suits(own):
            return parquet.rewrite(inputs, output, own)
        case BulkFormat(factory=factory):
            return _rewrite_bulk(inputs, output, factory)
        case RowFormat(encoder=encoder):
            return _rewrite_rows(inputs, output, encoder)


def _rewrite_bulk(inputs: Sequence[InputFile], output: BinaryOutput, factory: BulkWriterFactory) -> int:
    schema = _common_schema(inputs, factory)
    writer = factory.create(output, schema)
    rows = 0
    for batch in _batches(inputs, factory, schema):
        writer.write(batch)
        rows += batch.num_rows
    writer.finish()
    return rows


def _rewrite_rows(inputs: Sequence[InputFile], output: BinaryOutput, encoder: BaseEncoder) -> int:
    schema = _common_schema(inputs, encoder)
    writer = encoder.start_part()
    output.write(writer.header(schema))
    rows = 0
    for batch in _batches(inputs, encoder, schema):
        if batch.num_rows:
            output.write(writer.encode(batch))
        rows += batch.num_rows
    return rows


def _batches(inputs: Sequence[InputFile], code: Format, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for file in inputs:
        with file.open() as stream:
            yield from code.open_reader(own_file(stream), schema=schema)


def _common_schema(inputs: Sequence[InputFile], code: Format) -> pa.Schema:
    """The schema that holds the records of all inputs: columns joined by name, types widened."""
    schemas: dict[str, pa.Schema] = {}
    for file in inputs:
        if file.signature not in schemas:
            with file.open() as stream:
                schemas[file.signature] = code.open_reader(own_file(stream)).schema
    found = _in_one_zone(list(schemas.values()))
    try:
        common = pa.unify_schemas(found, promote_options="permissive")
    except pa.ArrowException as error:
        raise FormatError(f"their columns have types that no common type holds: {error}") from error
    _check_case(found, common)
    if any(pt.is_decimal256(field.type) for _, field in columns.walk(common)):
        raise FormatError("their decimals need more than 38 digits together, which Spark cannot read")
    for schema in found:
        check_readable_as(schema, common)
    return common


def _in_one_zone(schemas: list[pa.Schema]) -> list[pa.Schema]:
    """The same, in UTC if their times have several zones: Arrow unites none. Instants stay what they are."""
    kinds = [field.type for schema in schemas for _, field in columns.walk(schema)]
    if len({kind.tz for kind in kinds if pt.is_timestamp(kind) and kind.tz is not None}) < _SEVERAL:
        return schemas
    return [pa.schema([columns.nullable(field, _in_utc) for field in schema]) for schema in schemas]


def _in_utc(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp(kind.unit, "UTC") if pt.is_timestamp(kind) and kind.tz is not None else kind


def _check_case(schemas: Sequence[pa.Schema], common: pa.Schema) -> None:
    """Refuse to bring together what no file had side by side: Spark could not read the merged one."""
    known = {name for schema in schemas for name in _twins(schema)}
    if new := sorted(_twins(common) - known):
        raise FormatError(
            f"column {new[0]!r} has another column beside it whose name differs only in its case; "
            "most readers could not tell them apart in one file"
        )


def _twins(schema: pa.Schema) -> set[str]:
    """Paths, in lower case, that several columns have."""
    times = Counter(path.lower() for path, _ in columns.walk(schema))
    return {path for path, number in times.items() if number >= _SEVERAL}


def _as_ours(error: FormatError) -> CompactionError:
    if error.kind == "schema":
        return CompactionError(
            f"files of different schemas cannot be merged: {error.message}. Nothing was published and the "
            "files are kept; have them published as they are with disable_compact()",
            code="SCHEMA",
        )
    return CompactionError(
        f"a file could not be read back: {error.message}; the files are kept as they are", code=UNREADABLE
    )
