"""The two kinds of format.

A *row format* (`BaseEncoder`) turns any slice of records into bytes that can simply be appended, so a
part file can be rolled at any record and continued later, in another process, by appending more.
A *bulk format* (`BulkWriterFactory`) lays out many records together and ends with a footer, so its
files are closed at every epoch.

Both take Arrow record batches; nothing built in looks at rows one by one. Both read back what they
wrote, as a ``pyarrow.RecordBatchReader``: an iterator of batches with a ``schema``.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from formats import evolution
from formats.errors import FormatError

if TYPE_CHECKING:
    import pyarrow as pa

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


@dataclass(frozen=True, slots=True)
class Split:
    """A range of a file, ``[start, end)`` in bytes: the records that *begin* there."""

    start: int
    end: int


class BaseEncoder(ABC):
    """A row format: records become bytes that can be appended to one another.

    Built-in encoders derive from this, your own from ``formats.Encoder``, which makes the built-in ones, too.

    An encoder is pickled to the tasks, used by one thread there, and holds no state of a file:
    two calls with the same batch give the same bytes. What a part file has to carry from its first
    record to its last (Avro's sync marker) goes through ``carry_over``.
    """

    #: The format's own file extension, with its dot, as in ``".json"``; ``""`` for none.
    extension: str = ""
    #: Whether values become the text that Spark has for them; intervals then need all of their type.
    writes_text: bool = False

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

    def signature(self) -> str:
        """Names the format and every option that changes its bytes.

        A part that stays open is continued only by an encoder with an equal signature (and for an
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

    def open_reader(self, file: BinaryIO, *, schema: pa.Schema | None = None) -> pa.RecordBatchReader:
        """The records of one finished file, in their order, batch by batch.

        Memory is bounded: a batch holds some mebibytes at most, or one record. The reader is used by
        one thread, may be dropped at any point, and does not close ``file``, which stays with its owner.

        Args:
            file: the whole file, at any position, seekable.
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
        """Ranges of one finished file that can be read apart, in order: together each record once.

        About ``target`` bytes each; one range for a file that cannot be split.
        """
        del target
        return [Split(0, file.seek(0, io.SEEK_END))]

    def open_split(
        self, file: BinaryIO, split: Split, *, schema: pa.Schema | None = None
    ) -> pa.RecordBatchReader:
        """The records of one of ``splits``; see ``open_reader``."""
        del split
        file.seek(0)
        return self.open_reader(file, schema=schema)


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


class BulkWriterFactory(ABC):
    """A bulk format. Pickled to the tasks; makes one writer per part file."""

    #: The format's own file extension, with its dot, as in ``".parquet"``.
    extension: str = ""
    #: See ``Encoder.writes_text``.
    writes_text: bool = False

    @abstractmethod
    def create(self, output: BinaryOutput, schema: pa.Schema) -> BulkWriter:
        """A writer of records of ``schema`` into ``output``, which is empty.

        Must not write before the first ``flush`` or ``finish``: thousands of writers may wait for
        data at the same time, and an output takes a file descriptor with its first byte.
        """

    def signature(self) -> str:
        """Names the format and every option that changes its bytes."""
        return f"{type(self).__module__}.{type(self).__qualname__}"

    def check_schema(self, schema: pa.Schema) -> None:
        """Raise ``formats.errors.FormatError`` if records of ``schema`` cannot be written."""
        del schema

    def check_continues(self, old: pa.Schema, new: pa.Schema) -> None:
        """See ``Encoder.check_continues``."""
        evolution.check_continues(old, new)

    def open_reader(self, file: BinaryIO, *, schema: pa.Schema | None = None) -> pa.RecordBatchReader:
        """The records of one finished file, in their order, batch by batch.

        Memory is bounded: a batch holds some mebibytes at most, or one record. The reader is used by
        one thread, may be dropped at any point, and does not close ``file``, which stays with its owner.

        Args:
            file: the whole file, at any position, seekable.
            schema: what the batches shall have: columns by name, missing ones null, narrower types
                widened. ``None`` for the file's own.

        Raises:
            FormatError: here or from an iteration. Kind ``"schema"``, the file's records do not have
                the form of ``schema`` (the message names the column); ``"value"``, the bytes are no
                such file, are damaged, or claim more than they can hold; ``"option"``, the format
                cannot be read back.
        """
        del file, schema
        raise FormatError(f"{type(self).__name__} cannot read what it wrote", kind="option")

    def splits(self, file: BinaryIO, *, target: int) -> list[Split]:
        """Ranges of one finished file that can be read apart, in order: together each record once.

        About ``target`` bytes each; one range for a file that cannot be split.
        """
        del target
        return [Split(0, file.seek(0, io.SEEK_END))]

    def open_split(
        self, file: BinaryIO, split: Split, *, schema: pa.Schema | None = None
    ) -> pa.RecordBatchReader:
        """The records of one of ``splits``; see ``open_reader``."""
        del split
        file.seek(0)
        return self.open_reader(file, schema=schema)
