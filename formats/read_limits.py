"""How much of a file a reader takes at a time, and in all, whatever the file claims.

Files of strangers may be bombs: some kilobytes of zstd become a line of a gibibyte, a sheet of Excel has
a row numbered 10^6 and nothing before it. A reader stops at its limits with an error that names the file,
and until then it takes no more memory than about four times the limit of a record.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, cast

from formats.arguments import instance_of
from formats.errors import FormatError, LimitError
from formats.sizes import parse_size


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """What a reader takes; see ``bounded``.

    Attributes:
        record: most bytes of one record, or of what a format has to have in memory as a whole: a block of
            Avro or of a SequenceFile, a row of a sheet. As it is in the file, once it is expanded, and as it
            is in memory; bytes, or text such as ``"64MiB"``.
        file: most bytes of all records together, likewise; ``None`` for any number.

    Raises:
        FormatError: kind ``"option"``; no size.
    """

    record: int | str = "64MiB"
    file: int | str | None = None

    def __post_init__(self) -> None:
        """Turn sizes into bytes."""
        object.__setattr__(self, "record", parse_size(self.record, name="record"))
        if self.file is not None:
            object.__setattr__(self, "file", parse_size(self.file, name="file"))

    @property
    def record_bytes(self) -> int:
        """``record`` as a number."""
        return int(self.record)


_LARGEST: Final = 2**31 - 1  # bytes of a value of Arrow's
_UNNAMED: Final = "the file"
#: Of every file that is not ``bounded``.
DEFAULT_LIMITS: Final = ReadLimits()


def bounded(file: BinaryIO, *, limits: ReadLimits, name: str | None = None) -> BinaryIO:
    """``file`` with limits of its own, for any ``open_reader``.

    Args:
        file: stays with its owner.
        limits: for its reader; whoever trusts the file may raise them.
        name: of the file, in messages; ``None`` for its own ``name``, if it has one.

    Raises:
        FormatError: kind ``"option"``; no ``ReadLimits``, or a name that is no text.
    """
    instance_of(limits, ReadLimits, name="limits")
    if name is not None:
        instance_of(name, str, name="name")
    return cast("BinaryIO", _Bounded(file, limits, name_of(file) if name is None else name))


class _Bounded:
    """A file in everything but its limits and its name."""

    def __init__(self, file: BinaryIO, limits: ReadLimits, name: str) -> None:
        self._file = file
        self.limits = limits
        self.name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._file)

    def close(self) -> None:
        """Never: its owner does."""


def own_file(file: BinaryIO) -> BinaryIO:
    """``file``, of which it is known that we wrote it: any record that could be written can be read."""
    return bounded(file, limits=ReadLimits(record=_LARGEST))


@dataclass(frozen=True, slots=True)
class Guard:
    """The limits of one file, for its reader."""

    limits: ReadLimits
    name: str

    @property
    def record(self) -> int:
        """Most bytes of a record."""
        return self.limits.record_bytes

    def check_record(self, size: int, what: str = "a record") -> None:
        """Raise ``LimitError`` if ``size`` bytes are more than a record may have."""
        if size > self.record:
            raise self.too_large(what)

    def too_large(self, what: str = "a record") -> LimitError:
        """The error for a record, or ``what``, that is larger than it may be."""
        return LimitError(what, file=self.name, limit="record", size=self.record)

    @contextmanager
    def naming(self) -> Iterator[None]:
        """What is wrong with the bytes of the file is said with its name, if it has one."""
        try:
            yield
        except LimitError:  # has said it
            raise
        except FormatError as error:
            known = f"'{self.name}': "
            if error.kind != "value" or self.name == _UNNAMED or error.message.startswith(known):
                raise
            raise FormatError(known + error.message, kind=error.kind) from error.__cause__

    def check_file(self, size: int) -> None:
        """Raise ``LimitError`` if ``size`` bytes are more than a file may have."""
        most = self.limits.file
        if most is not None and size > int(most):
            raise LimitError("what the file holds", file=self.name, limit="file", size=int(most))


def guard_of(file: BinaryIO) -> Guard:
    """The limits that ``file`` came with, or the default ones."""
    limits = getattr(file, "limits", None)
    return Guard(limits if isinstance(limits, ReadLimits) else DEFAULT_LIMITS, name_of(file))


def name_of(file: object) -> str:
    """How messages call a file; ``"the file"`` if it does not say."""
    name = getattr(file, "name", None)
    return name if isinstance(name, str) and name else _UNNAMED
