"""Functions that a job of a test names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def only_first(frame: DataFrame, most: int) -> DataFrame:
    """The rows with the smallest ids."""
    return frame.orderBy("id").limit(most)


def nothing(frame: DataFrame) -> None:
    """No DataFrame."""
    del frame
