"""Streams that read through a Python data source, run to their end."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

_TRIES = 5


def run_to_end(start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """Start a query and wait for its end; once more if Spark has not even got its process to run.

    Spark gives the Python process that plans such a stream ten seconds to call back, which no setting changes
    (``PythonWorkerFactory``): too few where other tests keep all cores busy. Nothing was read by then.
    """
    for number in range(_TRIES):
        query = start()
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            if "failed to connect back" not in str(error) or number == _TRIES - 1:
                raise
        else:
            return query
    raise AssertionError("not reached")
