"""ORC through pyarrow: one stripe from many slices, in memory no longer than it waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, cast

import pyarrow as pa
import pyarrow.types as pt
from pyarrow import orc

from formats import columns, spark_only_types, splitting
from formats.api import BulkWriter, BulkWriterFactory
from formats.arguments import check_names, check_number, check_pairs, instance_of
from formats.buffered_bulk_writer import BufferedBulkWriter, Limits
from formats.compressed.codec_names import codec_name
from formats.errors import FormatError
from formats.guarded_output import ArrowOutput
from formats.orc import reader as orc_reader
from formats.orc import tail as orc_tail
from formats.orc import times as orc_times
from formats.sizes import parse_size
from formats.splitting import Split

if TYPE_CHECKING:
    from formats.api import BinaryOutput

OrcCompression = Literal["zstd", "zlib", "snappy", "lz4", "none"]

# ORC's writer ends a stripe when what it has encoded has reached this size, and looks after each go. So
# every flush ends one, unless compression still waits for more: it takes 64 KiB of a stream at a time.
_STRIPE_AT_ONCE: Final = 1
_LEAST_GO: Final = 65_536  # records; it makes room for as many whenever it is given some
_MOST_STRIDE: Final = 2**31 - 1  # records; ORC's readers in Java have an int for it


@dataclass(frozen=True, slots=True, kw_only=True)
class OrcIndexes:
    """What helps readers to skip rows.

    Attributes:
        row_stride: records between two entries of the row index, 1,000 or more.
        bloom_filter_columns: names of columns at the top of the schema that get a Bloom filter.
        bloom_filter_fpp: chance of a false positive, between 0 and 1.

    Raises:
        FormatError: kind ``"option"``; a number out of its range, or no names.
    """

    row_stride: int = 10_000
    bloom_filter_columns: Sequence[str] = ()
    bloom_filter_fpp: float = 0.05

    def __post_init__(self) -> None:
        """Check the numbers and names."""
        check_number(
            self.row_stride,
            lambda stride: isinstance(stride, int) and 1_000 <= stride <= _MOST_STRIDE,
            name="row_stride",
            wanted="a whole number, at least 1000 and of 32 bits",
        )
        check_names(self.bloom_filter_columns, name="bloom_filter_columns")
        check_number(
            self.bloom_filter_fpp,
            lambda chance: 0 < chance < 1,
            name="bloom_filter_fpp",
            wanted="a number between 0 and 1",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OrcBulkWriterFactory(BulkWriterFactory):
    """ORC files that Spark, Hive, Trino and pyarrow read alike.

    A timestamp with a zone is an instant in ORC, one without is a local time. Times before 1970 are
    written if they are whole seconds, and refused if not: see ``formats.orc.times``.

    Attributes:
        compression: of the streams; Spark's default is ``"zstd"``, too.
        stripe_size: a stripe ends when its records take this much memory in Arrow's form; bytes, or
            text such as ``"64MiB"``.
        dictionary_threshold: strings get a dictionary if the share of distinct ones is below this;
            0 for never.
        indexes: row index and Bloom filters.
        metadata: key-value pairs for the footer.

    Raises:
        FormatError: kind ``"option"``; an unknown codec, a size that is none, a share out of its range, no
            ``OrcIndexes``.
    """

    compression: OrcCompression = "zstd"
    stripe_size: int | str = "64MiB"
    dictionary_threshold: float = 0.8
    indexes: OrcIndexes = field(default_factory=OrcIndexes)
    metadata: Mapping[str, str] | None = None

    extension = ".orc"

    def __post_init__(self) -> None:
        """Check the options and turn sizes into bytes."""
        object.__setattr__(self, "stripe_size", parse_size(self.stripe_size, name="stripe_size"))
        object.__setattr__(self, "compression", codec_name(self.compression, OrcCompression, what="ORC"))
        check_number(
            self.dictionary_threshold,
            lambda share: 0 <= share <= 1,
            name="dictionary_threshold",
            wanted="a number from 0 to 1",
        )
        instance_of(self.indexes, OrcIndexes, name="indexes")
        check_pairs(self.metadata, name="metadata")

    def create(self, output: BinaryOutput, schema: pa.Schema) -> BulkWriter:
        """See ``BulkWriterFactory.create``."""
        return OrcBulkWriter(output, schema, self)

    def signature(self) -> str:
        """See ``BulkWriterFactory.signature``."""
        pairs = sorted((self.metadata or {}).items())
        return (
            f"orc compression={self.compression} stripe={self.stripe_size}"
            f" dictionary={self.dictionary_threshold} {self.indexes} metadata={pairs!r}"
        )

    def open_reader(self, file: BinaryIO, *, schema: pa.Schema | None = None) -> pa.RecordBatchReader:
        """See ``BulkWriterFactory.open_reader``; any ORC file. A stripe is in memory at a time.

        Arrow has nanoseconds for ORC's timestamps: one before 1677 or after 2262 is an error.
        """
        return orc_reader.open_reader(file, schema=schema)

    def splits(self, file: BinaryIO, *, target: int) -> list[Split]:
        """See ``BulkWriterFactory.splits``: between stripes; reads the footer."""
        return orc_reader.splits(file, target=target)

    def open_split(
        self, file: BinaryIO, split: Split, *, schema: pa.Schema | None = None
    ) -> pa.RecordBatchReader:
        """See ``BulkWriterFactory.open_split``; any ranges of bytes. Reads the footer and stripes."""
        splitting.check(file, split)
        return orc_reader.open_reader(file, schema=schema, split=split)

    def check_schema(self, schema: pa.Schema) -> None:
        """See ``BulkWriterFactory.check_schema``."""
        if not len(schema):
            raise FormatError("ORC needs at least one column")
        spark_only_types.refuse(schema)
        for path, column in columns.walk(schema):
            if not _is_writable(column.type):
                raise FormatError(
                    f"column {path!r} of type {column.type} cannot be written to ORC: cast or drop it"
                )
        missing = [name for name in self.indexes.bloom_filter_columns if name not in schema.names]
        if missing:
            raise FormatError(f"column {missing[0]!r} shall have a Bloom filter and is not there")

    def open(self, stream: pa.NativeFile, schema: pa.Schema, *, rows: int) -> orc.ORCWriter:
        """The writer of pyarrow, which takes up to ``rows`` records, or some more, into one stripe."""
        codec: Any = "uncompressed" if self.compression == "none" else self.compression
        filters = [schema.get_field_index(name) for name in self.indexes.bloom_filter_columns]
        return orc.ORCWriter(
            stream,
            batch_size=max(rows, _LEAST_GO),
            stripe_size=_STRIPE_AT_ONCE,
            compression=codec,
            row_index_stride=self.indexes.row_stride,
            dictionary_key_size_threshold=self.dictionary_threshold,
            bloom_filter_columns=_column_ids(schema, filters) or None,
            bloom_filter_fpp=self.indexes.bloom_filter_fpp,
        )


class OrcBulkWriter(BufferedBulkWriter):
    """Collects slices and writes them as one stripe when a limit of the factory is reached.

    Args:
        output: takes the file; not touched before the first stripe.
        schema: of every batch.
        factory: limits and properties.
    """

    def __init__(self, output: BinaryOutput, schema: pa.Schema, factory: OrcBulkWriterFactory) -> None:
        super().__init__(schema, Limits(size=cast("int", factory.stripe_size)))
        self._tail = orc_tail.TailOutput(output, factory.metadata or {})
        self._factory = factory
        self._file_schema = pa.schema([columns.nullable(field, _file_type) for field in schema])
        self._output = ArrowOutput(self._tail)
        self._writer: orc.ORCWriter | None = None

    def _put(self, table: pa.Table) -> None:
        orc_times.check_times(table)
        with self._output.asked() as stream:
            writer = self._open(stream, rows=table.num_rows)
            writer.write(_laid_out(columns.as_schema(table, self._file_schema)))
            stream.flush()

    def _end(self) -> None:
        with self._output.asked() as stream:
            writer = self._open(stream, rows=0)
            if not self._tail.tell():
                writer.write(self._file_schema.empty_table())  # learns the schema from it
            stream.flush()
            self._tail.begin()
            writer.close()
            stream.detach()
        self._tail.end()

    def _open(self, stream: pa.NativeFile, *, rows: int) -> orc.ORCWriter:
        if self._writer is None:
            self._writer = self._factory.open(stream, self._file_schema, rows=rows)
        return self._writer


def _file_type(kind: Any) -> Any:
    """The type of a column that ORC's writer takes for one of ``kind``; not nested."""
    kind = columns.without_dictionary(kind)
    if kind in _WIDER:
        return _WIDER[kind]
    if columns.is_text(kind):
        return pa.string()
    return pa.binary() if columns.is_binary(kind) else kind


_WIDER: Final = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
}


def _is_writable(kind: Any) -> bool:
    if columns.is_nested(kind):
        return bool(pt.is_map(kind) or columns.is_list(kind) or (pt.is_struct(kind) and kind.num_fields))
    kind = _file_type(kind)
    is_number = pt.is_signed_integer(kind) or pt.is_floating(kind) or pt.is_decimal128(kind)
    is_time = pt.is_date(kind) or pt.is_timestamp(kind)
    return bool(
        pt.is_boolean(kind) or is_number or is_time or columns.is_text(kind) or columns.is_binary(kind)
    )


def _laid_out(table: pa.Table) -> pa.Table:
    """The same records, laid out anew where a column is nested, as pyarrow's ORC writer has two defects.

    It forgets where a slice of a struct begins, and writes other records. And where members of a null
    struct are not null themselves, it takes what they hide for the values of the next records.
    """
    if not any(columns.is_nested(column.type) for column in table.schema):
        return table
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    whole = pa.ipc.open_stream(stream.getvalue()).read_all()
    arrays = [
        pa.chunked_array([_null_below(chunk) for chunk in column.chunks], column.type)
        for column in whole.columns
    ]
    return pa.Table.from_arrays(arrays, schema=table.schema)


def _null_below(column: Any) -> Any:
    """``column``, with the members of each null struct null as well."""
    kind: Any = column.type
    if pt.is_struct(kind):
        mask = column.is_null() if column.null_count else None
        members = column.flatten() if mask else [column.field(place) for place in range(kind.num_fields)]
        return pa.StructArray.from_arrays(list(map(_null_below, members)), fields=list(kind), mask=mask)
    if pt.is_map(kind):
        return columns.rewrapped(column, kind, column.keys, _null_below(column.items))
    if columns.is_list(kind):
        return columns.rewrapped(column, kind, _null_below(column.values))
    return column


def _column_ids(schema: pa.Schema, places: Sequence[int]) -> list[int]:
    """ORC's numbers of columns at the top: it counts those inside them, too, and the row as 0."""
    sizes = [sum(1 for _ in columns.walk(pa.schema([field]))) for field in schema]
    return [1 + sum(sizes[:place]) for place in places]
