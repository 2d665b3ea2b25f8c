"""Where the cluster is and how it is written to: values that users give. Pure.

Rules: options of the client may be secrets, so none of their values is in a ``repr`` or a message.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from filesink.arguments import instance_of
from filesink.durations import Duration, parse_duration_ms
from filesink.errors import ConfigError
from formats.arguments import is_text, kind_of
from formats.errors import FormatError
from formats.sizes import parse_size

ClientValue = str | int | float | bool | Callable[..., Any]

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
#: As librdkafka takes one, IPv6 without brackets too; but a port that is no number, which it takes for 0.
_SERVER = re.compile(
    r"(?:\w+://)?(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?"
    r"|[0-9A-Fa-f]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*",
    re.ASCII,
)
_PORTS = range(1, 1 << 16)
_LONGEST_TIMEOUT = 2**31 - 1  # ms; of the client
_SENDERS = range(1, 65)
#: Options that decide whether rows come once, or that only this sink can know.
_OWN = frozenset(
    {
        *("bootstrap.servers", "metadata.broker.list", "transactional.id", "transaction.timeout.ms"),
        *("enable.idempotence", "acks", "request.required.acks", "max.in.flight", "retries"),
        *("max.in.flight.requests.per.connection", "message.send.max.retries", "enable.gapless.guarantee"),
        *("message.timeout.ms", "delivery.timeout.ms", "message.max.bytes", "batch.size"),
        *("delivery.report.only.error", "dr_cb", "dr_msg_cb", "on_delivery", "error_cb", "logger"),
        *("allow.auto.create.topics", "isolation.level", "group.id", "group.instance.id"),
        *("enable.auto.commit", "enable.auto.offset.store", "enable.partition.eof", "auto.offset.reset"),
    }
)
#: Options whose value is a function that the client calls itself.
_CALLED_BY_CLIENT = frozenset({"oauth_cb", "stats_cb", "throttle_cb"})


@dataclass(frozen=True, slots=True)
class KafkaCluster:
    """A cluster, how to get in, and how rows are sent there.

    Args:
        bootstrap_servers: ``"host:port"``, several with commas between.
        client: options of librdkafka, such as ``{"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN",
            "sasl.username": "loader", "sasl.password": read_it, "compression.type": "zstd"}``. A value may be
            a function without arguments, which is called for each connection. What decides whether rows come
            once, such as ``acks`` and ``transactional.id``, is not among them.
        transaction_timeout: how long one transaction may take; the cluster ends it after that, and it is
            tried again. At most the brokers' ``transaction.max.timeout.ms``, 15 minutes by default.
        transaction_bytes: rows that are sent in one transaction, as they are in memory; an epoch with no more
            becomes visible at once. Files of tasks are never divided, and none is much larger than 64 MiB.
        marker_topic: the compacted topic in which each transaction notes what it has sent; created if it
            is not there. Sinks may share it.
        senders: 1 to 64; with 1 only the driver connects. With more, a Spark job of up to so many tasks sends
            what is large, each task under a transactional id of its own. Tasks then need confluent-kafka, a
            way to the brokers, and get ``client``; an epoch becomes visible share by share.

    Raises:
        ConfigError: ``BAD_VALUE``; ``CONFLICT``, an option of the client that this sink sets itself.
    """

    bootstrap_servers: str
    client: Mapping[str, ClientValue] = field(default_factory=dict, repr=False, kw_only=True)
    transaction_timeout: Duration = field(default="5 min", kw_only=True)
    transaction_bytes: int | str = field(default="256MiB", kw_only=True)
    marker_topic: str = field(default="filesink-markers", kw_only=True)
    senders: int = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        servers: str = instance_of(self.bootstrap_servers, str, name="bootstrap_servers")
        if not all(_is_server(one.strip()) for one in servers.split(",")):
            raise _bad_value(
                "bootstrap_servers must be like 'host:9092,other:9092', with ports from 1 to 65535, without "
                "user or password"
            )
        _check_client(self.client)
        if self.timeout_ms() > _LONGEST_TIMEOUT:
            raise _bad_value("transaction_timeout must be shorter than 24 days")
        self.most_bytes()
        check_topic(self.marker_topic, name="marker_topic")
        given: object = self.senders
        if type(given) is not int or given not in _SENDERS:
            raise _bad_value(f"senders must be a number from 1 to {_SENDERS[-1]}, got {given!r}")

    @staticmethod
    def at(cluster: str | KafkaCluster) -> KafkaCluster:
        """What a user has given as a cluster: servers, or one of these."""
        return cluster if isinstance(cluster, KafkaCluster) else KafkaCluster(cluster)

    def timeout_ms(self) -> int:
        """``transaction_timeout`` in milliseconds."""
        return parse_duration_ms(self.transaction_timeout, name="transaction_timeout", least=1000)

    def most_bytes(self) -> int:
        """``transaction_bytes`` as a number."""
        try:
            return parse_size(self.transaction_bytes, name="transaction_bytes")
        except FormatError as error:
            raise _bad_value(str(error)) from None

    def options(self) -> dict[str, Any]:
        """``client`` with the values of its functions, for one connection.

        Raises:
            ConfigError: ``PASSWORD``; a function failed.
        """
        return {name: _value(name, given) for name, given in self.client.items()}


def check_topic(topic: str, *, name: str = "topic") -> str:
    """``topic`` if a topic can have that name."""
    if not is_topic(instance_of(topic, str, name=name)):
        raise _bad_value(f"{name} must be 1 to 249 letters, digits, '.', '_' or '-'")
    return topic


def is_topic(name: str) -> bool:
    """Whether a topic can have this name."""
    return bool(_TOPIC.fullmatch(name)) and name not in {".", ".."}


def _is_server(text: str) -> bool:
    found = _SERVER.fullmatch(text)
    return found is not None and (found["port"] is None or int(found["port"]) in _PORTS)


def _check_client(client: Mapping[str, ClientValue]) -> None:
    for name, value in instance_of(client, Mapping, name="client").items():
        if not is_text(name):
            raise _bad_value("client must map names of options of librdkafka to values")
        if name in _OWN:
            raise ConfigError(
                f"client option {name!r} is set by this sink itself: leave it out", code="CONFLICT"
            )
        given: object = value
        if isinstance(given, type) or not (
            is_text(given) or isinstance(given, int | float) or callable(given)
        ):
            raise _bad_value(
                f"client option {name!r} must be text, a number or a function, got {kind_of(given)}"
            )


def _value(name: str, given: ClientValue) -> object:
    if not callable(given) or name in _CALLED_BY_CLIENT:
        return given
    try:
        return given()
    except Exception as error:  # noqa: BLE001 - its text may hold what it was about to return
        raise ConfigError(
            f"the function that was given as client option {name!r} failed ({type(error).__name__}); its "
            "text is not shown, since it may hold a secret. Correct the function",
            code="PASSWORD",
        ) from None


def _bad_value(message: str) -> ConfigError:
    return ConfigError(message, code="BAD_VALUE")
