"""How files are read: what a task needs beside its splits. A value that is pickled."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Final

import pyarrow as pa

from filesink.source.directories import Root
from formats.api import ReadableFormat
from formats.read_limits import ReadLimits

#: Columns that tell where a record comes from, and their types.
METADATA: Final = {"_file": pa.string(), "_bucket": pa.string(), "_version": pa.int64()}
#: The column of what could not be read.
RESCUED: Final = "_rescued"


class BadRecords(Enum):
    """What becomes of records that cannot be read; the names are Spark's.

    Lines (text, JSON, CSV, if they are not compressed) are told apart one by one. Of other files the rest of
    a split is left out, from where it cannot be read.
    """

    FAILFAST = "FAILFAST"  # the read fails
    DROPMALFORMED = "DROPMALFORMED"  # they are left out, and the log says how many
    PERMISSIVE = "PERMISSIVE"  # a row of nulls, with the text of the record in ``_rescued``


class Missing(Enum):
    """What becomes of files that vanished since they were found."""

    FAIL = "fail"
    IGNORE = "ignore"


class Union(Enum):
    """Whose columns the schema has, if none is given."""

    NEWEST = "newest"  # of the file that was written last
    ALL = "all"  # of all files, by name; each is opened


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How records are read.

    Attributes:
        code: of all files; ``None`` for the one that their names tell.
        bad_records, missing: see there.
        limits: of a file.
        metadata: names of ``METADATA`` that are wanted as columns.
        union: whose columns the schema has, if none is given.
        at: the version of a sink's directory that a batch reads, or a moment; ``None`` for the newest.
    """

    code: ReadableFormat | None = None
    bad_records: BadRecords = BadRecords.FAILFAST
    missing: Missing = Missing.FAIL
    limits: ReadLimits = field(default_factory=ReadLimits)
    metadata: tuple[str, ...] = ()
    union: Union = Union.NEWEST
    at: int | datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan:
    """How splits become record batches.

    Attributes:
        roots: what the files lie below.
        code: the format of all files.
        schema: of the batches: columns of the files by name, those of directories ``k=v``, and of
            ``METADATA`` and ``RESCUED`` those that are wanted.
        reading: what else was chosen.
    """

    roots: tuple[Root, ...]
    code: ReadableFormat
    schema: pa.Schema
    reading: Reading
