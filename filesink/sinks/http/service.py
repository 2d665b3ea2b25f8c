"""Where records are sent to, and how a request looks: values that users give. Pure.

Rules: a secret is in no ``repr`` and no message. Headers and the query of an address may be secrets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal
from urllib.parse import urlsplit

from filesink.arguments import choice, instance_of, one_of
from filesink.durations import Duration, parse_duration_ms
from filesink.errors import ConfigError
from filesink.sinks.asynchronous import Answer
from formats.arguments import is_text, kind_of

_METHODS = ("POST", "PUT", "PATCH")
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # a token of RFC 9110
_OF_THE_CLIENT = frozenset({"content-length", "transfer-encoding", "connection"})
_TAKEN = _OF_THE_CLIENT | {"authorization", "content-type"}
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ADDRESS = re.compile(r"[\x21-\x7e]+")


class Body(Enum):
    """How records make the body of a request."""

    JSON = "json"
    NDJSON = "ndjson"
    ARRAY = "array"


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What a service has answered. ``headers`` have names in lower case; ``body``: its first 64 KiB."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class HttpService:
    """An address that takes records, and how they are sent there. Redirections are not followed.

    Args:
        url: ``"https://host:port/path"``, without user and password.
        body: ``"json"`` is one object, so one record, a request; ``"ndjson"`` is one object a line, and
            ``"array"`` one array of objects. Values are those of ``Encoder.json_lines()``.
        method: ``"POST"``, ``"PUT"`` or ``"PATCH"``.
        headers: sent with every request; not those of ``token_env`` and ``key_header``.
        token_env: name of an environment variable that holds a bearer token. It is read in the driver and in
            each task, and must be set in both: ``spark.executorEnv.<name>`` sets it on a cluster.
        key_header: the header with the idempotency key; ``None`` for none.
        timeout: for connecting, and for each pause within an answer.
        ca_file: certificates to trust in place of the system's; at the same path on every host.
        judge: your own word on an answer; ``None`` from it leaves that to the status. For services that say
            in a body which records they have not taken. Goes to the tasks.

    Raises:
        ConfigError: ``CREDENTIALS``, user or password are in the address; ``BAD_VALUE``.
    """

    url: str = field(repr=False)
    body: Literal["json", "ndjson", "array"] = field(default="ndjson", kw_only=True)
    method: Literal["POST", "PUT", "PATCH"] = field(default="POST", kw_only=True)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False, kw_only=True)
    token_env: str | None = field(default=None, kw_only=True)
    key_header: str | None = field(default="Idempotency-Key", kw_only=True)
    timeout: Duration = field(default="30 s", kw_only=True)
    ca_file: str | None = field(default=None, kw_only=True)
    judge: Callable[[HttpAnswer], Answer | None] | None = field(default=None, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        _check_url(instance_of(self.url, str, name="url"))
        choice(Body, self.body, "body")
        one_of(self.method, _METHODS, name="method")
        _check_headers(self.headers)
        if self.token_env is not None and not _fits(_VARIABLE, self.token_env):
            raise _bad_value("token_env must be the name of an environment variable, not the token itself")
        if self.key_header is not None and not _fits(_NAME, self.key_header):
            raise _bad_value("key_header must be the name of a header")
        if self.key_header is not None and self.key_header.lower() in _TAKEN:
            raise _bad_value(f"key_header cannot be '{self.key_header}', which has a meaning of its own")
        _check_once(self.headers, self.key_header, "key_header sends; key_header=None sends none of ours")
        if self.token_env is not None:
            _check_once(self.headers, "Authorization", "token_env sends; give one of them")
        parse_duration_ms(self.timeout, name="timeout")
        if self.ca_file is not None and not (is_text(self.ca_file) and self.ca_file):
            raise _bad_value(f"ca_file must be a path, got {kind_of(self.ca_file)}")
        judge: object = self.judge
        if judge is not None and (not callable(judge) or isinstance(judge, type)):
            raise _bad_value(f"judge must be a function of an HttpAnswer, got {kind_of(judge)}")

    @staticmethod
    def at(service: str | HttpService) -> HttpService:
        """What a user has given as a service: an address, or one of these."""
        return service if isinstance(service, HttpService) else HttpService(service)

    @property
    def shown(self) -> str:
        """The address as it may be shown: without its query, which may hold a key."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}{parts.path}"

    def timeout_s(self) -> float:
        """``timeout`` in seconds."""
        return parse_duration_ms(self.timeout, name="timeout") / 1000


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise _bad_value("url cannot be read; write 'https://host:port/path'") from None
    if parts.username is not None or parts.password is not None:
        raise ConfigError(
            "url holds user or password, and addresses are shown: use token_env, or headers",
            code="CREDENTIALS",
        )
    if parts.scheme not in {"http", "https"} or not has_host or parts.fragment or not _ADDRESS.fullmatch(url):
        raise _bad_value("url must be like 'https://host:port/path', in ASCII and without a fragment")


def _check_headers(headers: Mapping[str, str]) -> None:
    for name, value in instance_of(headers, Mapping, name="headers").items():
        if not (_fits(_NAME, name) and _fits(_VALUE, value)):
            raise _bad_value("headers must map names of headers to text without line feeds")
        if name.lower() in _OF_THE_CLIENT:
            raise _bad_value(f"headers may not have '{name}': the client says how it sends a body")
    if len({name.lower() for name in headers}) < len(headers):
        raise _bad_value("headers has a name twice, in other letters")


def _check_once(headers: Mapping[str, str], ours: str | None, sender: str) -> None:
    """Refuse a header of the user's that ours would take the place of."""
    if ours is not None and ours.lower() in {name.lower() for name in headers}:
        raise _bad_value(f"headers may not have '{ours}', which {sender}")


def _fits(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _bad_value(message: str) -> ConfigError:
    return ConfigError(message, code="BAD_VALUE")
