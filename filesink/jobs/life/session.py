"""The Spark session of a job, and what Spark's errors mean. The one module of jobs that imports pyspark."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from filesink.errors import FilesinkError, InternalError, JobError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LONGEST = 300  # characters of a sentence of Spark's
_OURS = re.compile(r"filesink\.errors\.(\w+): \[[A-Z_]+\] (.+)")
_CAUSES = re.compile(r"\b(?:[a-z]\w*\.)+([A-Z]\w*(?:Exception|Error))\b")
_STAYS = frozenset(
    {"ConfigError", "SchemaError", "DataError", "EncoderError", "BucketError", "JobError", "SourceError"}
)


def session(settings: Mapping[str, str], *, name: str, master: str | None) -> SparkSession:
    """The session that is active, or a new one.

    Args:
        settings: of the job file, with the values of their secrets.
        name: of the application.
        master: comes before that of the settings; ``local[*]`` if neither says one.

    Raises:
        JobError: ``JOB_SPARK``; Spark cannot be started.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    chosen = {"spark.app.name": name, "spark.master": "local[*]", **settings}
    if master is not None:
        chosen["spark.master"] = master
    builder = SparkSession.builder
    for key, value in chosen.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        raise JobError(
            f"Spark cannot be started ({type(error).__name__}); its own log says why. Check Java, "
            "spark.master and the settings spark.… of env",
            code="JOB_SPARK",
        ) from error


def sentence(error: Exception) -> tuple[str, bool]:
    """What may be shown of an error, and whether trying again is of no use.

    What Spark says of a query is shown; what it says of tasks may hold values of records, and is not.
    """
    from pyspark.errors import AnalysisException, ParseException

    if isinstance(error, FilesinkError):
        return error.message, error.is_permanent and not isinstance(error, InternalError)
    text = str(error).strip()
    ours = _OURS.findall(text)
    if ours:  # raised in a task, and told by Spark
        kind, message = ours[-1]
        return message[:_LONGEST], kind in _STAYS
    if isinstance(error, AnalysisException | ParseException):
        return text.split("\n", 1)[0][:_LONGEST], True
    names = dict.fromkeys([type(error).__name__, *_CAUSES.findall(text)])  # names of classes are no values
    return f"{', '.join(names)}; the log of the driver has more", False
