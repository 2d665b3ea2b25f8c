"""The hash by which a write with a ``txn_id`` that comes again is compared with the first."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from filesink.spark.input.digest import Digested

pytestmark = pytest.mark.spark

DIFFERENT = [
    ("a string, b string", ("x", None), (None, "x")),
    ("a array<int>", ([1, None],), ([None, 1],)),
    ("a array<int>", ([1, None],), ([1],)),
    ("a array<int>", (None,), ([],)),
    ("a array<array<int>>", ([[1], [2]],), ([[1, 2]],)),
    ("a array<int>, b array<int>", ([1], [2]), ([1, 2], [])),
    ("a struct<x: int, y: int>", (None,), ((None, None),)),
    ("a struct<x: int, y: int>", ((1, None),), ((None, 1),)),
    ("a struct<x: int, X: int>", ((1, None),), ((None, 1),)),
    ("a array<struct<x: int, y: int>>", ([(1, None)],), ([(None, 1)],)),
    ("a array<struct<x: int, y: int>>", ([None],), ([(None, None)],)),
    ("a struct<m: map<int, int>, y: int>", (({1: 1}, 1),), (({1: 1}, 2),)),
    ("a map<int, int>, b int", ({1: 1}, 1), (None, 1)),
]


def digest(spark: SparkSession, schema: str, *rows: Any) -> str:
    """That of these rows."""
    digested = Digested()
    digested.observe(spark.createDataFrame(list(rows), schema)).collect()
    return digested.get()


@pytest.mark.parametrize(("schema", "one", "other"), DIFFERENT, ids=str)
def test_other_values_have_another_digest(spark: SparkSession, schema: str, one: Any, other: Any) -> None:
    """Also where nulls, or the borders of nested values, are all that differs."""
    assert digest(spark, schema, one) != digest(spark, schema, other)


def test_order_and_partitions_do_not_matter(spark: SparkSession) -> None:
    """A retry may read the same rows in another order."""
    schema = "a int, b array<struct<x: string, y: double>>"
    rows = [(number, [(str(number), None), None]) for number in range(20)]
    assert digest(spark, schema, *rows) == digest(spark, schema, *reversed(rows))
    assert digest(spark, schema, *rows) != digest(spark, schema, *rows, rows[0], rows[0])
