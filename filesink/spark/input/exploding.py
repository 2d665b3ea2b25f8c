"""A row for each entry of an array, without what Spark infers from that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as all PySpark code does

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def exploded(df: DataFrame, array: str, *kept: str | Column, place: str, entry: str) -> DataFrame:
    """Columns ``kept`` with ``place``, from 0, and ``entry`` for each entry of ``array``, if it has any.

    Of an inner generator Spark infers a filter (``size(array) > 0``), and moves it below all projections:
    what the array is made of would be computed once more, in one expression of megabytes.
    """
    rows = df.select(*kept, F.posexplode_outer(array).alias(place, entry))
    return rows.where(F.col(place).isNotNull())
