"""Records that cannot be read: found one by one where files are lines."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import BinaryIO

import pyarrow as pa

from filesink.naming import shown
from filesink.source.files import FileSplit
from filesink.source.reading.opening import records
from filesink.source.reading.plan import ReadPlan
from formats.errors import FormatError

log = logging.getLogger("filesink")


def lenient(
    plan: ReadPlan, file: BinaryIO, split: FileSplit, *, schema: pa.Schema
) -> Iterator[tuple[pa.RecordBatch, str | None]]:
    """Batches of records that can be read, and, each with its text, of those that cannot."""
    try:
        for batch in records(plan.code, file, split, schema=schema):
            yield batch, None
    except FormatError as error:
        if error.kind != "value":
            raise
        log.warning("the rest of '%s' was left out: %s", shown(split.file.path), error.message)
