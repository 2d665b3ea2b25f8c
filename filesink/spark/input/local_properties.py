"""What Spark's jobs take over from the thread that runs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from pyspark import SparkContext

_DESCRIPTION = "spark.job.description"


@contextmanager
def local_properties(context: SparkContext, wanted: Mapping[str, str]) -> Iterator[None]:
    """Jobs that this thread runs inside have these; afterwards the thread has what it had."""
    before = {name: context.getLocalProperty(name) for name in wanted}
    for name, value in wanted.items():
        context.setLocalProperty(name, value)
    try:
        yield
    finally:
        for name in wanted:
            context.setLocalProperty(name, cast("str", before[name]))  # None takes it away


@contextmanager
def described(context: SparkContext, what: str) -> Iterator[None]:
    """Jobs that this thread runs inside are shown as ``what``, and as what the user has said of them."""
    said = context.getLocalProperty(_DESCRIPTION)
    with local_properties(context, {_DESCRIPTION: f"{what}; {said}" if said else what}):
        yield
