"""Hadoop's SequenceFile, version 6: pairs of a key and a value, each a Writable.

    "SEQ" 6, class of key, class of value, compressed?, in blocks?, [codec], metadata, sync marker
    then records  length, length of key, key, value        (with "record", the value is compressed)
    or blocks     escape, sync, count, lengths of keys, keys, lengths of values, values, each compressed

Between records stands now and then an escape and the sync marker, from which a reader that begins in
the middle goes on. Numbers are big-endian, lengths inside blocks and of text are Hadoop's VInts.
Source: Hadoop 3, ``SequenceFile`` and ``WritableUtils``.
"""

from __future__ import annotations

import bz2
import gzip
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, cast, get_args

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from formats import columns, ragged
from formats.api import BulkWriter, BulkWriterFactory
from formats.arrow import Column, Field
from formats.avro import new_marker
from formats.collecting import CollectingWriter, Limits
from formats.errors import FormatError
from formats.sizes import parse_size

if TYPE_CHECKING:
    from formats.api import BinaryOutput

SequenceCompression = Literal["none", "record", "block"]
SequenceCodec = Literal["zlib", "gzip", "bzip2"]

_PACKAGE: Final = "org.apache.hadoop.io."
_CODECS: Final[dict[str, tuple[str, Callable[[bytes], bytes]]]] = {
    "zlib": ("DefaultCodec", zlib.compress),
    "gzip": ("GzipCodec", lambda data: gzip.compress(data, mtime=0)),
    "bzip2": ("BZip2Codec", bz2.compress),
}
_ESCAPE: Final = b"\xff\xff\xff\xff"
_SYNC_INTERVAL: Final = 100 << 10  # bytes, as Hadoop


@dataclass(frozen=True, kw_only=True)
class SequenceFileWriterFactory(BulkWriterFactory):
    """SequenceFiles of two columns, Flink's ``SequenceFileWriterFactory``.

    Strings become ``Text``, bytes ``BytesWritable``, 64-bit and 32-bit integers ``LongWritable`` and
    ``IntWritable``. There is no null: a record that has one fails.

    Attributes:
        key: a column; ``None`` writes ``NullWritable`` keys, and there is one column only.
        value: a column; ``None`` for the only one that is not ``key``.
        compression: ``"record"`` compresses each value by itself, which is slow and saves little;
            ``"block"`` keys and values of many records.
        codec: Hadoop's DefaultCodec (``"zlib"``), GzipCodec or BZip2Codec.
        block_size: a block is written when this much waits, in Arrow's form.
        make_sync: makes the sync marker of a file, 16 bytes; random by default.

    Raises:
        FormatError: kind ``"option"``; an unknown compression or codec, or no size.
    """

    key: str | None = None
    value: str | None = None
    compression: SequenceCompression = "block"
    codec: SequenceCodec = "zlib"
    block_size: int | str = "1MiB"
    make_sync: Callable[[], bytes] = field(default=new_marker, repr=False)

    extension = ".seq"

    def __post_init__(self) -> None:
        """Check the options."""
        if self.compression not in get_args(SequenceCompression):
            raise FormatError("compression must be 'none', 'record' or 'block'", kind="option")
        if self.codec not in get_args(SequenceCodec):
            raise FormatError(
                f"SequenceFile codec {str(self.codec)[:40]!r} is unknown: use zlib, gzip or bzip2",
                kind="option",
            )
        object.__setattr__(self, "block_size", parse_size(self.block_size, name="block_size"))

    def create(self, output: BinaryOutput, schema: pa.Schema) -> BulkWriter:
        """See ``BulkWriterFactory.create``."""
        return SequenceFileWriter(output, schema, self)

    def signature(self) -> str:
        """See ``BulkWriterFactory.signature``."""
        return f"sequence file {self.key!r} {self.value!r} {self.compression} {self.codec}"

    def check_schema(self, schema: pa.Schema) -> None:
        """See ``BulkWriterFactory.check_schema``."""
        for name in self.names(schema):
            if name is not None:
                _writable(schema.field(name))

    def names(self, schema: pa.Schema) -> tuple[str | None, str]:
        """The columns of keys and values.

        Raises:
            FormatError: kind ``"schema"``; there are others, or fewer.
        """
        values = [name for name in schema.names if name != self.key]
        found = len(values) == 1 and len(schema) == (1 if self.key is None else 2)
        if not found or self.value not in {None, values[0]}:
            wanted = ", ".join(repr(name) for name in (self.key, self.value) if name is not None)
            raise FormatError(
                f"a SequenceFile holds a key and a value, the columns are {', '.join(schema.names)[:200]}: "
                f"select {wanted or 'one column, or name the one of the key'}"
            )
        return self.key, values[0]

    def header(self, schema: pa.Schema, sync: bytes) -> bytes:
        """What a file of ``schema`` begins with."""
        key, value = self.names(schema)
        classes = [
            "NullWritable" if key is None else _writable(schema.field(key)),
            _writable(schema.field(value)),
        ]
        flags = bytes([self.compression != "none", self.compression == "block"])
        codec = b"" if self.compression == "none" else _text(f"{_PACKAGE}compress.{_CODECS[self.codec][0]}")
        return b"".join(
            [b"SEQ\x06", *(_text(_PACKAGE + name) for name in classes), flags, codec, bytes(4), sync]
        )

    def compress(self, data: bytes) -> bytes:
        """``data`` by the codec."""
        return _CODECS[self.codec][1](data)


class SequenceFileWriter(CollectingWriter):
    """Writes what has been collected as records or as one block.

    Args:
        output: the file.
        schema: of the records.
        factory: its options.
    """

    def __init__(self, output: BinaryOutput, schema: pa.Schema, factory: SequenceFileWriterFactory) -> None:
        super().__init__(schema, Limits(size=cast("int", factory.block_size)))
        self._output = output
        self._factory = factory
        self._names = factory.names(schema)
        self._sync = factory.make_sync()
        self._begun = False
        self._since_sync = 0

    def _put(self, table: pa.Table) -> None:
        self._begin()
        for batch in table.combine_chunks().to_batches():
            key, value = self._names
            keys = _empty(batch.num_rows) if key is None else _bytes_of(batch, key)
            values = _bytes_of(batch, value)
            if self._factory.compression == "block":
                self._output.write(self._block(keys, values))
            else:
                self._write_records(keys, values)

    def _end(self) -> None:
        self._begin()

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._output.write(self._factory.header(self._schema, self._sync))

    def _block(self, keys: Column, values: Column) -> bytes:
        pieces = [_lengths(keys), bytes(columns.data(keys)), _lengths(values), bytes(columns.data(values))]
        packed = [self._factory.compress(piece) for piece in pieces]
        framed = [part for piece in packed for part in (_vint(len(piece)), piece)]
        return b"".join([_ESCAPE, self._sync, _vint(len(keys)), *framed])

    def _write_records(self, keys: Column, values: Column) -> None:
        if self._factory.compression == "record":  # each by itself, so one by one it is
            values = pa.array([self._factory.compress(value) for value in values.to_pylist()], pa.binary())
        key_sizes = np.diff(columns.offsets(keys))
        sizes = key_sizes + np.diff(columns.offsets(values))
        heads = np.stack([sizes, key_sizes], axis=1).astype(">i4").view(np.uint8)
        records = ragged.joined([ragged.Table(heads), keys, values], rows=len(keys))
        for piece in self._with_syncs(columns.offsets(records), memoryview(columns.data(records))):
            self._output.write(piece)

    def _with_syncs(self, starts: columns.Offsets, data: memoryview) -> Iterator[bytes | memoryview]:
        begin = int(starts[0])
        at = begin
        while at < begin + len(data):
            room = _SYNC_INTERVAL - self._since_sync
            end = int(starts[min(int(np.searchsorted(starts, at + room)), len(starts) - 1)])
            yield data[at - begin : end - begin]
            self._since_sync += end - at
            at = end
            if self._since_sync >= _SYNC_INTERVAL:
                yield _ESCAPE + self._sync
                self._since_sync = 0


def _writable(field: Field) -> str:
    """Hadoop's class for the values of a column."""
    kind = field.type.value_type if pt.is_dictionary(field.type) else field.type
    if columns.is_text(kind):
        return "Text"
    if columns.is_binary(kind):
        return "BytesWritable"
    if pt.is_int64(kind) or pt.is_int32(kind):
        return "LongWritable" if pt.is_int64(kind) else "IntWritable"
    raise FormatError(
        f"column {field.name!r} of type {field.type} has no Writable: make it text, bytes, long or int"
    )


def _bytes_of(batch: pa.RecordBatch, name: str) -> Column:
    """The values of a column, each as its Writable is written; a column of binary."""
    column = columns.plain(batch.column(name))
    if column.null_count:
        raise FormatError(
            f"column {name!r} is null, which a SequenceFile cannot hold: filter it", kind="value"
        )
    rows = len(column)
    if pt.is_integer(column.type):
        wide = ">i8" if pt.is_int64(column.type) else ">i4"
        cells = column.to_numpy().astype(wide).view(np.uint8).reshape(rows, -1)
        return ragged.joined([ragged.Table(cells)], rows=rows)
    sizes = np.diff(columns.offsets(column))
    is_text = pt.is_string(column.type)
    head = _vints(sizes) if is_text else ragged.Table(sizes.astype(">i4").view(np.uint8).reshape(rows, 4))
    return ragged.joined([head, column.cast(pa.binary())], rows=rows)


def _empty(rows: int) -> Column:
    return ragged.binary(np.zeros(rows + 1, np.int64), pa.py_buffer(b""))


def _lengths(column: Column) -> bytes:
    """The length of every value as VInts."""
    return bytes(columns.data(ragged.joined([_vints(np.diff(columns.offsets(column)))], rows=len(column))))


def _vints(sizes: columns.Offsets) -> ragged.Table:
    """Hadoop's VInts of sizes: up to 127 the byte itself, else -112 less the number of bytes, and those."""
    counts = np.ceil(np.log2(sizes + 1) / 8).astype(np.int64).clip(1, 4)
    small = sizes <= 127
    cells = np.zeros((len(sizes), 5), np.uint8)
    cells[:, 0] = np.where(small, sizes, 256 - 112 - counts)
    for place in range(4):
        shift = 8 * (counts - 1 - place)
        cells[:, place + 1] = np.where(shift >= 0, (sizes >> shift.clip(0)) & 0xFF, 0)
    return ragged.Table(cells, np.where(small, 1, counts + 1))


def _vint(number: int) -> bytes:
    return bytes(columns.data(ragged.joined([_vints(np.array([number], np.int64))], rows=1)))


def _text(value: str) -> bytes:
    return _vint(len(value.encode())) + value.encode()
