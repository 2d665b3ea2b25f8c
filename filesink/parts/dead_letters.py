"""Records that cannot be written: they fail the epoch, or are put aside.

Put aside, they go into Parquet files below ``_dead_letters`` of the base path, with the error in a column. A
record that the encoder of a row format cannot write goes to the same bucket there, with the columns that
files have. A record without a bucket goes beside these buckets, with all columns, since those of the path
are the bad ones. These are part files like others: hidden until the same epoch record publishes them, so a
bad record is there exactly once, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from filesink.arguments import has_no_bytes
from filesink.errors import BucketError, ConfigError, EncoderError, FilesinkError, SchemaError
from filesink.naming import DEAD_LETTERS, check_relative, join
from filesink.parts.part_writer import UnwritableRecord
from formats.errors import FormatError
from formats.parquet.writer import ParquetWriterFactory

#: The column of a dead letter that says why; the others are those of the record.
ERROR_COLUMN: Final = "_error"
#: Appended to the path of dead letters for those that have no bucket.
NO_BUCKET: Final = "_no_bucket"
#: Of dead letters; it has all types that row formats take.
FORMAT: Final = ParquetWriterFactory(compression="zstd")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetters:
    """Where records that cannot be written go.

    Attributes:
        path: relative to the base path; begins with ``_dead_letters``, so that readers of the base
            path do not look there.
        limit: how many records one task may put aside. One more fails the epoch: then more is wrong than
            a few records.

    Raises:
        ConfigError: ``BAD_VALUE``.
        SecurityError: ``ESCAPE``; the path has ``..`` in it.
    """

    path: str = DEAD_LETTERS
    limit: int = 10_000

    def __post_init__(self) -> None:
        path: object = self.path
        if not isinstance(path, str) or not path.startswith(DEAD_LETTERS) or has_no_bytes(path):
            raise ConfigError(
                f"dead letters go below the base path, into a directory that begins with '{DEAD_LETTERS}'",
                code="BAD_VALUE",
            )
        check_relative(path)
        limit: object = self.limit
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise ConfigError(
                f"the limit of dead letters must be a whole number > 0, got {repr(limit)[:40]}",
                code="BAD_VALUE",
            )

    def check_schema(self, schema: pa.Schema) -> None:
        """Raise ``SchemaError`` if a record of ``schema`` could not be put aside."""
        taken = [name for name in schema.names if name.lower() == ERROR_COLUMN]
        if taken:
            raise SchemaError(
                f"column {taken[0]!r} has the name under which dead letters keep the error; rename it",
                code="DUPLICATE_COLUMN",
            )
        try:
            FORMAT.check_schema(schema)
        except FormatError as error:
            raise SchemaError(f"dead letters are Parquet: {error.message}", code="TYPE") from error


class Rejections:
    """Collects what one task cannot write.

    Args:
        dead_letters: ``None`` fails with the first.
        partition: of the task, for messages.
    """

    def __init__(self, dead_letters: DeadLetters | None, partition: int) -> None:
        self._dead_letters = dead_letters
        self._partition = partition
        self._waiting: list[tuple[str, pa.RecordBatch]] = []
        self.count = 0

    def add(self, bucket: str, record: pa.RecordBatch, *, position: int, found: UnwritableRecord) -> None:
        """Put ``record`` aside, the ``position``-th of its bucket in this task, counted from 1.

        Raises:
            EncoderError: bad records fail the epoch, or there are too many.
        """
        where = f"record {position} of partition {self._partition} in bucket '{bucket}'"
        error = found.error
        if self._dead_letters is None:
            raise EncoderError(f"{error.message}: {where}. Nothing was committed", code=error.code) from error
        self._count(1, f"{where}: {error.message}", error)
        path = self._dead_letters.path
        self._waiting.append((join(path, bucket) if bucket else path, _letter(record, error.message)))

    def refuse(self, records: pa.RecordBatch, error: BucketError) -> None:
        """Put ``records`` aside, which have no bucket because of ``error``.

        Raises:
            BucketError: bad records fail the epoch.
            EncoderError: there are too many.
        """
        where = f"{records.num_rows} records of partition {self._partition}"
        if self._dead_letters is None:
            raise BucketError(
                f"{error.message}, in {where} (checked as one batch). Nothing was committed. Give such "
                "records another value before the write, or have them put aside with "
                "FileSink….on_bad_record(DeadLetters())",
                code=error.code,
            )
        self._count(records.num_rows, f"{where}: {error.message}", error)
        self._waiting.append((f"{self._dead_letters.path}{NO_BUCKET}", _letter(records, error.message)))

    def _count(self, rows: int, last: str, cause: FilesinkError) -> None:
        limit = 0 if self._dead_letters is None else self._dead_letters.limit
        self.count += rows
        if self.count > limit:
            raise EncoderError(
                f"more than {limit} records of one task cannot be written, the last is {last}. Nothing was "
                "committed. If these records are meant to be put aside, raise DeadLetters(limit=…)",
                code="DEAD_LETTERS",
            ) from cause

    def drain(self) -> list[tuple[str, pa.RecordBatch]]:
        """Bucket and batch of the dead letters that were added since the last call."""
        waiting, self._waiting = self._waiting, []
        return waiting


def _letter(records: pa.RecordBatch, why: str) -> pa.RecordBatch:
    """``records`` with the error in a column."""
    field = pa.field(ERROR_COLUMN, pa.string(), nullable=False)
    return pa.RecordBatch.from_arrays(
        [*records.columns, pa.repeat(why, records.num_rows)],
        schema=records.schema.append(field),
    )
