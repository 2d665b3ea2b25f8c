"""What all readers share: batches of bounded size, and records brought into the form that is asked for."""

from __future__ import annotations

import errno
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.types as pt

from formats import columns
from formats.errors import FormatError
from formats.evolution import check_readable_as
from formats.read_limits import Guard, guard_of

#: Most records, and about the most bytes in Arrow's form, that a reader hands over at a time.
BATCH_ROWS: Final = 65_536
BATCH_BYTES: Final = 16 << 20
_OF_A_CELL: Final = 8  # bytes of a column's, at least
_OF_BYTES: Final[tuple[type[Exception], ...]] = (pa.ArrowException, OSError, EOFError, UnicodeDecodeError)


class Source(io.RawIOBase):
    """A file of somebody else's, lent to a library that closes what it reads and rewords what it catches.

    What reading raises is remembered, so that an error of the store is never taken for damage.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._error: BaseException | None = None

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def close(self) -> None:
        """Never: its owner does."""

    def tell(self) -> int:
        """See ``io.IOBase.tell``."""
        return self._file.tell()

    def read(self, size: int = -1, /) -> bytes:
        """See ``io.RawIOBase.read``."""
        try:
            return self._file.read(size)
        except BaseException as error:
            self._error = error
            raise

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """See ``io.IOBase.seek``; a place that cannot be is a ``ValueError``, as damage may name one."""
        try:
            return self._file.seek(offset, whence)
        except ValueError:
            raise
        except BaseException as error:
            if isinstance(error, OSError) and error.errno == errno.EINVAL:
                raise ValueError(f"no place {offset} in the file") from error
            self._error = error
            raise

    @contextmanager
    def as_damage(self, message: str, *, on: tuple[type[Exception], ...] = _OF_BYTES) -> Iterator[None]:
        """What a library raises inside the block because of the bytes becomes ``FormatError``.

        Errors of the file come out as it raised them, whatever the library made of them, and so do those
        of the system and of a user's own code.

        Args:
            message: what is wrong with the bytes then; said with the name of the file.
            on: what the library raises.

        Raises:
            FormatError: kind ``"value"``.
        """
        with guard_of(self._file).naming():
            try:
                yield
            except FormatError:
                raise
            except on as error:
                if self._error is not None:
                    raise self._error  # noqa: B904 - what it came from is in itself
                if _is_no_damage(error):
                    raise
                raise FormatError(f"{message} ({type(error).__name__})", kind="value") from error

    def checked(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """``batches`` of the file; what goes wrong with them goes through ``as_damage``."""
        with self.as_damage("the file is damaged or cut off"):
            yield from batches


def _is_no_damage(error: Exception) -> bool:
    """Whether the system or a user's own code raised it: Arrow's ``OSError`` has no errno and no class."""
    if isinstance(error, OSError):
        return type(error) is not OSError or error.errno is not None
    return type(error) is MemoryError  # Arrow's own is of a class of its own, and of a size in the file


def most_rows(schema: pa.Schema, guard: Guard) -> int:
    """How many records of ``schema`` are parsed at a time at most, since even the empty ones take memory."""
    cells = sum(1 for _ in columns.walk(schema))
    return max(1, min(BATCH_ROWS, min(BATCH_BYTES, guard.record // 4) // (_OF_A_CELL * max(cells, 1))))


def rows_per_batch(size: int, rows: int) -> int:
    """How many of ``rows`` records that take ``size`` bytes together go into one batch; at least one."""
    return max(1, min(BATCH_ROWS, BATCH_BYTES * max(rows, 1) // max(size, 1)))


def up_to(file: BinaryIO, size: int) -> bytes:
    """``size`` bytes, or all that there are; in steps, as ``exactly``."""
    pieces: list[bytes] = []
    while size and (piece := file.read(min(size, BATCH_BYTES))):
        pieces.append(piece)
        size -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def exactly(file: BinaryIO, size: int) -> bytes:
    """``size`` bytes, in steps, so that a false size costs no more memory than the file has bytes.

    Raises:
        EOFError: there are fewer.
    """
    found = up_to(file, size)
    if len(found) < size:
        raise EOFError
    return found


def with_fractions(kind: Any) -> Any:
    """The type to parse text as: Arrow takes six digits of a second for microseconds only."""
    return pa.timestamp("us", kind.tz) if pt.is_timestamp(kind) and kind.unit in {"s", "ms"} else kind


def reader(
    schema: pa.Schema,
    batches: Callable[[], Iterator[pa.RecordBatch]],
    *,
    wanted: pa.Schema | None,
    guard: Guard,
) -> pa.RecordBatchReader:
    """Batches of a file as a reader, with the columns and types of ``wanted``.

    Args:
        schema: of the file.
        batches: starts to read; called at the first batch.
        wanted: ``None`` for ``schema``.
        guard: of the file; the records are counted by it.

    Raises:
        FormatError: kind ``"schema"``; the file's columns cannot become those of ``wanted``. Kind
            ``"value"``; a name in the file is no text. ``LimitError`` from an iteration.
    """
    target = schema if wanted is None else wanted
    with guard.naming():
        try:
            check_readable_as(schema, target)
        except UnicodeDecodeError as error:  # Arrow decodes a name when somebody asks for it
            raise FormatError(
                "the file is damaged: a column has a name that is no text", kind="value"
            ) from error
    return pa.RecordBatchReader.from_batches(target, _checked(batches, target, guard))


def _checked(
    batches: Callable[[], Iterator[pa.RecordBatch]], target: pa.Schema, guard: Guard
) -> Iterator[pa.RecordBatch]:
    size = 0
    with guard.naming():
        try:
            for batch in batches():
                size += columns.size(batch)
                guard.check_file(size)
                yield from _conformed(batch, target, guard)
        except FormatError:
            raise
        except (pa.ArrowException, EOFError) as error:
            raise FormatError(
                f"the file is damaged or cut off ({type(error).__name__})", kind="value"
            ) from error


def _conformed(batch: pa.RecordBatch, schema: pa.Schema, guard: Guard) -> Iterator[pa.RecordBatch]:
    if batch.schema.equals(schema):
        yield batch
        return
    most = most_rows(schema, guard)  # the file may have fewer columns
    for start in range(0, batch.num_rows, most):
        yield conformed(batch.slice(start, most), schema)


def conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The records of ``batch`` as ``schema`` wants them; ``check_readable_as`` has accepted both."""
    if batch.schema.equals(schema):
        return batch
    arrays = [_column(batch, field) for field in schema]
    if not arrays:
        return batch.select([])
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(batch: pa.RecordBatch, field: Any) -> Any:
    if field.name not in batch.schema.names:
        return pa.nulls(batch.num_rows, field.type)
    column = batch.column(field.name)
    if column.null_count and not field.nullable:
        raise FormatError(
            f"column {field.name!r} holds nulls, and the given schema says never null; read it as nullable",
            kind="value",
        )
    try:
        return columns.cast(column, field.type)
    except pa.ArrowException as error:
        raise FormatError(
            f"column {field.name!r} of type {column.type} holds values that {field.type} cannot take",
            kind="value",
        ) from error
