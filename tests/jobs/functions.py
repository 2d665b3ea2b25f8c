"""Functions that a job of a test names."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def only_first(frame: DataFrame, most: int) -> DataFrame:
    """The rows with the smallest ids."""
    return frame.orderBy("id").limit(most)


def nothing(frame: DataFrame) -> None:
    """No DataFrame."""
    del frame


def slowly(frame: DataFrame) -> DataFrame:
    """Rows that take half a minute."""

    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(30)
            yield batch

    return frame.mapInArrow(wait, frame.schema)
