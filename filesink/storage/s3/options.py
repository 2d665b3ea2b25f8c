"""Storage options of S3: the names of s3fs, so that one dictionary serves pandas, polars and this.

Credentials are found as botocore finds them: options, environment, profiles, the machine's role.
Rules: no value of an option ever enters a message, a record, a ``repr`` or a log; only names do.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import urlsplit

from filesink.errors import ConfigError
from filesink.storage.objects.api import LARGEST_PART, SMALLEST_PART
from filesink.storage.objects.options import UploadOptions, concurrency, conditional_writes, whole_number

_ALIASES = {"username": "key", "password": "secret", "default_block_size": "part_size"}
_MAY_BE_EMPTY = {"key", "secret", "token", "profile", "endpoint_url"}  # as variables that are not set
_INTERNAL = "endpoint_from"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class S3Options(UploadOptions):
    """See ``UploadOptions``. Hashable, so that a process keeps one client for all that are equal."""

    key: str | None = None
    secret: str | None = None
    token: str | None = None
    profile: str | None = None
    anon: bool = False
    endpoint_url: str | None = None
    use_ssl: bool = True
    requester_pays: bool = False
    assume_role: tuple[tuple[str, Any], ...] = ()
    sts_kwargs: tuple[tuple[str, Any], ...] = ()
    client_kwargs: tuple[tuple[str, Any], ...] = ()
    config_kwargs: tuple[tuple[str, Any], ...] = ()
    s3_additional_kwargs: tuple[tuple[str, Any], ...] = ()
    endpoint_from: str = ""  # the setting that has ``endpoint_url``; not for users

    @property
    def has_endpoint(self) -> bool:
        """Whether an option names the store's address."""
        return self.endpoint_url is not None or "endpoint_url" in dict(self.client_kwargs)


def s3_options(given: Mapping[str, Any]) -> S3Options:
    """Check what the user, or fsspec's configuration, has given.

    Raises:
        ConfigError: ``UNKNOWN_OPTION``, ``BAD_VALUE`` or ``CREDENTIALS``.
    """
    values = {_ALIASES.get(name, name): value for name, value in given.items() if value is not None}
    values = {name: value for name, value in values.items() if value != "" or name not in _MAY_BE_EMPTY}
    known = [each.name for each in fields(S3Options) if each.name != _INTERNAL]
    for name in values:
        if name not in (*known, _INTERNAL):
            close = difflib.get_close_matches(str(name), [*known, *_ALIASES], n=1)
            hint = f"; did you mean '{close[0]}'?" if close else f"; known are {', '.join(known)}"
            raise ConfigError(
                f"unknown storage option '{str(name)[:40]}' for S3{hint}", code="UNKNOWN_OPTION"
            )
    try:
        checked = {name: _checked(name, value) for name, value in values.items()}
    except ConfigError as error:
        origin = values.get(_INTERNAL)
        if origin is None or "'endpoint_url'" not in error.message:
            raise
        raise ConfigError(f"{error.message}; it came from {origin}", code=error.code) from None
    _check_pair(checked)
    return S3Options(**checked)


def _check_pair(values: Mapping[str, Any]) -> None:
    """Half a pair of keys would be sent as it is, or another half be found in the environment."""
    there = [name for name in ("key", "secret") if name in values]
    if len(there) == 1 or (not there and "token" in values):
        raise ConfigError(
            f"of the credentials only {repr(there[0]) if there else 'a token'} is set: 'key' and 'secret' go "
            "together, and so do fs.s3a.access.key and fs.s3a.secret.key of Spark's settings. An empty one "
            "counts as not set. Set both, or none of them",
            code="CREDENTIALS",
        )


def _checked(name: str, value: Any) -> Any:
    check = _CHECKS.get(name)
    return _of_kind(name, value, str) if check is None else check(name, value)


def _pairs(name: str, value: Any) -> tuple[tuple[str, Any], ...]:
    try:
        pairs = tuple(sorted((str(key), _frozen(each)) for key, each in dict(value).items()))
        hash(pairs)
    except (TypeError, ValueError):
        raise ConfigError(
            f"storage option '{name}' must be a dictionary of plain values", code="BAD_VALUE"
        ) from None
    return pairs


def _role(name: str, value: Any) -> tuple[tuple[str, Any], ...]:
    """The parameters of STS' AssumeRole, under their own names."""
    pairs = _pairs(name, value)
    if not isinstance(dict(pairs).get("RoleArn"), str):
        raise ConfigError(
            f"storage option '{name}' must hold 'RoleArn', the ARN of a role. It may hold other "
            "parameters of STS' AssumeRole, such as 'RoleSessionName', 'DurationSeconds' and 'ExternalId'",
            code="BAD_VALUE",
        )
    return pairs


def _frozen(value: Any) -> Any:
    return tuple(sorted(value.items())) if isinstance(value, dict) else value


def _of_kind(name: str, value: Any, kind: type[Any]) -> Any:
    if not isinstance(value, kind):
        raise ConfigError(
            f"storage option '{name}' must be {kind.__name__}, not {type(value).__name__}", code="BAD_VALUE"
        )
    return value


def _endpoint(name: str, value: Any) -> str:
    """``value`` as an address, with a scheme and without secrets."""
    url: str = _of_kind(name, value, str)
    try:
        parts = urlsplit(url)
        _ = parts.port  # refused only now, if it is no number
    except ValueError:  # whose text repeats what may be a secret
        raise _no_url(name) from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise _no_url(name)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfigError(
            f"credentials in '{name}' are not allowed, nor anything after '?', since addresses are logged; "
            "use 'key', 'secret' and 'token'",
            code="CREDENTIALS",
        )
    return url


def _no_url(name: str) -> ConfigError:
    return ConfigError(f"storage option '{name}' must be a URL, as in 'https://host:9000'", code="BAD_VALUE")


def _with_endpoint(name: str, value: Any) -> tuple[tuple[str, Any], ...]:
    """Arguments of a client, among which there may be an address."""
    pairs = _pairs(name, value)
    endpoint = dict(pairs).get("endpoint_url")
    if endpoint is not None:
        _endpoint(f"{name}['endpoint_url']", endpoint)
    return pairs


def _flag(name: str, value: Any) -> Any:
    return _of_kind(name, value, bool)


_CHECKS: Mapping[str, Callable[[str, Any], Any]] = {
    "part_size": lambda name, value: whole_number(name, value, SMALLEST_PART, LARGEST_PART),
    "max_concurrency": concurrency,
    "assume_role": _role,
    "sts_kwargs": _with_endpoint,
    "client_kwargs": _with_endpoint,
    "config_kwargs": _pairs,
    "s3_additional_kwargs": _pairs,
    "anon": _flag,
    "use_ssl": _flag,
    "requester_pays": _flag,
    "conditional_writes": conditional_writes,
    "endpoint_url": _endpoint,
}
