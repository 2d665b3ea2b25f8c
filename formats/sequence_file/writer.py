"""Hadoop's SequenceFile, version 6: pairs of a key and a value, each a Writable.

    "SEQ" 6, class of key, class of value, compressed?, in blocks?, [codec], metadata, sync marker
    then records  length, length of key, key, value        (with "record", the value is compressed)
    or blocks     escape, sync, count, lengths of keys, keys, lengths of values, values, each compressed

Between records stands now and then an escape and the sync marker, from which a reader that begins in
the middle goes on. Numbers are big-endian, lengths inside blocks are VInts
(``formats.sequence_file.writables``).
Source: Hadoop 3, ``SequenceFile``.
"""

from __future__ import annotations

import bz2
import gzip
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, Final, Literal, cast, get_args

import numpy as np
import pyarrow as pa

from formats import columns, splitting
from formats.api import BulkWriter, BulkWriterFactory
from formats.arguments import instance_of, one_of
from formats.arrow import Column
from formats.buffered_bulk_writer import BufferedBulkWriter, Limits
from formats.compressed.codec_names import codec_name
from formats.errors import FormatError
from formats.sequence_file import reader as sequence_reader
from formats.sequence_file import writables
from formats.sequence_file.header import ESCAPE
from formats.sizes import parse_size
from formats.splitting import Split
from formats.sync_marker import new_marker
from formats.text import ragged

if TYPE_CHECKING:
    from formats.api import BinaryOutput

SequenceCompression = Literal["none", "record", "block"]
SequenceCodec = Literal["zlib", "gzip", "bzip2"]

_CODECS: Final[dict[str, tuple[str, Callable[[bytes], bytes]]]] = {
    "zlib": ("DefaultCodec", zlib.compress),
    "gzip": ("GzipCodec", lambda data: gzip.compress(data, mtime=0)),
    "bzip2": ("BZip2Codec", bz2.compress),
}
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
        FormatError: kind ``"option"``; an unknown compression or codec, no size, or no name of a column.
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
        for column in (self.key, self.value):
            if column is not None:
                instance_of(column, str, name="key and value")
        object.__setattr__(self, "compression", str(self.compression).lower())  # Hadoop writes BLOCK
        one_of(self.compression, get_args(SequenceCompression), name="compression")
        object.__setattr__(self, "codec", codec_name(self.codec, SequenceCodec, what="SequenceFile"))
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
                writables.class_of(schema.field(name))

    def open_reader(self, file: BinaryIO, *, schema: pa.Schema | None = None) -> pa.RecordBatchReader:
        """See ``BulkWriterFactory.open_reader``; any SequenceFile of these Writables, whoever wrote it.

        Files do not name their columns: they are called as here, else ``key`` and ``value``.
        """
        return sequence_reader.open_reader(file, names=self._names(), schema=schema)

    def splits(self, file: BinaryIO, *, target: int) -> list[Split]:
        """See ``BulkWriterFactory.splits``: anywhere, without a look at the file.

        Records begin behind sync markers only, which stand before every block, and without blocks once in
        100 KiB; a split that has none has no records.
        """
        return splitting.of_bytes(file, target=target)

    def open_split(
        self, file: BinaryIO, split: Split, *, schema: pa.Schema | None = None
    ) -> pa.RecordBatchReader:
        """See ``BulkWriterFactory.open_split``; any ranges of bytes.

        Reads the header, looks for the sync marker, and goes on to the first one behind the split.
        """
        splitting.check(file, split)
        return sequence_reader.open_reader(file, names=self._names(), schema=schema, split=split)

    def _names(self) -> tuple[str, str]:
        """What the columns of a file are called, which does not name them."""
        return self.key or "key", self.value or "value"

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
            writables.NULL if key is None else writables.class_of(schema.field(key)),
            writables.class_of(schema.field(value)),
        ]
        flags = bytes([self.compression != "none", self.compression == "block"])
        codec = (
            b""
            if self.compression == "none"
            else writables.text(f"{writables.PACKAGE}compress.{_CODECS[self.codec][0]}")
        )
        return b"".join(
            [
                b"SEQ\x06",
                *(writables.text(writables.PACKAGE + name) for name in classes),
                flags,
                codec,
                bytes(4),
                sync,
            ]
        )

    def compress(self, data: bytes) -> bytes:
        """``data`` by the codec."""
        return _CODECS[self.codec][1](data)


class SequenceFileWriter(BufferedBulkWriter):
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
        self._since_sync = 0

    def _put(self, table: pa.Table) -> None:
        for batch in table.combine_chunks().to_batches(max_chunksize=sequence_reader.MOST_RECORDS):
            key, value = self._names
            keys = _empty(batch.num_rows) if key is None else _bytes_of(batch, key)
            values = _bytes_of(batch, value)
            if self._factory.compression == "block":
                for begin, rows in _blocks(columns.offsets(keys) + columns.offsets(values)):
                    self._output.write(self._block(keys.slice(begin, rows), values.slice(begin, rows)))
            else:
                self._write_records(keys, values)

    def _begin(self) -> None:
        self._output.write(self._factory.header(self._schema, self._sync))

    def _block(self, keys: Column, values: Column) -> bytes:
        pieces = [
            piece for column in (keys, values) for piece in (_lengths(column), bytes(columns.data(column)))
        ]
        packed = [self._factory.compress(piece) for piece in pieces]
        framed = [part for piece in packed for part in (writables.vint(len(piece)), piece)]
        return b"".join([ESCAPE, self._sync, writables.vint(len(keys)), *framed])

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
                yield ESCAPE + self._sync
                self._since_sync = 0


def _blocks(offsets: columns.Offsets) -> Iterator[tuple[int, int]]:
    """First and number of the records of each block, so large that readers need not take it for a bomb."""
    begin, rows = 0, len(offsets) - 1
    while begin < rows:
        limit = offsets[begin] + sequence_reader.MOST_OF_SEVERAL
        end = max(begin + 1, int(np.searchsorted(offsets, limit, side="right")) - 1)
        yield begin, end - begin
        begin = end


def _lengths(column: Column) -> bytes:
    return writables.vints(np.diff(columns.offsets(column)))


def _bytes_of(batch: pa.RecordBatch, name: str) -> Column:
    column = columns.plain(batch.column(name))
    if column.null_count:
        raise FormatError(
            f"column {name!r} is null, which a SequenceFile cannot hold: filter it", kind="value"
        )
    return writables.written(column)


def _empty(rows: int) -> Column:
    return ragged.binary(np.zeros(rows + 1, np.int64), pa.py_buffer(b""))
