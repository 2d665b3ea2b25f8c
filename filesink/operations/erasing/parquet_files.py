"""Parquet files in which a condition is looked for, and which are written anew without its rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pyarrow.types as pt

from filesink.buckets.partition_paths import partition_values
from filesink.errors import StateError, StorageError
from filesink.operations.erasing.condition import Condition
from filesink.storage.api import Output, Store
from formats.errors import FormatError
from formats.parquet.writer import ParquetWriterFactory
from formats.read_limits import own_file

SUFFIX: Final = ".parquet"
_PLAIN: Final = "none"


@dataclass(frozen=True, kw_only=True)
class ParquetFiles:
    """The Parquet files of one path, as a condition sees them.

    Attributes:
        store: where they are.
        condition: with the names of ``schema``.
        schema: all columns of the path, those of directories included.
        form: how files are written; ``None``: plain, with the codec that each file has.
    """

    store: Store
    condition: Condition
    schema: pa.Schema
    form: ParquetWriterFactory | None = None

    @cached_property
    def _named(self) -> Any:
        """The condition as an expression of Arrow."""
        return self.condition.on(self.schema)

    def matching(self, path: str, bucket: str) -> int:
        """How many rows of a file the condition names. Row groups that cannot have any are not read.

        Raises:
            StateError: ``UNREADABLE``; nobody knows what is in it.
            StorageError: the store does not give it, as without the permission to read it.
            FileNotFoundError: it is gone.
        """
        with _readable(path), self.store.open_input(path) as stream:
            is_plain = self.form is None or self.form.encryption is None
            if is_plain and self._have_statistics(pq.ParquetFile(stream).schema_arrow):
                return self._by_statistics(stream)
            stream.seek(0)
            reader = (self.form or ParquetWriterFactory()).open_reader(own_file(stream))
            return sum(self._whole(batch, bucket).filter(self._named).num_rows for batch in reader)

    def _have_statistics(self, own: pa.Schema) -> bool:
        """Whether a file has every column that is compared, and none of floats: NaN is in no statistics."""
        places = [own.get_field_index(name) for name in self.condition.columns]
        return all(place >= 0 and not pt.is_floating(own.field(place).type) for place in places)

    def _by_statistics(self, stream: BinaryIO) -> int:
        stream.seek(0)
        source: Any = stream
        file: Any = pa.PythonFile(source, mode="r")
        fragment: Any = ds.ParquetFileFormat().make_fragment(file)
        some = fragment.subset(filter=self._named)
        return int(some.count_rows(filter=self._named)) if some.row_groups else 0

    def rewrite(self, path: str, bucket: str, output: Output) -> int:
        """Write the rows of a file that the condition does not name into ``output``; return how many.

        In their order, with the columns and the key-value pairs of its footer.

        Raises:
            StateError, StorageError: as ``matching``.
        """
        with _readable(path), self.store.open_input(path) as stream:
            form = self.form or ParquetWriterFactory(compression=_codec(stream))
            stream.seek(0)
            reader = form.open_reader(own_file(stream))
            writer = form.create(output, reader.schema)
            rows = 0
            for batch in reader:
                for kept in self._kept(batch, bucket):
                    writer.write(kept)
                    rows += kept.num_rows
            writer.finish()
            return rows

    def _kept(self, batch: pa.RecordBatch, bucket: str) -> Iterable[pa.RecordBatch]:
        """The rows of which the condition is not true: null is not true."""
        is_kept = ~self._named | self._named.is_null()
        kept = self._whole(batch, bucket).filter(is_kept).select(batch.schema.names)
        return [one for one in kept.to_batches() if one.num_rows]

    def _whole(self, batch: pa.RecordBatch, bucket: str) -> pa.Table:
        """The rows of a file with every column that the condition compares."""
        table = pa.Table.from_batches([batch])
        for name in self.condition.columns:
            if name not in table.column_names:
                alike = _alike(name, batch.schema.names)
                column = table[alike] if alike else self._constant(name, bucket, len(table))
                table = table.append_column(name, column)
        return table

    def _constant(self, name: str, bucket: str, rows: int) -> pa.ChunkedArray[Any]:
        """What a directory says of all its rows; null of a column that a file lacks."""
        kind = self.schema.field(name).type
        values = dict(partition_values(bucket))
        text = values.get(name if name in values else _alike(name, values))
        value = pa.scalar(None, kind) if text is None else pa.scalar(text, pa.string()).cast(kind)
        return pa.chunked_array([pa.repeat(value, rows)], kind)


def _alike(name: str, names: Iterable[str]) -> str:
    """The one that differs in case alone: another sink of the path may write so; it is one column."""
    found = [one for one in names if one.lower() == name.lower()]
    return found[0] if len(found) == 1 else ""


@contextmanager
def _readable(path: str) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, StorageError):  # it says by itself why: no permission, no answer
        raise
    except (pa.ArrowException, FormatError, OSError):
        pass  # its text may have a value
    else:
        return
    raise StateError(
        f"'{path}' cannot be read as a Parquet file: nobody knows whether rows are left in it. Nothing was "
        "changed by this; filesink fsck --deep tells more. An encrypted file needs its keys: pass form=",
        code="UNREADABLE",
    )


def _codec(stream: BinaryIO) -> Any:
    metadata = pq.ParquetFile(stream).metadata
    if not metadata.num_row_groups or not metadata.num_columns:
        return "snappy"
    codec = str(metadata.row_group(0).column(0).compression).lower()
    return _PLAIN if codec == "uncompressed" else codec
