"""All plugins that come with filesink, and SeaTunnel's that have no counterpart."""

from __future__ import annotations

from functools import cache

from filesink.jobs.plugins.api import Plugin
from filesink.jobs.plugins.files import connectors
from filesink.jobs.plugins.registry import Registry, installed
from filesink.jobs.plugins.sinks.assertion import Assert
from filesink.jobs.plugins.sinks.console import Console
from filesink.jobs.plugins.sinks.services import Collect, Hive, Http, Kafka, Postgres
from filesink.jobs.plugins.sources.fake import FakeSource
from filesink.jobs.plugins.sources.kafka import KafkaSource
from filesink.jobs.plugins.sources.spark import JdbcSource, SparkSource
from filesink.jobs.plugins.transforms.columns import Copy, FieldMapper, Filter, Replace, Split
from filesink.jobs.plugins.transforms.sql import Python, Sql

_OURS: tuple[type[Plugin], ...] = (
    FakeSource,
    SparkSource,
    JdbcSource,
    KafkaSource,
    *connectors.SOURCES,
    Sql,
    Python,
    Filter,
    FieldMapper,
    Copy,
    Split,
    Replace,
    *connectors.SINKS,
    Console,
    Assert,
    Postgres,
    Kafka,
    Http,
    Collect,
    Hive,
)
_NO_KINDS = "rows have no kinds here: every row is one more"
_REFUSED = {
    **connectors.REFUSED,
    ("transform", "filterrowkind"): _NO_KINDS,
    ("transform", "rowkindextractor"): _NO_KINDS,
    ("sink", "jdbc"): "a batch that is repeated would insert its rows again; take Postgres",
}


@cache
def catalog() -> Registry:
    """Every plugin that a job may name.

    Raises:
        JobError: ``JOB_PLUGIN``; one of another package cannot be used.
    """
    return Registry(plugins=(*_OURS, *installed()), refused=_REFUSED)
