# ruff: noqa: E501 - job files
"""Plugins whose other end is a server: each in one job, against a real one of the tests' own."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import filesink
from examples.hive_server import HiveServer, hive_server, why_not
from filesink.jobs import State
from filesink.metastore.api import Column, Table, TableName
from filesink.metastore.tables.formats import HIVE_FORMATS
from filesink.storage.open import open_store
from tests.jobs.test_running import Site, parquet
from tests.servers import KEY, SECRET, S3Server, ftp, sftp
from tests.sinks.http.server import serving
from tests.sinks.kafka.broker import Broker
from tests.sinks.kafka.site import Site as KafkaSite
from tests.sinks.postgres.server import TestServer
from tests.sinks.postgres.site import Site as PostgresSite
from tests.storage.hdfs.mini_hdfs import MiniHdfs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FAKE = "FakeSource { schema { fields { id = bigint, name = string } }, rows = [{ fields = [1, a] }, { fields = [2, null] }] }"


@pytest.fixture
def site(spark: SparkSession, tmp_path: Path) -> Site:
    """One for each test."""
    assert spark is not None
    return Site(tmp_path)


def into(site: Site, sink: str, name: str = "job") -> None:
    """Run a job of two rows into a sink, and once more as if its end had not been noted."""
    info = site.run(f"source {{ {FAKE} }}\nsink {{ {sink} }}", name=name)
    assert (info.state, info.error) == (State.FINISHED, "")
    assert info.pipelines[0].done == {"sink-1": 2}


def test_postgres(site: Site, postgres: TestServer) -> None:
    """Rows are in the table, and another job of the same file adds its own."""
    there = PostgresSite(postgres, site.path, table="goods")
    table = f"{there.schema}.made"
    into(site, f'Postgres {{ server = "{there.conninfo}", table = "{table}", on_missing = create }}')
    into(site, f'Postgres {{ server = "{there.conninfo}", table = "{table}" }}', name="again")
    assert sorted(map(str, there.do("SELECT id, name FROM {s}.made"))) == ["(1, 'a')"] * 2 + ["(2, None)"] * 2


def test_kafka(site: Site, kafka: Broker) -> None:
    """Readers of what is committed have each row once, under its key."""
    there = KafkaSite(kafka, site.path)
    into(
        site,
        f'Kafka {{ bootstrap.servers = "{kafka.servers}", topic = {there.name}, partition_key_fields = [id] }}',
    )
    found = {message.key(): json.loads(message.value() or b"") for message in there.read()}
    assert found == {b'{"id":1}': {"id": 1, "name": "a"}, b'{"id":2}': {"id": 2}}


def test_http(site: Site) -> None:
    """The service has each row."""
    with serving() as server:
        into(site, f'Http {{ url = "{server.url}/rows", body = array }}')
        assert sorted(one["id"] for one in server.records()) == [1, 2]


def test_collect(site: Site) -> None:
    """A client reads what was decided."""
    into(site, "Collect { path = HERE/collected }")
    results = filesink.CollectSink(site.path / "collected").results()
    assert sorted(row["id"] for row in results) == [1, 2]


def test_hdfs(site: Site, hdfs_cluster: MiniHdfs) -> None:
    """One job writes, another reads it back."""
    where = f'path = "/{uuid.uuid4().hex}", fs.defaultFS = "hdfs://127.0.0.1:{hdfs_cluster.rpc_port}", file_format_type = json'
    into(site, f"HdfsFile {{ {where} }}")
    schema = "schema { fields { id = bigint, name = string } }"
    info = site.run(
        f"source {{ HdfsFile {{ {where}, {schema} }} }}\nsink {{ LocalFile {{ path = HERE/back, file_format_type = parquet }} }}"
    )
    assert (info.state, info.error) == (State.FINISHED, "")
    assert [row["id"] for row in parquet(site.path / "back")] == [1, 2]


@pytest.mark.parametrize("connector", ["OssFile", "OssJindoFile", "ObsFile", "CosFile", "S3File"])
def test_what_speaks_s3(
    site: Site, moto_server: S3Server, monkeypatch: pytest.MonkeyPatch, connector: str
) -> None:
    """One job writes, another reads it back; keys come from the environment."""
    monkeypatch.setenv("FILESINK_TEST_KEY", KEY)
    monkeypatch.setenv("FILESINK_TEST_SECRET", SECRET)
    bucket, address = moto_server.new_bucket(), f"http://127.0.0.1:{moto_server.port}"
    keys = "region = ap, secret_id" if connector == "CosFile" else "access_key"
    keys += " = ${env:FILESINK_TEST_KEY}, "
    keys += "secret_key" if connector in {"CosFile", "S3File"} else "access_secret"
    keys += " = ${env:FILESINK_TEST_SECRET}"
    endpoint = "fs.s3a.endpoint" if connector == "S3File" else "endpoint"
    where = f'bucket = "{bucket}", path = "/a/b", {endpoint} = "{address}", {keys}, file_format_type = json'
    into(site, f"{connector} {{ {where} }}")
    names = [one.name for one in open_store(f"s3://{bucket}/a/b", moto_server.options).list("")]
    assert [name for name in names if name.endswith(".json")]
    schema = "schema { fields { id = bigint, name = string } }"
    info = site.run(
        f"source {{ {connector} {{ {where}, {schema} }} }}\nsink {{ LocalFile {{ path = HERE/back, file_format_type = parquet }} }}"
    )
    assert (info.state, info.error) == (State.FINISHED, "")
    assert [row["id"] for row in parquet(site.path / "back")] == [1, 2]


@pytest.mark.parametrize(("connector", "server"), [("FtpFile", ftp), ("SftpFile", sftp)])
def test_servers_of_files(
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
    connector: str,
    server: Callable[[Path, Path], AbstractContextManager[int]],
) -> None:
    """Are read, below directories of a partition; who has not the password is told so in a sentence."""
    monkeypatch.setenv("FILESINK_TEST_SECRET", SECRET)
    directory = site.path / "shown" / "a b" / "day=1"
    directory.mkdir(parents=True)
    (directory / "x.json").write_text('{"id": 1}\n{"id": 2}\n')
    made = 'path = "/a b", file_format_type = json, schema { fields { id = bigint } }'
    sink = "LocalFile { path = HERE/back, file_format_type = parquet }"
    with server(site.path / "shown", site.path) as port:
        login = f"host = 127.0.0.1, port = {port}, user = {KEY}, password = ${{env:FILESINK_TEST_SECRET}}"
        info = site.run(f"source {{ {connector} {{ {login}, {made} }} }}\nsink {{ {sink} }}")
        assert (info.state, info.error) == (State.FINISHED, "")
        monkeypatch.setenv("FILESINK_TEST_SECRET", "wrong")
        info = site.run(f"source {{ {connector} {{ {login}, {made} }} }}\nsink {{ {sink} }}", name="wrong")
        assert info.state is State.FAILED
        assert "cannot be opened" in info.error
    assert sorted((row["id"], row["day"]) for row in parquet(site.path / "back")) == [(1, "1"), (2, "1")]


def test_jdbc(site: Site, spark: SparkSession) -> None:
    """A table of a database, by pieces, and a query: Derby, which comes with Spark."""
    url = f"jdbc:derby:memory:{uuid.uuid4().hex}"
    frame = spark.range(10).selectExpr("id", "cast(id as string) as name")
    frame.write.format("jdbc").options(url=f"{url};create=true", dbtable="goods").save()
    info = site.run(
        f"""
        source {{
          Jdbc {{ plugin_output = whole, url = "{url}", table_path = goods, partition_column = id,
            partition_lower_bound = 0, partition_upper_bound = 10, partition_num = 3 }}
          Jdbc {{ plugin_output = some, url = "{url}", query = "select * from goods" }}
        }}
        sink {{
          LocalFile {{ plugin_input = whole, path = HERE/whole, file_format_type = parquet }}
          LocalFile {{ plugin_input = some, path = HERE/some, file_format_type = parquet }}
        }}
        """  # noqa: S608 - a job file
    )
    assert (info.state, info.error) == (State.FINISHED, "")
    assert [len(parquet(site.path / name)) for name in ("whole", "some")] == [10, 10]


@pytest.fixture(scope="module")
def hive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveServer]:
    """A metastore with its database in memory."""
    if reason := why_not():
        pytest.skip(f"no Hive metastore: {reason}")
    with hive_server(tmp_path_factory.mktemp("hive")) as server:
        yield server


def test_hive(site: Site, hive: HiveServer) -> None:
    """Rows are in the table's files, and their partitions in the metastore."""
    metastore = filesink.HiveMetastore(hive.uri)
    name = TableName(database="default", table=f"t_{uuid.uuid4().hex[:12]}")
    columns = (Column(name="id", type="bigint"),)
    keys = (Column(name="name", type="string"),)
    location = hive.warehouse / name.table
    location.mkdir()
    table = Table(
        name=name,
        columns=columns,
        partition_keys=keys,
        location=f"file:{location}",
        format=HIVE_FORMATS["parquet"],
    )
    metastore.create_table(table)
    into(site, f'Hive {{ table_name = "{name}", metastore_uri = "{hive.uri}" }}')
    assert [row["id"] for row in parquet(location)] == [1, 2]
    assert len(metastore.get_partitions(table, [("a",), ("__HIVE_DEFAULT_PARTITION__",)])) == 2
