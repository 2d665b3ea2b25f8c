"""Parquet files back as record batches, a few pages at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from formats import columns, reading, splitting
from formats.parquet.encryption import ParquetEncryption
from formats.read_limits import guard_of
from formats.splitting import Split, Units

_READ_AHEAD: Final = 1 << 20  # bytes of one column chunk at a time, so that none is in memory as a whole
_FIRST_ROWS: Final = 256  # in the first batch of a file, from which it is seen what records take
#: What a footer may claim. It is read before anything else is known of the file.
FOOTER_LIMITS: Final[Mapping[str, Any]] = {
    "thrift_string_size_limit": 64 << 20,
    "thrift_container_size_limit": 4_000_000,
}


def open_reader(
    file: BinaryIO,
    *,
    schema: pa.Schema | None,
    encryption: ParquetEncryption | None = None,
    split: Split | None = None,
) -> pa.RecordBatchReader:
    """See ``BulkWriterFactory.open_reader`` and ``open_split``.

    Args:
        file: a Parquet file, whoever wrote it.
        schema: what the batches shall have.
        encryption: opens the keys, if the file is encrypted.
        split: whose row groups are wanted; ``None`` for all.
    """
    size = splitting.size_of(file)
    source = reading.Source(file)
    with source.as_damage("no readable Parquet file"):
        found, keys = _opened(source, encryption)
        instants = _with_instants(found)
        groups = range(found.num_row_groups) if split is None else _row_groups(found, size).of(split)
    return reading.reader(
        instants,
        lambda: source.checked(_batches(found, instants, groups, keys)),
        wanted=schema,
        guard=guard_of(file),
    )


def splits(file: BinaryIO, *, target: int, encryption: ParquetEncryption | None = None) -> list[Split]:
    """See ``BulkWriterFactory.splits``."""
    size = splitting.size_of(file)
    source = reading.Source(file)
    with source.as_damage("no readable Parquet file"):
        found, _ = _opened(source, encryption)
        return _row_groups(found, size).splits(target)


def _opened(source: Any, encryption: ParquetEncryption | None) -> tuple[pq.ParquetFile, object]:
    """The file, and keys that must live as long."""
    properties, keys = (None, None) if encryption is None else encryption.for_reading()
    found = pq.ParquetFile(
        source,
        buffer_size=_READ_AHEAD,
        pre_buffer=False,
        coerce_int96_timestamp_unit="us",
        page_checksum_verification=True,
        decryption_properties=properties,
        **FOOTER_LIMITS,
    )
    return found, keys


def _row_groups(file: pq.ParquetFile, size: int) -> Units:
    """A row group begins where its first column does."""
    return Units.at(
        [_offset(file.metadata.row_group(number)) for number in range(file.num_row_groups)], size=size
    )


def _offset(group: pq.RowGroupMetaData) -> int:
    if not group.num_columns:
        return 0
    column = group.column(0)
    return int(column.dictionary_page_offset or column.data_page_offset)


def _with_instants(file: pq.ParquetFile) -> pa.Schema:
    """The schema of the file; what it holds as INT96 are instants, as Spark and Impala write them."""
    kinds = iter([file.schema.column(index).physical_type for index in range(len(file.schema))])

    def leaf(kind: Any) -> Any:
        return pa.timestamp("us", "UTC") if next(kinds) == "INT96" else kind

    schema = file.schema_arrow
    if all(file.schema.column(index).physical_type != "INT96" for index in range(len(file.schema))):
        return schema
    metadata: Any = schema.metadata
    return pa.schema([columns.nullable(field, leaf) for field in schema], metadata)


def _batches(
    file: pq.ParquetFile, schema: pa.Schema, groups: range, keys: object
) -> Iterator[pa.RecordBatch]:
    _ = keys  # they must live as long as the file
    decoder: Any = file.reader
    learnt = _FIRST_ROWS
    for number in groups:
        group = file.metadata.row_group(number)
        most = reading.rows_per_batch(group.total_byte_size, group.num_rows)
        for batch in file.iter_batches(batch_size=min(most, learnt), row_groups=[number]):
            # What repeats takes no bytes in a page, so the last batch says best what records take in memory.
            learnt = reading.rows_per_batch(columns.size(batch), batch.num_rows)
            decoder.set_batch_size(min(most, learnt))  # of the next batch
            yield batch if batch.schema.equals(schema) else _as_schema(batch, schema)


def _as_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    arrays = [columns.cast(column, kind) for column, kind in zip(batch.columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
