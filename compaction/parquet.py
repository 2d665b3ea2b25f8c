"""Merging Parquet files of one schema: decoding and encoding at the same time, texts by reference.

What costs time in Parquet are texts that repeat: decoded, they are copied for every record, and
encoded, hashed again. Columns that have few values come from their pages as a dictionary with
numbers, and go back as such; only the dictionaries of a row group are made one. The file is the
same, byte for byte in its footer's schema, as one that was written from plain texts.

A dictionary of values that hardly repeat is the column once more, and numbers beside it: what a first
sample says of a column is taken for all of it, unless the format's layout names the columns.

One thread decodes the next row group while another encodes the last one, so at most two are in
memory, however large and many the files are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from compaction.inputs import InputFile, signature_of
from formats.errors import FormatError
from formats.parquet.reader import FOOTER_LIMITS
from formats.parquet.writer import ParquetWriterFactory
from formats.reading import Source

if TYPE_CHECKING:
    from formats.api import BinaryOutput, BulkWriter

_GROUPS: Final = 5  # row groups that a file is cut into if they are large enough, so that both threads work
_SMALLEST_GROUP: Final = 16 << 20  # bytes of Arrow data
_WHOLE: Final = 32 << 20  # bytes; a file of that size is read at once
_SAMPLE: Final = 20_000  # records
_UNIQUE: Final = 0.9  # of the records of a sample have a value of their own
_FEW_VALUES: Final = 16 << 10  # bytes of a compressed dictionary page
_OFFSET: Final = 4  # bytes of a text's place among others
_TEXT: Final = (pt.is_string, pt.is_large_string, pt.is_string_view)


def suits(factory: ParquetWriterFactory) -> bool:
    """Whether files of ``factory`` can be merged like this; else they are like those of any format."""
    return factory.encryption is None and not factory.layout.bloom_filters


def rewrite(inputs: Sequence[InputFile], output: BinaryOutput, factory: ParquetWriterFactory) -> int:
    """Write the records of ``inputs``, which have one schema, into ``output``; return how many.

    Raises:
        FormatError: an input is not a Parquet file, or is one of another schema.
    """
    tables = _Tables(inputs)
    limit = min(cast("int", factory.row_group_size), max(_SMALLEST_GROUP, tables.size // _GROUPS))
    rest = iter(tables)
    first = _sample(rest)
    rows = 0
    with ThreadPoolExecutor(1) as encoder:
        writer = encoder.submit(_create, output, tables.schema, factory=factory, sample=first)
        encoding: Future[Any] = writer
        groups = _groups(chain(first, rest), limit, decoded=cast("int", factory.row_group_size))
        del first  # it may be a whole row group
        for group in groups:
            rows += group.num_rows
            encoding.result()
            encoding = encoder.submit(_write, writer.result(), group)
        encoding.result()
    writer.result().finish()
    return rows


def _sample(tables: Iterator[pa.Table]) -> list[pa.Table]:
    """The first ones, until they have enough records to tell which columns repeat their values."""
    taken: list[pa.Table] = []
    while sum(table.num_rows for table in taken) < _SAMPLE and (table := next(tables, None)) is not None:
        taken.append(table)
    return taken


def _create(
    output: BinaryOutput, schema: pa.Schema, *, factory: ParquetWriterFactory, sample: Sequence[pa.Table]
) -> BulkWriter:
    """A writer without dictionaries for columns of which a sample hardly repeats a value."""
    if factory.layout.dictionary == "all" and sample and not any(pt.is_nested(kind) for kind in schema.types):
        records = pa.concat_tables(sample).slice(0, _SAMPLE)
        if records.num_rows == _SAMPLE:
            names = [name for name in records.column_names if _repeats(records.column(name))]
            factory = replace(factory, layout=replace(factory.layout, dictionary=names))
    return factory.create(output, schema)


def _repeats(column: pa.ChunkedArray[Any]) -> bool:
    if pt.is_dictionary(column.type) or pt.is_boolean(column.type):
        return True
    values = column.cast(pa.string()) if pt.is_string_view(column.type) else column
    try:
        return pc.count_distinct(values).as_py() <= _UNIQUE * len(column)
    except pa.ArrowNotImplementedError:  # of this type distinct values cannot be counted
        return True


def describe(stream: BinaryIO, size: int) -> tuple[str, int]:
    """Schema and number of records of a file of ``size`` bytes, from its footer.

    Raises:
        FormatError: it is not a Parquet file.
    """
    file = _open(Source(stream), size, [])
    return signature_of(file.schema_arrow), file.metadata.num_rows


class _Tables:
    """The row groups of all inputs, one after the other; texts of few values are dictionaries."""

    def __init__(self, inputs: Sequence[InputFile]) -> None:
        self._inputs = inputs
        with inputs[0].open() as stream:
            source = Source(stream)
            first = _open(source, inputs[0].size, [])
            self._few = _texts_of_few_values(first)
            groups = [first.metadata.row_group(number) for number in range(first.num_row_groups)]
            self.schema = _open(source, inputs[0].size, self._few).schema_arrow
        sampled = max(1, first.metadata.num_rows)
        rows = sum(file.rows for file in inputs)
        #: Bytes of all records in Arrow's form, by the first file.
        self.size = sum(group.total_byte_size for group in groups) * rows // sampled

    def __iter__(self) -> Iterator[pa.Table]:
        for file in self._inputs:
            with file.open() as stream:
                source = Source(stream)
                with source.as_damage("the file is damaged or cut off"):
                    yield from self._row_groups(_open(source, file.size, self._few))

    def _row_groups(self, file: pq.ParquetFile) -> Iterator[pa.Table]:
        if not file.schema_arrow.equals(self.schema):
            raise FormatError("a file does not have the schema that the ledger has for it")
        for number in range(file.num_row_groups):
            # In this thread alone: encoding takes longer, and more threads would only slow it down.
            yield file.read_row_group(number, use_threads=False)


def _open(source: Source, size: int, few: Sequence[str]) -> pq.ParquetFile:
    source.seek(0)
    is_whole = size <= _WHOLE
    lent: Any = pa.BufferReader(source.read()) if is_whole else source
    with source.as_damage("no readable Parquet file"):
        return pq.ParquetFile(
            lent,
            read_dictionary=list(few),
            coerce_int96_timestamp_unit="us",
            pre_buffer=not is_whole,
            page_checksum_verification=True,  # else damage would get a checksum that is right
            **FOOTER_LIMITS,
        )


def _texts_of_few_values(file: pq.ParquetFile) -> list[str]:
    """Columns of text whose first row group has a small dictionary."""
    if not file.num_row_groups:
        return []
    texts = {field.name for field in file.schema_arrow if any(is_text(field.type) for is_text in _TEXT)}
    group = file.metadata.row_group(0)
    chunks = [group.column(index) for index in range(group.num_columns)]
    return [
        chunk.path_in_schema
        for chunk in chunks
        if chunk.path_in_schema in texts and _dictionary_size(chunk) <= _FEW_VALUES
    ]


def _dictionary_size(chunk: pq.ColumnChunkMetaData) -> int:
    """Bytes of the compressed dictionary page; beyond any limit if there is none."""
    start = chunk.dictionary_page_offset if chunk.has_dictionary_page else None
    return 1 << 62 if start is None else chunk.data_page_offset - start


def _groups(tables: Iterable[pa.Table], limit: int, *, decoded: int) -> Iterator[pa.Table]:
    """Tables taken together until they have ``limit`` bytes, or ``decoded`` with every text written out."""
    waiting: list[pa.Table] = []
    size = whole = 0
    for table in tables:
        waiting.append(table)
        size += table.nbytes
        whole += _decoded_size(table)
        if size >= limit or whole >= decoded:
            yield pa.concat_tables(waiting)
            waiting, size, whole = [], 0, 0
    if waiting:
        yield pa.concat_tables(waiting)


def _decoded_size(table: pa.Table) -> int:
    """Bytes that readers need, who have no dictionaries: a text that repeats counts each time."""
    return sum(
        _texts_size(chunk) if pt.is_dictionary(column.type) else chunk.nbytes
        for column in table.columns
        for chunk in column.chunks
    )


def _texts_size(column: Any) -> int:
    texts = column.dictionary
    lengths = pc.binary_length(texts.cast(pa.string()) if pt.is_string_view(texts.type) else texts)
    return _OFFSET * len(column) + (pc.sum(lengths.cast(pa.int64()).take(column.indices)).as_py() or 0)


def _write(writer: BulkWriter, group: pa.Table) -> None:
    """One row group, unless the limits of the format want more."""
    for batch in group.to_batches():
        writer.write(batch)
    writer.flush()
