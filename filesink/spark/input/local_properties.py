"""What Spark's jobs take over from the thread that runs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from pyspark import SparkContext

_DESCRIPTION = "spark.job.description"


@contextmanager
def local_properties(
    context: SparkContext, *, shown_as: str, wanted: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Jobs that this thread runs inside are shown by this name, and have these properties.

    The name goes before what the user has said of them. Afterwards the thread has what it had. Each property
    is read once, since a call into the JVM costs as much as publishing a file.
    """
    names = (_DESCRIPTION, *(wanted or {}))
    before = {name: context.getLocalProperty(name) for name in names}
    said = before[_DESCRIPTION]
    inside = {_DESCRIPTION: f"{shown_as}; {said}" if said else shown_as, **(wanted or {})}
    for name in names:
        context.setLocalProperty(name, inside[name])
    try:
        yield
    finally:
        for name in names:
            context.setLocalProperty(name, cast("str", before[name]))  # None takes it away
