"""Sinks on S3 without options of their own: Spark's settings, and what tasks do not have."""

from __future__ import annotations

import logging
import pickle
import traceback
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

import filesink
from filesink import BucketAssigner, FileSink, FileSource
from filesink.errors import ConfigError, StorageError
from filesink.spark.input.s3a import SessionOptions, Settings, copy_of, s3a_options, together
from formats import ParquetWriterFactory
from tests.servers import S3Server
from tests.storage.s3.s3_site import S3Site

FLAT = BucketAssigner.base_path_bucket_assigner()
REGION = {"client_kwargs": {"region_name": "eu-central-1"}}
SIMPLE = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
BARE = "spark.hadoop.fs.s3a.endpoint, which has no scheme"
ROLE = "org.apache.hadoop.fs.s3a.auth.AssumedRoleCredentialProvider"


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({}, {}),
        (
            {"access.key": "k", "secret.key": "s", "session.token": "t"},
            {"key": "k", "secret": "s", "token": "t"},
        ),
        (
            {"endpoint": "https://host:9000"},
            {"endpoint_url": "https://host:9000", "endpoint_from": "spark.hadoop.fs.s3a.endpoint"},
        ),
        (
            {"bucket.b.endpoint": "http://host:9000", "endpoint": "https://other"},
            {"endpoint_url": "http://host:9000", "endpoint_from": "spark.hadoop.fs.s3a.bucket.b.endpoint"},
        ),
        ({"endpoint": "host:9000"}, {"endpoint_url": "https://host:9000", "endpoint_from": BARE}),
        (
            {"endpoint": "host:9000", "connection.ssl.enabled": "false"},
            {"endpoint_url": "http://host:9000", "use_ssl": False, "endpoint_from": BARE},
        ),
        ({"endpoint": "s3.amazonaws.com"}, {}),
        (
            {"endpoint": "s3.eu-central-1.amazonaws.com"},
            {"endpoint_url": "https://s3.eu-central-1.amazonaws.com", **REGION, "endpoint_from": BARE},
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
    assert s3a_options(of(settings), "b") == options


def of(settings: dict[str, str]) -> Settings:
    """Settings by their whole names."""
    return lambda name: settings.get(name.removeprefix("fs.s3a."), "")


@pytest.mark.parametrize("name", ["path.style.access", "connection.ssl.enabled", "requester.pays.enabled"])
@pytest.mark.parametrize("prefix", ["", "bucket.b."])
def test_a_setting_that_is_neither_true_nor_false_is_named(name: str, prefix: str) -> None:
    """Hadoop takes anything else for the default, and the user wonders."""
    with pytest.raises(ConfigError, match=rf"spark\.hadoop\.fs\.s3a\.{prefix}{name} must be") as raised:
        s3a_options(of({f"{prefix}{name}": "maybe"}), "b")
    assert raised.value.code == "BAD_VALUE"


SESSION = {
    "key": "k",
    "secret": "s",
    "token": "t",
    "endpoint_url": "http://a",
    "endpoint_from": "x",
    **REGION,
}


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, SESSION),
        ({"part_size": 1}, {**SESSION, "part_size": 1}),
        ({"profile": "p"}, {"profile": "p", "endpoint_url": "http://a", "endpoint_from": "x", **REGION}),
        (
            {"username": "k2", "secret": "s2"},
            {"username": "k2", "secret": "s2", "endpoint_url": "http://a", "endpoint_from": "x", **REGION},
        ),
        (
            {"endpoint_url": "http://b"},
            {"key": "k", "secret": "s", "token": "t", "endpoint_url": "http://b", **REGION},
        ),
        (
            {"client_kwargs": {"verify": False}},
            {**SESSION, "client_kwargs": {"region_name": "eu-central-1", "verify": False}},
        ),
        ({"client_kwargs": {"region_name": "r"}}, {**SESSION, "client_kwargs": {"region_name": "r"}}),
    ],
)
def test_options_of_ones_own_come_first(own: dict[str, Any], expected: dict[str, Any]) -> None:
    """Each by itself; credentials are never mixed of two places, and no setting is blamed for an address."""
    assert together(SESSION, own) == expected


def test_nested_options_are_taken_together() -> None:
    """A timeout of one's own does not undo the addressing that the session needs."""
    session = {"config_kwargs": {"s3": {"addressing_style": "path"}}}
    own = {"config_kwargs": {"connect_timeout": 1, "s3": {"payload_signing_enabled": True}}}
    assert together(session, own)["config_kwargs"] == {
        "connect_timeout": 1,
        "s3": {"addressing_style": "path", "payload_signing_enabled": True},
    }


@pytest.mark.parametrize(
    "settings",
    [
        {"aws.credentials.provider": "com.example.OurProvider"},
        {"encryption.algorithm": "SSE-C", "encryption.key": "hunter2"},
    ],
)
def test_what_is_not_taken_over_is_said(settings: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    """By its name; a value that may be a secret is not shown."""
    s3a_options(of(settings), "b")
    assert "pass storage option" in caplog.text
    assert "hunter2" not in caplog.text


@pytest.mark.spark
def test_what_hadoop_comes_with_is_no_setting(spark: SparkSession, settings: dict[str, str]) -> None:
    """The data source takes along what somebody has set, of single buckets as well, and nothing else."""
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set("fs.s3a.bucket.a.b.path.style.access", "maybe")  # told to whoever uses that bucket
    try:
        found = copy_of(spark)
    finally:
        conf.unset("fs.s3a.bucket.a.b.path.style.access")
    assert found.pop("fs.s3a.bucket.a.b.path.style.access") == "maybe"
    assert found == settings
    for name in settings:
        conf.unset(name)
    assert copy_of(spark) == {}


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
@pytest.mark.usefixtures("settings")
def test_every_door_goes_by_the_settings(spark: SparkSession, moto_server: S3Server) -> None:
    """Also one with an option of its own, ``filesink.open``, and the data source, which has no session."""
    site = S3Site(moto_server)
    builder = FileSink.for_bulk_format(site.path, ParquetWriterFactory()).with_bucket_assigner(FLAT)
    builder.with_storage_options(part_size=6 << 20).build().write(spark.range(10))
    filesink.register(spark)
    spark.range(10, 20).write.format("filesink").mode("append").save(site.path)
    assert filesink.open(site.path).snapshot().rows == 20
    assert filesink.open(site.path, {"max_concurrency": 2}).snapshot().rows == 20
    source = FileSource.for_bulk_file_format(ParquetWriterFactory(), site.path)
    assert source.with_storage_options(part_size=6 << 20).build().read(spark).count() == 20
    assert spark.read.format("filesink").load(site.path).count() == 20


@pytest.mark.spark
def test_an_address_that_does_not_answer_is_named(spark: SparkSession, settings: dict[str, str]) -> None:
    """With the setting that it came from: of ten places it may be in, one is to be looked at."""
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set("fs.s3a.endpoint", "http://127.0.0.1:9")
    sink = FileSink.for_bulk_format("s3a://lake/out", ParquetWriterFactory())
    with pytest.raises(
        StorageError, match=r"http://127\.0\.0\.1:9, which came from spark\.hadoop\.fs\.s3a\.endp"
    ) as raised:
        sink.build().write(spark.range(1))
    assert raised.value.code == "UNAVAILABLE"
    assert settings["fs.s3a.secret.key"] not in str(raised.value)
    own = sink.with_storage_options(endpoint_url="http://127.0.0.1:10").build()
    with pytest.raises(StorageError, match=r"http://127\.0\.0\.1:10, which came from storage options"):
        own.write(spark.range(1))
    conf.set("fs.s3a.access.key", "")
    with pytest.raises(ConfigError, match=r"only 'secret' is set.*fs\.s3a\.access\.key") as half:
        sink.build().write(spark.range(1))
    assert half.value.code == "CREDENTIALS"


@pytest.mark.spark
def test_settings_of_one_bucket_come_first(
    spark: SparkSession, settings: dict[str, str], moto_server: S3Server
) -> None:
    """As S3A has it; options of the sink's own come before them."""
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
