"""What the errors of Kafka mean: our codes, and whether trying again can help. By the client's own codes.

Rules: a broker's sentence is repeated only where it is about connections. No error of the client is chained
to ours, since its text may hold the value of an option.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Protocol

from confluent_kafka import KafkaError, KafkaException

from filesink.errors import ConcurrentDriverError, ConfigError, FilesinkError, StorageError

_MOST = 200  # characters of a sentence
_RIGHTS = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
_LOGIN = frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._SSL})
_NO_TOPIC = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC})
_FENCED = frozenset({KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH})
#: Nobody answers: of other errors the cluster is the author.
_UNREACHED = frozenset(
    {
        *(KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE),
        KafkaError._TIMED_OUT_QUEUE,
    }
)
#: What a topic says to rows that it did not take, and will not take as it is.
_REFUSED = frozenset(
    {
        *(KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG, KafkaError.INVALID_TIMESTAMP),
        *(KafkaError.RECORD_LIST_TOO_LARGE, KafkaError.INVALID_RECORD, KafkaError._UNKNOWN_PARTITION),
        *(KafkaError.POLICY_VIOLATION, KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        KafkaError.UNSUPPORTED_VERSION,
    }
)
_OPTIONS = frozenset({KafkaError._INVALID_ARG, KafkaError._CONFLICT, KafkaError._NOT_IMPLEMENTED})


@dataclass(slots=True)
class Heard:
    """What a connection has said besides: the client only tells that it got no answer.

    Attributes:
        servers: where to, as the user has given it: no secret, see ``KafkaCluster``.
        refusal: why there was no way in, if that was it.
    """

    servers: str = ""
    refusal: KafkaError | None = field(default=None)

    def __call__(self, error: KafkaError) -> None:
        """Called by the client, but only while it is polled."""
        if error.code() in _LOGIN:
            self.refusal = error

    def listen(self, client: Client) -> None:
        """Let ``client`` say what it has met since it was polled last."""
        with suppress(KafkaException):  # a fatal one, which whoever listens has met already
            client.poll(0)

    def taken(self) -> KafkaError | None:
        """The refusal, told once: a later error has its own reason."""
        refusal, self.refusal = self.refusal, None
        return refusal


class Client(Protocol):
    """A producer or an administrator of confluent-kafka."""

    def poll(self, timeout: float = ..., /) -> int:
        """Call the functions that wait to be called."""


@contextmanager
def answering(doing: str, heard: Heard, client: Client) -> Iterator[None]:
    """Raise what the client raises in the block as an error of ours.

    Args:
        doing: what was tried, for the message.
        heard: of the connection.
        client: is asked in the block.
    """
    try:
        yield
    except KafkaException as error:
        heard.listen(client)
        ours = meaning(error.args[0], doing, heard)
        raise ours from None


def meaning(error: KafkaError, doing: str, heard: Heard | None = None) -> FilesinkError:
    """The error of ours for ``error``; ``is_permanent`` tells whether trying again can help."""
    error = (heard and heard.taken()) or error
    code, about = error.code(), f"Kafka could not {doing}: {error.name()}"
    if code in _FENCED:
        return ConcurrentDriverError(
            f"{about}. Another driver has gone on with this sink, and sends what this one has not. Stop one "
            "of them",
            code="KAFKA_FENCED",
        )
    if code in _LOGIN:
        said = f"no way into Kafka, to {doing}: {sentence(error)}"
        return StorageError(f"{said}. Check user, password and certificates", code="KAFKA_LOGIN")
    if code in _OPTIONS:
        return ConfigError(
            f"{about}: an option in client is none of librdkafka's, or cannot have its value",
            code="KAFKA_OPTION",
        )
    if code == KafkaError.INVALID_TRANSACTION_TIMEOUT:
        return ConfigError(
            f"{about}: the brokers end transactions sooner. Raise their transaction.max.timeout.ms, or give "
            "a shorter transaction_timeout",
            code="KAFKA_TIMEOUT",
        )
    if code in _UNREACHED and heard is not None and heard.servers:
        return StorageError(
            f"{about} at {heard.servers} ({sentence(error)}). Is it running, and does it let this host in? "
            "Trying again may help; nothing was lost",
            code="KAFKA_AWAY",
        )
    return _of_cluster(error, about)


def _of_cluster(error: KafkaError, about: str) -> StorageError:
    code = error.code()
    if code in _RIGHTS:
        return StorageError(
            f"{about}. Grant the user what is missing, then start again or call recover()",
            code="KAFKA_RIGHTS",
        )
    if code in _NO_TOPIC:
        return StorageError(
            f"{about}. Create the topic, then start again or call recover(); nothing was lost",
            code="KAFKA_TOPIC",
        )
    if code in _REFUSED:
        return StorageError(
            f"{about}. The topic does not take a row that it would have taken before: bring its settings "
            "back, such as max.message.bytes; nothing was lost",
            code="KAFKA_REFUSED",
        )
    return StorageError(
        f"{about} ({sentence(error)}). Trying again may help; nothing was lost", code="KAFKA_AWAY"
    )


def sentence(error: KafkaError) -> str:
    """The first line of what the client says, cut short."""
    line = next(iter(error.str().splitlines()), "")
    plain = "".join(char if char.isprintable() else "?" for char in line).rstrip(".")
    return plain if len(plain) <= _MOST else f"{plain[:_MOST]}…"
