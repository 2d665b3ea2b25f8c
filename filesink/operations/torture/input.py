"""What the writers of a trial write: rows that say whose they are, the same at each call. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import pyarrow as pa

from filesink.ports import Losers, Task

ROWS: Final = 60  # of a batch
_TASKS: Final = 2
_BUCKETS: Final = 3
_PADDING: Final = "." * 40
_SCHEMA: Final = pa.schema([("bucket", pa.string()), ("row", pa.string())])


def bucket_of(number: int) -> str:
    """The directory of a row."""
    return f"bucket=b{number % _BUCKETS}"


def line(writer: int, batch: int, number: int) -> str:
    """A row as its file has it; one that is torn or mixed with another is none."""
    return f"{writer} {batch} {number} {_PADDING} end"


def parsed(text: str) -> tuple[int, int, int] | None:
    """Writer, batch and number of a row; ``None`` if it is none."""
    words = text.split(" ")
    if len(words) != 5 or not all(word.isascii() and word.isdigit() for word in words[:3]):
        return None
    writer, batch, number = map(int, words[:3])
    return (writer, batch, number) if line(writer, batch, number) == text and number < ROWS else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TortureBatch:
    """The input of one epoch; implements ``filesink.ports.WriteJob``."""

    writer: int
    batch: int
    run_id: str
    time_zone: str = "UTC"
    offsets: str = ""
    schema: pa.Schema = _SCHEMA

    @property
    def fingerprint(self) -> str:
        """See ``MicroBatch``."""
        return sha256(f"{self.writer} {self.batch}".encode()).hexdigest()

    def write(self, task: Task) -> list[bytes]:
        """See ``WriteJob.write``."""
        return [task(number, 0, self._records(number)) for number in range(_TASKS)]

    def count_rows(self) -> int:
        """See ``WriteJob.count_rows``."""
        return ROWS

    def digest(self) -> str:
        """See ``WriteJob.digest``."""
        return ""

    def losers(self) -> Losers:
        """See ``WriteJob.losers``."""
        return Losers.NONE

    def is_wanted(self) -> bool:
        """See ``WriteJob.is_wanted``."""
        return True

    def _records(self, task: int) -> Iterator[pa.RecordBatch]:
        numbers = range(task, ROWS, _TASKS)
        names = [bucket_of(number).partition("=")[2] for number in numbers]
        rows = [line(self.writer, self.batch, number) for number in numbers]
        yield pa.record_batch([pa.array(names), pa.array(rows)], schema=_SCHEMA)
