"""The two kinds of format.

A *row format* (`Encoder`) turns any slice of records into bytes that can simply be appended, so a
part file can be rolled at any record and continued later, in another process, by appending more.
A *bulk format* (`BulkWriterFactory`) lays out many records together and ends with a footer, so its
files are closed at every epoch.

Both take Arrow record batches; nothing built in looks at rows one by one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

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


class Encoder(ABC):
    """A row format: records become bytes that can be appended to one another.

    An encoder is pickled to the tasks, used by one thread there, and holds no state of a file:
    two calls with the same batch give the same bytes. What a part file has to carry from its first
    record to its last (Avro's sync marker) goes through ``carry_over``.
    """

    #: The format's own file extension, with its dot, as in ``".json"``; ``""`` for none.
    extension: str = ""

    @abstractmethod
    def encode(self, batch: pa.RecordBatch) -> Buffer:
        """The bytes of the records of ``batch`` (at least one), each with its terminator.

        Called once or more often for the same records when the end of a part is searched, so it
        must be free of side effects, and ``encode(a + b) == encode(a) + encode(b)``.
        """

    def header(self, schema: pa.Schema) -> bytes:
        """Bytes that begin every part file. Called once per part, before its first record."""
        del schema
        return b""

    def start_part(self) -> Encoder:
        """The encoder of one new part file. Called once per part; by default the encoder itself."""
        return self

    def carry_over(self) -> bytes:
        """What ``resume_part`` needs to go on with this part in another process."""
        return b""

    def resume_part(self, carry_over: bytes) -> Encoder:
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

    @staticmethod
    def simple_string_encoder(charset: str = "UTF-8") -> Encoder:
        """One line of text per record: the value of the only column, then a line feed.

        Flink's ``SimpleStringEncoder``. Null is an empty line, as in Spark's text writer.
        """
        from formats.text import TextEncoder

        return TextEncoder(charset=charset)

    @staticmethod
    def json_lines() -> Encoder:
        """One JSON object per line with the values that Spark's ``to_json`` would write."""
        from formats.json_lines import JsonLinesEncoder

        return JsonLinesEncoder()

    @staticmethod
    def csv(
        delimiter: str = ",",
        header: bool = False,  # noqa: FBT001, FBT002 - Spark's name and values
        *,
        quote: str = '"',
        escape: str = "\\",
        quote_mode: Literal["minimal", "all"] = "minimal",
        null_value: str = "",
    ) -> Encoder:
        """Comma-separated values as Spark writes them; see ``formats.csv`` for the rules.

        Args:
            delimiter: between fields; one or more characters.
            header: whether every part file begins with the names of the columns.
            quote: around fields that need it.
            escape: before a quote or escape character inside quotes; equal to ``quote`` for RFC 4180.
            quote_mode: ``"minimal"`` quotes where needed, ``"all"`` every field.
            null_value: what stands for null; an empty string is ``""`` and so differs from it.

        Raises:
            FormatError: kind ``"option"``; a value that no reader could take apart.
        """
        from formats.csv import CsvDialect, CsvEncoder

        dialect = CsvDialect(delimiter=delimiter, quote=quote, escape=escape, quote_mode=quote_mode)
        return CsvEncoder(dialect=dialect, header_mode="names" if header else "none", null_value=null_value)


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

        Called often while the size of a part nears its limit; does nothing when nothing waits.
        """

    @abstractmethod
    def finish(self) -> None:
        """Flush, write the footer, release memory. Called once; the output stays open."""


class BulkWriterFactory(ABC):
    """A bulk format. Pickled to the tasks; makes one writer per part file."""

    #: The format's own file extension, with its dot, as in ``".parquet"``.
    extension: str = ""

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
