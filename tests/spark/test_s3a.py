"""Sinks on S3 without options of their own: Spark's settings, and what tasks do not have."""

from __future__ import annotations

import logging
import pickle
import traceback
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from filesink import FileSink
from filesink.errors import StorageError
from filesink.spark.input.s3a import SessionOptions, s3a_options
from formats import ParquetWriterFactory
from tests.servers import S3Server
from tests.storage.s3_site import S3Site

REGION = {"client_kwargs": {"region_name": "eu-central-1"}}
SIMPLE = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
ROLE = "org.apache.hadoop.fs.s3a.auth.AssumedRoleCredentialProvider"


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({}, {}),
        (
            {"access.key": "k", "secret.key": "s", "session.token": "t"},
            {"key": "k", "secret": "s", "token": "t"},
        ),
        ({"endpoint": "https://host:9000"}, {"endpoint_url": "https://host:9000"}),
        ({"endpoint": "host:9000"}, {"endpoint_url": "https://host:9000"}),
        (
            {"endpoint": "host:9000", "connection.ssl.enabled": "false"},
            {"endpoint_url": "http://host:9000", "use_ssl": False},
        ),
        ({"endpoint": "s3.amazonaws.com"}, {}),
        (
            {"endpoint": "s3.eu-central-1.amazonaws.com"},
            {"endpoint_url": "https://s3.eu-central-1.amazonaws.com", **REGION},
        ),
        ({"endpoint.region": "eu-central-1"}, REGION),
        ({"endpoint.region": "sdk"}, {}),
        ({"path.style.access": "true"}, {"config_kwargs": {"s3": {"addressing_style": "path"}}}),
        ({"path.style.access": "false", "connection.ssl.enabled": "true"}, {}),
        ({"requester.pays.enabled": "true"}, {"requester_pays": True}),
        (
            {"aws.credentials.provider": "a.b.AnonymousAWSCredentialsProvider", "access.key": "k"},
            {"anon": True},
        ),
        ({"aws.credentials.provider": f"{SIMPLE}, x.Other", "access.key": "k"}, {"key": "k"}),
        ({"aws.credentials.provider": "x.InstanceProfileCredentialsProvider", "access.key": "k"}, {}),
        (
            {"aws.credentials.provider": ROLE, "assumed.role.arn": "arn:r", "access.key": "k"},
            {"key": "k", "assume_role": {"RoleArn": "arn:r"}, "sts_kwargs": {}},
        ),
        (
            {
                "aws.credentials.provider": ROLE,
                "assumed.role.arn": "arn:r",
                "assumed.role.session.name": "n",
                "assumed.role.sts.endpoint": "sts.host",
                "assumed.role.sts.endpoint.region": "r-1",
            },
            {
                "assume_role": {"RoleArn": "arn:r", "RoleSessionName": "n"},
                "sts_kwargs": {"endpoint_url": "https://sts.host", "region_name": "r-1"},
            },
        ),
        (
            {"encryption.algorithm": "SSE-KMS", "encryption.key": "id"},
            {"s3_additional_kwargs": {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "id"}},
        ),
        (
            {"server-side-encryption-algorithm": "AES256"},
            {"s3_additional_kwargs": {"ServerSideEncryption": "AES256"}},
        ),
    ],
)
def test_settings_mean_the_same(settings: dict[str, str], options: dict[str, object]) -> None:
    """Whoever has told Spark how to reach a bucket has told the sink."""
    assert s3a_options(lambda name: settings.get(name, "")) == options


@pytest.mark.parametrize(
    "settings",
    [
        {"aws.credentials.provider": "com.example.OurProvider"},
        {"encryption.algorithm": "SSE-C", "encryption.key": "hunter2"},
    ],
)
def test_what_is_not_taken_over_is_said(settings: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    """By its name; a value that may be a secret is not shown."""
    s3a_options(lambda name: settings.get(name, ""))
    assert "pass storage option" in caplog.text
    assert "hunter2" not in caplog.text


def test_nothing_is_read_for_other_paths() -> None:
    """Neither a session nor a setting is asked for: a local sink recovers without Spark."""
    options = SessionOptions("/data/out")
    assert (dict(options), pickle.loads(pickle.dumps(options))) == ({}, {})  # noqa: S301 - our own


@pytest.fixture
def settings(spark: SparkSession, moto_server: S3Server) -> Iterator[dict[str, str]]:
    """A session that can reach the server, by nothing but its settings."""
    given = {
        "fs.s3a.endpoint": f"127.0.0.1:{moto_server.port}",
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.access.key": "AKIAHUNTER2",
        "fs.s3a.secret.key": "hunter2",
    }
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    for name, text in given.items():
        conf.set(name, text)
    yield given
    for name in given:
        conf.unset(name)


@pytest.mark.spark
@pytest.mark.usefixtures("settings")
def test_a_sink_goes_by_the_settings_of_the_session(
    spark: SparkSession, moto_server: S3Server, caplog: pytest.LogCaptureFixture
) -> None:
    """Driver and tasks, without a variable of the environment; and no secret is shown anywhere."""
    caplog.set_level(logging.DEBUG, logger="filesink")
    site = S3Site(moto_server)
    sink = FileSink.for_bulk_format(site.path, ParquetWriterFactory()).with_uid("u").build()
    report = sink.write(spark.range(10))
    assert report.rows == 10
    assert [name for name in site.names() if name.endswith(".parquet")]
    assert sink.recover().published == ()
    stored = b"".join(site.read(site.names()).values())
    shown = [caplog.text, repr(sink), repr(sink._tiers), repr(report), stored.decode("latin1")]
    assert not [text for text in shown for secret in ("HUNTER2", "hunter2") if secret in text]


@pytest.mark.spark
def test_settings_of_one_bucket_come_first(
    spark: SparkSession, settings: dict[str, str], moto_server: S3Server
) -> None:
    """As S3A has it; options of the sink's own are instead of all of them."""
    site = S3Site(moto_server)
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set("fs.s3a.endpoint", "127.0.0.1:9")
    conf.set(f"fs.s3a.bucket.{site.bucket}.endpoint", settings["fs.s3a.endpoint"])
    try:
        FileSink.for_bulk_format(site.path, ParquetWriterFactory()).build().write(spark.range(1))
    finally:
        conf.unset(f"fs.s3a.bucket.{site.bucket}.endpoint")
    builder = FileSink.for_bulk_format(site.path, ParquetWriterFactory())
    builder.with_storage_options(**moto_server.options).build().write(spark.range(1))


@pytest.mark.spark
def test_credentials_that_tasks_lack_are_said_so(
    spark: SparkSession, moto_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those in the driver's environment do not reach its tasks: one short error says where to put them."""
    site = S3Site(moto_server)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "hunter2")
    monkeypatch.setitem(spark.sparkContext.environment, "AWS_EC2_METADATA_DISABLED", "true")
    options = {name: value for name, value in moto_server.options.items() if name not in {"key", "secret"}}
    sink = FileSink.for_bulk_format(site.path, ParquetWriterFactory()).with_storage_options(**options).build()
    with pytest.raises(StorageError, match="tasks find none") as raised:
        sink.write(spark.range(10))
    assert raised.value.code == "NO_CREDENTIALS"
    shown = "".join(traceback.format_exception(raised.value))
    assert "hunter2" not in shown
    assert shown.count("NO_CREDENTIALS") == 1
    assert len(str(raised.value)) < 600
