"""What is found out before any data is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from filesink import ConfigError, FilesinkError, KafkaSink
from filesink.sinks.kafka import markers
from filesink.sinks.kafka.cluster import topics
from filesink.sinks.kafka.cluster.client import Connection
from tests.servers import free_port
from tests.sinks.kafka.broker import PASSWORD, USER
from tests.sinks.kafka.site import SCHEMA, Site, rows

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_markers")]
#: What the docs say that the user needs: kind and name of a resource, and operations on it.
GRANTS = (
    (ResourceType.TOPIC, "topic", ("WRITE", "DESCRIBE_CONFIGS")),
    (ResourceType.TOPIC, "markers", ("READ", "WRITE", "DESCRIBE_CONFIGS")),
    (ResourceType.TRANSACTIONAL_ID, "filesink-", ("WRITE",)),
)


def refused(site: Site, **options: Any) -> FilesinkError:
    """Why the sink does not start."""
    with pytest.raises(FilesinkError) as error:
        site.tiers(**options).prepare(SCHEMA)
    return error.value


def test_a_topic_that_is_not_there(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not created by the way."""
    monkeypatch.setattr(topics, "_LOOKS", 0)
    error = refused(site, topic="nobody-made-this")
    assert (type(error), error.code) == (ConfigError, "KAFKA_TOPIC")
    assert "nobody-made-this" not in site.admin.list_topics().topics


@pytest.mark.parametrize("who_names_it", ["the sink", "a row"])
def test_a_topic_that_is_not_there_yet(
    site: Site, who_names_it: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that has just started does not know it for a moment: that ends no query."""
    late = f"{site.name}-late"
    batch = pa.RecordBatch.from_pydict({"value": ["v"], "topic": [late]})
    look = topics._look

    def looking(admin: Any, names: Any) -> Any:
        found = look(admin, names)
        if late in names and late not in found:
            site.create(late)
        return found

    monkeypatch.setattr(topics, "_look", looking)
    site.run(0, batch, topic=late if who_names_it == "the sink" else "")
    assert [message.value() for message in site.read(late)] == [b"v"]


def test_the_topic_of_markers_is_made(site: Site) -> None:
    """So that it keeps the newest of each; by whoever comes first."""
    for _ in range(2):
        site.tiers().prepare(SCHEMA)
    assert len(site.admin.list_topics(site.markers).topics[site.markers].partitions) == 16


@pytest.mark.parametrize(
    ("partitions", "config"),
    [(16, {}), (16, {"cleanup_policy": "compact,delete"}), (15, {"cleanup_policy": "compact"})],
)
def test_a_topic_that_would_forget(site: Site, partitions: int, config: dict[str, str]) -> None:
    """Rows would come twice, some day."""
    site.create(site.markers, partitions, **config)
    assert refused(site).code == "KAFKA_MARKERS"


def test_transactions_longer_than_the_brokers_allow(site: Site) -> None:
    """They would never end well."""
    error = refused(site, transaction_timeout="16 min")
    assert (type(error), error.code) == (ConfigError, "KAFKA_TIMEOUT")


# The client has another name for the second.
@pytest.mark.parametrize("option", ["sasl.pasword", "linger.ms", "security.protocol"])
def test_options_that_are_none(site: Site, option: str) -> None:
    """They are named as the user has, without their values, though the client repeats those."""
    error = refused(site, client={option: "hunter2"})
    assert (type(error), error.code) == (ConfigError, "KAFKA_OPTION")
    assert repr(option) in error.message
    assert "hunter2" not in str(error)
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None


def test_nobody_answers(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said after a while, and may pass."""
    monkeypatch.setattr("filesink.retry._LONGEST_MS", 0)
    monkeypatch.setattr(topics, "TIMEOUT", 1.0)
    error = refused(site, bootstrap_servers=f"127.0.0.1:{free_port()}")
    assert (error.code, error.is_permanent) == ("KAFKA_AWAY", False)


def loader(site: Site, **options: Any) -> dict[str, Any]:
    """How the user gets in who has to be granted everything."""
    client = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": USER,
        "sasl.password": PASSWORD,
    }
    return {"bootstrap_servers": site.broker.sasl_servers, "client": client | options}


def test_a_wrong_password(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is said to be one, and is not repeated."""
    monkeypatch.setattr(topics, "TIMEOUT", 3.0)
    error = refused(site, **loader(site, **{"sasl.password": "hunter2"}))
    assert (error.code, error.is_permanent) == ("KAFKA_LOGIN", True)
    assert "hunter2" not in str(error)


@pytest.fixture
def grant(site: Site) -> Iterator[Callable[..., None]]:
    """Lets the user do this, and no more, while the test runs."""
    yield partial(_grant, site)
    everything = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    for future in site.admin.delete_acls([everything]).values():
        future.result()


def _grant(site: Site, *grants: tuple[ResourceType, str, tuple[str, ...]]) -> None:
    names = {"topic": site.name, "markers": site.markers}
    acls = [
        AclBinding(
            kind,
            names.get(name, name),
            ResourcePatternType.LITERAL if name in names else ResourcePatternType.PREFIXED,
            f"User:{USER}",
            "*",
            AclOperation[operation],
            AclPermissionType.ALLOW,
        )
        for kind, name, operations in grants
        for operation in operations
    ]
    for future in site.admin.create_acls(acls).values():
        future.result()


def test_a_password_that_does_for_one_connection_only(site: Site, grant: Callable[..., None]) -> None:
    """Who reads markers has its own, and says why it does not get in."""
    grant(*GRANTS)
    site.tiers().prepare(SCHEMA)
    site.run(0, rows(1))  # else there would be nothing to read
    passwords = iter([PASSWORD])
    cluster = site.cluster(**loader(site, **{"sasl.password": lambda: next(passwords, "hunter2")}))
    (name,) = {message.key().decode() for message in site.read(site.markers)}
    with pytest.raises(FilesinkError) as error:
        markers.newest(Connection(cluster, site.clock), site.markers, name)
    assert (error.value.code, error.value.is_permanent) == ("KAFKA_LOGIN", True)
    assert "hunter2" not in str(error.value)


def test_rights_that_are_missing_and_those_that_will_do(
    site: Site, grant: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is told before a task runs; with what the docs say the user writes."""
    site.tiers().prepare(SCHEMA)
    monkeypatch.setattr(topics, "_LOOKS", 0)
    assert refused(site, **loader(site)).code == "KAFKA_TOPIC"  # which it may not even see
    for number, one in enumerate(GRANTS):
        assert refused(site, **loader(site)).code in {"KAFKA_TOPIC", "KAFKA_RIGHTS", "KAFKA_MARKERS"}
        grant(one)
        assert number < len(GRANTS)
    site.run(0, rows(1), **loader(site))
    site.run(1, rows(2), **loader(site))
    assert site.ids_there() == [1, 2]


def test_no_secret_is_written(site: Site, grant: Callable[..., None], tmp_path: Path) -> None:
    """Neither into the ledger nor beside it."""
    grant(*GRANTS)
    site.tiers().prepare(SCHEMA)
    site.run(0, rows(1), **loader(site))
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert PASSWORD.encode() not in written


def test_the_sink_says_where_it_writes(site: Site) -> None:
    """For logs and Spark's jobs."""
    sink = KafkaSink(site.cluster(), site.name, ledger=site.directory / "ledger")
    assert repr(sink) == f"<KafkaSink {site.name}>"
