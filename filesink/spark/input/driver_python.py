"""Which Python runs the tasks.

Spark takes the first ``python3`` on PATH unless ``PYSPARK_PYTHON`` names another, and notes it when the
session starts. With a local master that is a wrong guess whenever the driver's environment is not activated.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark import SparkContext

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_GUESS = "python3"


@contextmanager
def drivers_python(session: SparkSession) -> Iterator[None]:
    """Functions that are made for tasks inside run in the Python of this driver, if all is on one host.

    Whoever has chosen a Python keeps it. A function remembers its Python, so nobody's of before or after
    changes. Threads come one after the other: what one has set is no choice of the user's for the next.
    """
    context = session.sparkContext
    with SparkContext._lock:  # noqa: SLF001 - PySpark's own for what belongs to the context; reentrant
        if not _is_a_guess(context):
            yield
            return
        guessed, context.pythonExec = context.pythonExec, sys.executable
        try:
            yield
        finally:
            context.pythonExec = guessed


def _is_a_guess(context: SparkContext) -> bool:
    chosen = context.pythonExec != _GUESS or context.getConf().contains("spark.pyspark.python")
    return str(context.master).startswith("local") and bool(sys.executable) and not chosen
