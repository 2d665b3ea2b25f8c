"""The two kinds of format.

A *row format* (`BaseEncoder`) turns any slice of records into bytes that can simply be appended, so a
part file can be rolled at any record and continued later, in another process, by appending more.
A *bulk format* (`BulkWriterFactory`) lays out many records together and ends with a footer, so its
files are closed at every epoch.

Both take Arrow record batches; nothing built in looks at rows one by one. Both are *readable formats*
(`ReadableFormat`): they read back what they wrote, as a ``pyarrow.RecordBatchReader``, an iterator of
batches with a ``schema``, a file as a whole or a split at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import pyarrow as pa

from formats import evolution, splitting
from formats.errors import FormatError
from formats.splitting import Split

__all__ = [
    "BaseEncoder",
    "BinaryOutput",
    "BulkWriter",
    "BulkWriterFactory",
    "Format",
    "ReadableFormat",
    "RowEncoder",
    "Split",
]

if TYPE_CHECKING:
    from formats.arrow import Text

    Buffer = bytes | bytearray | memoryview | pa.Buffer


class BinaryOutput(Protocol):
    """Where a bulk writer puts its bytes: the few methods of a binary file that writers need."""

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called. Writers never close it; its owner does."""
        ...

    def write(self, data: Buffer, /) -> int:
        """Append all of ``data``; never a part of it. Returns its length in bytes."""
        ...

    def tell(self) -> int:
        """Bytes written so far."""
        ...

    def flush(self) -> None:
        """Does nothing that a writer may rely on; durability is the owner's business."""
        ...


class ReadableFormat:
    """What a file is read back by: as a whole, or the splits of it apart.

    Pickled to the tasks. A reader is used by one thread, and may be dropped at any point; a file has one
    reader at a time. It is given at any position, seekable, and stays with its owner, who closes it.
    """

    def open_reader(self, file: BinaryIO, *, schema: pa.Schema | None = None) -> pa.RecordBatchReader:
        """The records of one finished file, in their order, batch by batch.

        Memory is bounded: a batch holds some mebibytes at most, or one record.

        Args:
            file: the whole file.
            schema: what the batches shall have: columns by name, missing ones null, narrower types
                widened. ``None`` for the file's own.

        Raises:
            FormatError: here or from an iteration. Kind ``"schema"``, the file's records do not have
                the form of ``schema`` (the message names the column); ``"value"``, the bytes are no
                such file, are damaged, or claim more than they can hold; ``"option"``, the format
                cannot be read back or its files do not say their schema and none is given.
        """
        del file, schema
        raise FormatError(f"{type(self).__name__} cannot read what it wrote", kind="option")

    def splits(self, file: BinaryIO, *, target: int) -> list[Split]:
        """Where to cut one finished file, so that its splits can be read apart. Called while planning.

        In order, next to one another, from the first byte to the last: ``open_split`` of one after the
        other gives what ``open_reader`` gives. There is at least one, and some may hold no record. By
        default the file is one split; who overrides this overrides ``open_split`` as well.

        Reads as little as the format allows, and says what: nothing, a footer, or (CSV) the file.

        Args:
            file: the whole file.
            target: bytes that a split shall have, about; 1 or more. Units larger than that stay whole.

        Raises:
            FormatError: kind ``"option"``, no such target; or of a kind that ``open_reader`` raises, if
                what was looked at is damaged.
        """
        return splitting.whole(file, target=target)

    def open_split(
        self, file: BinaryIO, split: Split, *, schema: pa.Schema | None = None
    ) -> pa.RecordBatchReader:
        """The records of one split, as ``open_reader`` has those of the file.

        Reads the split, what belongs to a record that begins in it, and what the file says of all of its
        records (a header, a footer). What is damaged in one split is found by its reader alone. A limit
        for a file (``ReadLimits.file``) is one for the records of the split.

        Args:
            file: the whole file, with the bytes that ``splits`` has seen.
            split: one of ``splits``, for any target, or a range of your own if the format says so.
            schema: see ``open_reader``.

        Raises:
            FormatError: as ``open_reader``; and kind ``"value"``, the file ends before the split does.
        """
        splitting.check(file, split)
        file.seek(0)
        reader = self.open_reader(file, schema=schema)
        return reader if split.start == 0 else pa.RecordBatchReader.from_batches(reader.schema, [])


class Format(ReadableFormat):
    """What row formats and bulk formats have in common. Pickled to the tasks."""

    #: The format's own file extension, with its dot, as in ``".json"``; ``""`` for none.
    extension: str = ""
    #: Whether values become the text that Spark has for them; intervals then need all of their type.
    writes_text: bool = False

    def signature(self) -> str:
        """Names the format and every option that changes its bytes.

        A part that stays open is continued only by a format with an equal signature (and for an
        equal schema); on a difference it is closed as it is.
        """
        return f"{type(self).__module__}.{type(self).__qualname__}"

    def check_schema(self, schema: pa.Schema) -> None:
        """Raise ``formats.errors.FormatError`` if records of ``schema`` cannot be written.

        Called on the driver before anything is written, and again by each task.
        """
        del schema

    def check_continues(self, old: pa.Schema, new: pa.Schema) -> None:
        """Raise ``FormatError`` if files of ``old`` and ``new`` cannot be read as ``new`` side by side.

        Called before anything of ``new`` is written; see ``formats.evolution``.
        """
        evolution.check_continues(old, new)


class BaseEncoder(Format, ABC):
    """A row format: records become bytes that can be appended to one another.

    Built-in encoders derive from this, your own from ``formats.Encoder``, which makes the built-in ones, too.

    An encoder is pickled to the tasks, used by one thread there, and holds no state of a file:
    two calls with the same batch give the same bytes. What a part file has to carry from its first
    record to its last (Avro's sync marker) goes through ``carry_over``.
    """

    @abstractmethod
    def encode(self, batch: pa.RecordBatch) -> Buffer:
        """The bytes of the records of ``batch`` (at least one), each with its terminator.

        Called once or more often for the same records when the end of a part is searched, so it
        must be free of side effects, and ``encode(a) + encode(b)`` must hold the records of
        ``encode(a + b)``: the same bytes, unless the format frames what it gets at a time.
        """

    def header(self, schema: pa.Schema) -> bytes:
        """Bytes that begin every part file. Called once per part, before its first record."""
        del schema
        return b""

    def start_part(self) -> BaseEncoder:
        """The encoder of one new part file. Called once per part; by default the encoder itself."""
        return self

    def carry_over(self) -> bytes:
        """What ``resume_part`` needs to go on with this part in another process."""
        return b""

    def resume_part(self, carry_over: bytes) -> BaseEncoder:
        """The encoder of a part that was started elsewhere. ``header`` is not called again."""
        del carry_over
        return self

    def sql_expression(self, schema: pa.Schema) -> str | None:
        """A Spark SQL expression that renders one record of ``schema`` as text.

        ``encode_rendered`` of its values and ``encode`` of the records are the same bytes. ``None``
        where SQL has no such expression, or it would not be faster. Called on the driver with a
        schema that ``check_schema`` has accepted.
        """
        del schema
        return None

    def encode_rendered(self, records: Text) -> Buffer:
        """The bytes of records, never null, that ``sql_expression`` has rendered."""
        raise NotImplementedError


class RowEncoder(ABC):
    """A user's own row format, one record at a time. The slow path: every record becomes a dict."""

    #: The format's own file extension, with its dot; ``""`` for none.
    extension: str = ""

    @abstractmethod
    def encode(self, row: Mapping[str, Any]) -> bytes:
        """The bytes of one record with its terminator; the same bytes for the same record."""

    def signature(self) -> str:
        """Names the format and its options; see ``Encoder.signature``."""
        return f"{type(self).__module__}.{type(self).__qualname__}"


class BulkWriter(ABC):
    """Writes one file of a bulk format. Made by a factory, used by one thread, then dropped."""

    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> None:
        """Accept records. They may stay in memory until ``flush`` or ``finish``.

        The writer may keep a reference to ``batch`` (no copy needed); nobody changes it.
        """

    @property
    @abstractmethod
    def buffered_bytes(self) -> int:
        """Memory held for records that were accepted and are not yet in the output."""

    @abstractmethod
    def flush(self) -> None:
        """Put every accepted record into the output (end a row group or stripe).

        A format may keep back less than a page of each column, which it does not count as buffered any
        more and writes with what follows. Called often while the size of a part nears its limit; does
        nothing when nothing waits.
        """

    @abstractmethod
    def finish(self) -> None:
        """Flush, write the footer, release memory. Called once; the output stays open."""


class BulkWriterFactory(Format, ABC):
    """A bulk format. Pickled to the tasks; makes one writer per part file."""

    @abstractmethod
    def create(self, output: BinaryOutput, schema: pa.Schema) -> BulkWriter:
        """A writer of records of ``schema`` into ``output``, which is empty.

        Must not write before the first ``flush`` or ``finish``: thousands of writers may wait for
        data at the same time, and an output takes a file descriptor with its first byte.
        """
