"""Where a cluster is and how to get in: what is refused, and what is never shown."""

from __future__ import annotations

import os
import pickle
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark import cloudpickle

from filesink import ConfigError, KafkaCluster, KafkaSink, StorageError, StoreLedger
from filesink.naming import HiddenName
from filesink.sinks.kafka.cluster.topics import look_for
from filesink.system import SystemClock
from tests.fakes import SettableClock
from tests.servers import free_port

SECRET = "hunter2"  # noqa: S105 - of nobody
#: librdkafka takes them, and waits in vain at port 0 of them, or at 9092.
NO_SERVERS = (
    "k:port",
    "k:",
    "k:0",
    "k:65536",
    "k:9092/x",
    "[::1]:port",
    "[::1",
    "::1:port",
    "",
    "SSL://k:port",
)


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("bootstrap_servers", "", "BAD_VALUE"),
        ("bootstrap_servers", f"me:{SECRET}@host:9092", "BAD_VALUE"),
        *(("bootstrap_servers", f"host:9092,{one}", "BAD_VALUE") for one in NO_SERVERS),
        ("client", {"acks": 1}, "CONFLICT"),
        ("client", {"transactional.id": "x"}, "CONFLICT"),
        ("client", {"enable.idempotence": False}, "CONFLICT"),
        ("client", {"isolation.level": "read_uncommitted"}, "CONFLICT"),
        ("client", {"sasl.password": [SECRET]}, "BAD_VALUE"),
        ("client", {1: SECRET}, "BAD_VALUE"),
        ("transaction_timeout", "5", "BAD_VALUE"),
        ("transaction_timeout", "10 ms", "BAD_VALUE"),
        ("transaction_timeout", "30 days", "BAD_VALUE"),
        ("transaction_bytes", 0, "BAD_VALUE"),
        ("transaction_bytes", "1 furlong", "BAD_VALUE"),
        ("marker_topic", "a/b", "BAD_VALUE"),
        ("marker_topic", "..", "BAD_VALUE"),
    ],
)
def test_what_cannot_be(name: str, value: Any, code: str) -> None:
    """It is said at once, and a secret is not repeated."""
    given: dict[str, Any] = {"bootstrap_servers": "host:9092", name: value}
    with pytest.raises(ConfigError) as error:
        KafkaCluster(**given)
    assert error.value.code == code
    assert SECRET not in str(error.value)


@pytest.mark.parametrize(
    "servers",
    [
        *("host", "host:9092", "a:1,b:2", "a:1, b:2", "[::1]:9092", "SASL_SSL://a:1", "host:65535"),
        *("kafka-0.kafka_x.svc:1", "::1", "[::1]", "SSL://[fe80::1]:9093"),
    ],
)
def test_servers(servers: str) -> None:
    """As librdkafka takes them."""
    assert KafkaCluster(servers).bootstrap_servers == servers


def test_a_broker_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says where it was looked for, and what to look at; no option of the client."""
    from filesink.sinks.kafka.cluster import client

    monkeypatch.setattr(client, "TIMEOUT", 0.5)
    monkeypatch.setattr("filesink.sinks.kafka.cluster.topics.TIMEOUT", 0.5)
    servers = f"127.0.0.1:{free_port()}"
    cluster = KafkaCluster(servers, client={"sasl.password": SECRET, "sasl.username": SECRET})
    with pytest.raises(StorageError, match=f"at {servers}.*Is it running") as raised:
        look_for(client.Connection(cluster, SettableClock()), ["orders"])
    assert (raised.value.code, raised.value.is_permanent) == ("KAFKA_AWAY", False)
    assert SECRET not in raised.value.message


def test_a_secret_is_not_shown_and_not_sent() -> None:
    """Not in a ``repr``, and not to the tasks, which never connect."""
    cluster = KafkaCluster("host:9092", client={"sasl.password": SECRET, "ssl.key.password": lambda: SECRET})
    sink = KafkaSink(cluster, "t", ledger="ledger")
    assert SECRET not in repr(cluster) + repr(sink) + repr(sink._sink)
    sent = cloudpickle.dumps(sink._sink)
    assert SECRET.encode() not in sent
    assert pickle.loads(sent).ledger == StoreLedger("ledger")  # noqa: S301 - our own bytes


def test_functions_are_called_for_each_connection() -> None:
    """But for those that the client calls itself."""
    passwords = iter(["first", "second"])

    def token(_: str) -> tuple[str, float]:
        return "token", 0.0

    cluster = KafkaCluster("h", client={"sasl.password": lambda: next(passwords), "oauth_cb": token})
    assert cluster.options() == {"sasl.password": "first", "oauth_cb": token}
    assert cluster.options()["sasl.password"] == "second"


def test_a_function_that_fails_says_no_more_than_its_class() -> None:
    """Its message may hold what it was about to return."""

    def read() -> str:
        raise ValueError(SECRET)

    with pytest.raises(ConfigError) as error:
        KafkaCluster("h", client={"sasl.password": read}).options()
    assert error.value.code == "PASSWORD"
    assert SECRET not in str(error.value)
    assert error.value.__cause__ is None


def test_sinks_with_one_uid_for_two_topics_have_two_names() -> None:
    """Else each would fence off the other."""
    from filesink.sinks.kafka.committables import transactional_id

    assert transactional_id("uid-u", "a") != transactional_id("uid-u", "b")
    assert transactional_id("uid-u", "a").startswith("filesink-uid-u-")


def test_a_clock_that_is_ahead_sweeps_no_file_that_is_young(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch write is about to decide what it has staged a minute ago; the store dates its files."""
    sink = KafkaSink("host:9092", "orders", ledger=str(tmp_path))
    assert sink.sweep("30 min") == []
    staged = tmp_path / "staged"
    for directory in (staged, tmp_path / "_filesink"):
        directory.mkdir()
    names = [str(HiddenName(target="rows-0", tag="0" * 8, slot=0, attempt=str(uuid4()))) for _ in range(2)]
    for name in names:
        (staged / name).write_bytes(b"rows")
    now = time.time()
    os.utime(staged / names[0], (now - 60, now - 60))
    os.utime(staged / names[1], (now - 3600, now - 3600))
    monkeypatch.setattr(SystemClock, "now_ms", lambda _self: int(now + 3600) * 1000)
    assert sink.sweep("30 min") == [f"staged/{names[1]}"]
