"""Arguments of the wrong type are told when they are given, by a typed error, before anything is asked."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from filesink.errors import ConfigError
from filesink.metastore.api import TableName
from filesink.metastore.glue.metastore import GlueCatalog
from filesink.metastore.hive.connection import Kerberos
from filesink.metastore.hive.metastore import HiveMetastore
from filesink.metastore.memory import MemoryMetastore
from filesink.metastore.metastore_policy import MetastorePolicy
from filesink.metastore.partition_commit import PartitionCommit
from filesink.metastore.policies import ListenerPolicy, SuccessFilePolicy
from filesink.metastore.service_errors import sentence
from filesink.sink import FileSink
from filesink.spark.catalog.metastore import SparkCatalog

ANY = MemoryMetastore()
SUCCESS = SuccessFilePolicy()
WRONG: list[Callable[[], object]] = [
    lambda: HiveMetastore(5),
    lambda: HiveMetastore(None),
    lambda: HiveMetastore(["thrift://a"]),
    lambda: HiveMetastore("thrift://a", security="kerberos"),
    lambda: HiveMetastore("thrift://a", timeout=None),
    lambda: HiveMetastore("thrift://a", timeout="soon"),
    lambda: Kerberos(service=5),
    lambda: Kerberos(host=5),
    lambda: GlueCatalog("eu-central-1"),
    lambda: GlueCatalog({}),
    lambda: GlueCatalog(ANY, catalog_id=5),
    lambda: SparkCatalog("spark"),
    lambda: SparkCatalog(5),
    lambda: TableName.parse(5),
    lambda: TableName.parse("t"),
    lambda: TableName(database=5, table="t"),
    lambda: MetastorePolicy(5, ANY),
    lambda: MetastorePolicy("db.t", "thrift://a"),
    lambda: MetastorePolicy("db.t", None),
    lambda: MetastorePolicy("db.t", ANY, create=True),
    lambda: MetastorePolicy("db.t", ANY, create="external"),
    lambda: MetastorePolicy("db.t", ANY, on_new_columns="maybe"),
    lambda: MetastorePolicy("db.t", ANY, on_new_columns=None),
    lambda: MetastorePolicy("db.t", ANY, on_wider_types="change"),
    lambda: SuccessFilePolicy(5),
    lambda: SuccessFilePolicy(None),
    lambda: ListenerPolicy(None),
    lambda: PartitionCommit(policies=None),
    lambda: PartitionCommit(policies=SUCCESS),
    lambda: PartitionCommit(policies="metastore"),
    lambda: PartitionCommit(policies=[None]),
    lambda: PartitionCommit(policies=[SUCCESS], trigger="partition-time"),
    lambda: PartitionCommit(policies=[SUCCESS], trigger=PartitionCommit.process_time),
    lambda: PartitionCommit(policies=[SUCCESS], delay=None),
    lambda: PartitionCommit(policies=[SUCCESS], delay=1.5),
    lambda: PartitionCommit.partition_time(extractor=5, watermark_column="ts"),
    lambda: PartitionCommit.partition_time(extractor=None, watermark_column="ts"),
    lambda: PartitionCommit.partition_time(extractor="$day", watermark_column=5),
    lambda: PartitionCommit.partition_time(extractor="$day", watermark_column=["ts"]),
    lambda: PartitionCommit.partition_time(extractor="$day", watermark_column="ts", allowed_lateness=[]),
    lambda: PartitionCommit.partition_time(extractor="$day", watermark_column="ts", time_zone=5),
    lambda: PartitionCommit.partition_time(extractor="$day", watermark_column="ts", formatter=5),
    lambda: FileSink.for_hive_table("db.t", metastore="thrift://a"),
    lambda: FileSink.for_hive_table("db.t", metastore=None),
    lambda: FileSink.for_hive_table(5, metastore=ANY),
    lambda: FileSink.for_hive_table(None, metastore=ANY),
]


@pytest.mark.parametrize("make", WRONG)
def test_wrong_types_are_configuration_errors(make: Callable[[], object]) -> None:
    """Never a TypeError or AttributeError from somewhere below."""
    with pytest.raises(ConfigError):
        make()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Permission denied: user=u\n\tat org.apache", "Permission denied: user=u"),
        ("\n\n  late \n", "late"),
        ("", "no reason given"),
        ("url jdbc:mysql://u:secret@h/db", "url jdbc:mysql://…@h/db"),
        ("password=secret, user=u", "password=…, user=u"),
        ("aws_secret_access_key: secret; x", "aws_secret_access_key: …; x"),
        ("a\x1b[31m\x00b", "a?[31m?b"),
        ("x" * 400, "x" * 300 + "…"),
    ],
)
def test_what_a_service_says_is_one_plain_line(text: str, expected: str) -> None:
    """Without passwords, and never a page."""
    assert sentence(text) == expected
