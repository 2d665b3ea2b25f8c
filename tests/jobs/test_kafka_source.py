# ruff: noqa: E501 - job files
"""Messages of Kafka become rows: what is JSON, what is none, and whole jobs against a broker by Spark's source."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from filesink.errors import JobError
from filesink.jobs import Jobs, State, plan
from filesink.jobs.life.session import sentence
from filesink.jobs.model.schema import Schema
from filesink.jobs.plugins.sources.kafka import rows_of
from tests.fetched import fetched
from tests.sinks.kafka.broker import Broker
from tests.sinks.kafka.site import Site as KafkaSite

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("programs") / "kafka_jobs.py"
SCHEMA = Schema.model_validate({"fields": {"id": "bigint", "a`b'": "string", "r": {"x": "int"}}})
GOOD = [
    b'{"id": 1, "a`b\'": "\xc3\xa9"}',
    b' [{"id": 2}, {"id": 3, "r": {"x": 4}}]',
    None,
    b"[]",
    b'{"more": 1}',
]
ROWS = [(1, "é", None), (2, None, None), (3, None, (4,)), (None, None, None)]
BAD = {
    "text": b"no JSON",
    "nothing": b"",
    "null": b"null",
    "number": b"1",
    "type": b'{"id": "x"}',
    "type inside": b'{"id": 1, "r": {"x": "y"}}',
    "too great": b'{"id": 99999999999999999999}',
    "cut off": b'{"id": 1',
    "more behind": b'{"id": 1} {"id": 2}',
    "two": b'{"id": 1}, {"id": 2}',
    "array of numbers": b"[1]",
    "array of null": b'[{"id": 1}, null]',
    "one of an array": b'[{"id": 1}, {"id": "x"}]',
    "no UTF-8": b'{"id": 1, "name": "\xff"}',
}


def messages(spark: SparkSession, *values: bytes | None) -> DataFrame:
    """As Spark's source has them."""
    rows = [(value, "goods", 3, offset) for offset, value in enumerate(values)]
    return spark.createDataFrame(rows, "value BINARY, topic STRING, partition INT, offset BIGINT")


def test_rows(spark: SparkSession) -> None:
    """An object is one, an array has one for each object, a message without value has none."""
    found = rows_of(messages(spark, *GOOD), SCHEMA, "fail")
    assert found.columns == SCHEMA.arrow.names
    assert sorted(map(tuple, found.collect()), key=str) == sorted(ROWS, key=str)
    assert found.count() == len(ROWS)


@pytest.mark.parametrize("value", BAD.values(), ids=BAD)
def test_malformed_messages(spark: SparkSession, value: bytes) -> None:
    """Are errors that say where, without what stands in them, and are not tried again; never rows of nulls."""
    found = rows_of(messages(spark, b"{}", value), SCHEMA, "fail")
    with pytest.raises(Exception, match="MALFORMED_MESSAGE") as raised:
        found.collect()
    text, is_permanent = sentence(raised.value)
    assert text.startswith(
        "the message at offset 1 of partition 3 of topic goods is no JSON object, or has a value"
    )
    assert is_permanent


def test_malformed_messages_are_passed_over(spark: SparkSession) -> None:
    """Whole, if somebody asks for it."""
    found = rows_of(messages(spark, *GOOD, *BAD.values()), SCHEMA, "skip").collect()
    assert sorted(map(tuple, found), key=str) == sorted(ROWS, key=str)


def test_a_message_is_parsed_once(spark: SparkSession) -> None:
    """Spark pulls nothing of it into a filter of its own."""
    found = rows_of(messages(spark, *GOOD), SCHEMA, "fail").where("id > 1 AND `a``b'` <> ''")
    assert found._jdf.queryExecution().optimizedPlan().toString().count("StructField(m,") == 1


def test_text_has_one_column(tmp_path: Path) -> None:
    """A schema beside it would say nothing."""
    file = tmp_path / "job.conf"
    text = "Kafka { bootstrap.servers = h, topic = t, format = text, schema { fields { id = int } } }"
    file.write_text(f"source {{ {text} }}\nsink {{ Console {{ }} }}")
    with pytest.raises(JobError, match=r"text is one column, 'content'"):
        plan(file)


JOB = """
env {{ job.mode = {mode}, checkpoint.interval = 200, job.retry.times = 3, spark.jars = "{jars}", spark.ui.enabled = false }}
source {{
  Kafka {{
    bootstrap.servers = "{servers}", topic = {topic}, start_mode = earliest
    schema {{ fields {{ id = bigint, name = string }} }}
  }}
}}
sink {{ LocalFile {{ path = "{here}/out", file_format_type = json }} }}
"""


class Site:
    """A topic, and a job that reads it in processes of its own, since Spark's source comes with a session."""

    def __init__(self, kafka: Broker, path: Path) -> None:
        self.kafka, self.path = kafka, path
        self.topic = KafkaSite(kafka, path).name
        self.jobs = Jobs(path / "jobs")

    def send(self, *values: str) -> None:
        """Messages, which a reader may have once this returns."""
        producer = Producer({"bootstrap.servers": self.kafka.servers})
        for value in values:
            producer.produce(self.topic, value.encode())
        producer.flush()

    def run(self, mode: str, rows: int) -> Any:
        """To a number of rows in its files, or to its end; what is known of it then."""
        file = self.path / "job.conf"
        jars = ",".join(map(str, spark_jars()))
        given = {"servers": self.kafka.servers, "topic": self.topic, "here": self.path}
        file.write_text(JOB.format(mode=mode, jars=jars, **given))
        ran = subprocess.run(  # noqa: S603 - our own
            [sys.executable, str(PROGRAM), str(file), str(self.path / "jobs"), str(rows)],
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr[-2000:]
        return self.jobs.info("job")

    def ids(self) -> list[int]:
        """What readers see."""
        files = [one for one in (self.path / "out").rglob("*.json") if "_filesink" not in one.parts]
        lines = [
            line for one in files if not one.name.startswith(".") for line in one.read_text().splitlines()
        ]
        return sorted(json.loads(line)["id"] for line in lines)


def spark_jars() -> list[Path]:
    """Spark's source of Kafka with what it needs; Spark brings the rest."""
    goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
    command = [
        "mvn",
        "-q",
        "-B",
        "-f",
        str(ROOT / "benchmarks" / "spark_kafka.xml"),
        goal,
        "-DincludeScope=runtime",
    ]
    home = fetched("spark-kafka-4.2.0", lambda made: [*command, f"-DoutputDirectory={made}"])
    names = ("spark-sql-kafka-*", "spark-token-provider-kafka-*", "kafka-clients-*", "commons-pool2-*")
    return [next(home.glob(name)) for name in names]


@pytest.fixture
def site(kafka: Broker, tmp_path: Path) -> Site:
    """One for each test."""
    return Site(kafka, tmp_path)


def test_a_batch(site: Site) -> None:
    """Has every message that is there, each once."""
    site.send(*(json.dumps({"id": number, "name": "a"}) for number in range(50)), '[{"id": 50}, {"id": 51}]')
    info = site.run("BATCH", 52)
    assert (info.state, info.error) == (State.FINISHED, "")
    assert site.ids() == list(range(52))
    assert info.pipelines[0].done == {"sink-1": 52}


@pytest.mark.nightly
def test_a_stream(site: Site) -> None:
    """Goes on from its savepoint; then a message that is no JSON fails it, at once, and nothing of it is seen."""
    site.send('{"id": 1}', '{"id": 2}')
    assert site.run("STREAMING", 2).state is State.SAVEPOINT_DONE
    site.send('{"id": 3}')
    info = site.run("STREAMING", 3)
    assert info.state is State.SAVEPOINT_DONE
    assert info.pipelines[0].figures.behind == 0
    assert site.ids() == [1, 2, 3]
    site.send('{"id": 4}', "no JSON")
    info = site.run("STREAMING", 4)
    assert info.state is State.FAILED
    assert (
        f"of topic {site.topic} is no JSON object, or has a value that its column cannot have" in info.error
    )
    assert info.pipelines[0].starts == 3
