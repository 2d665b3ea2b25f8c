"""Advice for streams whose checkpoint is on a local disk.

Hadoop without its native library starts a process for each file that Spark renames there (``readlink``) and
one for each that it creates (``chmod``); a micro-batch waits for several. Spark has another file manager that
asks the JVM instead. Both look whether a file is there, and rename; so which one it is changes no promise.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("filesink")

SETTING = "spark.sql.streaming.checkpointFileManagerClass"
FASTER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


def advise(session: SparkSession, checkpoint: str) -> None:
    """Log one line where another setting would save a good part of each micro-batch. Changes nothing."""
    try:
        if session.conf.get(SETTING, "") or not _starts_processes(session, checkpoint):
            return
    except (PySparkException, Py4JError, TypeError):  # no such path or class; Spark tells when it starts
        return
    log.info(
        "the checkpoint '%s' is on a local disk, where Hadoop starts processes for each file of a "
        "micro-batch: 70 to 100 ms. Set %s=%s before the query starts to save most of it",
        checkpoint,
        SETTING,
        FASTER,
    )


def _starts_processes(session: SparkSession, checkpoint: str) -> bool:
    """Whether the checkpoint is on a local disk that Hadoop has no native library for."""
    hadoop: Any = session.sparkContext._jvm.org.apache.hadoop  # type: ignore[union-attr] # noqa: SLF001
    conf = session._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001 - the only way to it
    files = hadoop.fs.Path(checkpoint).getFileSystem(conf)
    is_local = str(files.getUri().getScheme()) == "file"
    return is_local and not hadoop.util.NativeCodeLoader.isNativeCodeLoaded()
