"""Parquet files back as record batches, a few pages at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from formats import reading
from formats.errors import FormatError

_READ_AHEAD: Final = 1 << 20  # bytes of one column chunk at a time, so that none is in memory as a whole
#: What a footer may claim. It is read before anything else is known of the file.
FOOTER_LIMITS: Final[Mapping[str, Any]] = {
    "thrift_string_size_limit": 64 << 20,
    "thrift_container_size_limit": 4_000_000,
}


def open_reader(file: BinaryIO, *, schema: pa.Schema | None, decryption: Any = None) -> pa.RecordBatchReader:
    """See ``BulkWriterFactory.open_reader``.

    Args:
        file: a Parquet file, whoever wrote it.
        schema: what the batches shall have.
        decryption: pyarrow's ``FileDecryptionProperties``, if the file is encrypted.
    """
    try:
        found = pq.ParquetFile(
            file,
            buffer_size=_READ_AHEAD,
            pre_buffer=False,
            coerce_int96_timestamp_unit="us",
            decryption_properties=decryption,
            **FOOTER_LIMITS,
        )
    except (pa.ArrowException, OSError) as error:
        raise FormatError(f"no readable Parquet file ({type(error).__name__})", kind="value") from error
    return reading.reader(found.schema_arrow, lambda: _batches(found), wanted=schema)


def _batches(file: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    for number in range(file.num_row_groups):
        group = file.metadata.row_group(number)
        rows = reading.rows_per_batch(group.total_byte_size, group.num_rows)
        yield from file.iter_batches(batch_size=rows, row_groups=[number])
