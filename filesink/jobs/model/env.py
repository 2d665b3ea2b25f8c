"""``env { … }``: how a job runs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator

from filesink.jobs.model.options import Bytes, Milliseconds, Options, option
from filesink.jobs.model.secret import SecretSettings


class Mode(StrEnum):
    """Whether a job ends by itself."""

    BATCH = "BATCH"
    STREAMING = "STREAMING"


def _upper(given: Any) -> Any:
    return given.upper() if isinstance(given, str) else given


class Env(Options):
    """What holds for a whole job."""

    family = "spark."
    family_option = "spark"
    refused = {
        "shade.identifier": "a secret that the file itself can undo is none; write ${env:NAME} in its place",
        "jars": "jars belong to Spark; write spark.jars",
        "tag_filter": "which machines work is Spark's: write spark.kubernetes.node.selector.… or the like",
        "metadata_datasource": "there is no catalog of tables; write schemas into the job",
    }
    harmless = {"shade.identifier": ("", "default")}
    without_effect = {
        "savemode.execute.location": "directories are emptied where the job runs",
        "min-pause": "a micro-batch begins when the last one is over",
        "checkpoint.min-pause": "a micro-batch begins when the last one is over",
    }

    name: str = option("", doc="The name of the job.", words=("job.name", "name"))
    mode: Annotated[Mode, BeforeValidator(_upper)] = option(
        Mode.BATCH, doc="BATCH or STREAMING.", words=("job.mode",)
    )
    parallelism: int = option(
        1,
        doc="Tasks of each source.",
        unit="tasks",
        words=("parallelism", "execution.parallelism"),
        ge=1,
        le=100_000,
    )
    checkpoint_interval: Milliseconds = option(
        30_000,
        doc="Time between micro-batches of a stream.",
        unit="ms",
        words=("checkpoint.interval", "execution.checkpoint.interval"),
    )
    checkpoint_timeout: Milliseconds | None = option(
        None,
        doc="How long a micro-batch of a stream may take; then its pipeline is started again.",
        unit="ms",
        words=("checkpoint.timeout", "execution.checkpoint.timeout"),
    )
    resumes: bool = option(
        default=False,
        doc="Whether a batch of files goes on where it was killed, and does not begin again.",
        words=("job.batch.resumable",),
    )
    retry_times: int = option(
        3,
        doc="How often a pipeline is started again.",
        unit="times",
        words=("job.retry.times",),
        ge=0,
        le=1000,
    )
    retry_interval_seconds: int = option(
        3, doc="Time before that.", unit="s", words=("job.retry.interval.seconds",), ge=0, le=86_400
    )
    rows_per_second: int | None = option(
        None,
        doc="What a source that counts rows reads.",
        unit="rows/s",
        words=("read_limit.rows_per_second",),
        ge=1,
    )
    bytes_per_second: Bytes | None = option(
        None,
        doc="What a source that counts bytes reads.",
        unit="bytes/s",
        words=("read_limit.bytes_per_second",),
    )
    spark: SecretSettings = option(SecretSettings(), doc="Settings of Spark, as they are.")

    @property
    def is_stream(self) -> bool:
        """Whether pipelines run as streaming queries, be it to the end of what is there."""
        return self.mode is Mode.STREAMING or self.resumes
