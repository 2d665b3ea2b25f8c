"""Storage options of Google Cloud Storage: the names of gcsfs. Values are repeated nowhere."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from ipaddress import ip_address
from typing import Any, ClassVar
from urllib.parse import urlsplit

from filesink.errors import ConfigError
from filesink.storage.objects.api import GIB, KIB
from filesink.storage.objects.options import (
    Copying,
    UploadOptions,
    concurrency,
    conditional_writes,
    whole_number,
)

#: Words in place of credentials, as gcsfs has them.
ANONYMOUS, DEFAULT_CHAIN, OF_THE_HOST = "anon", "google_default", "cloud"
_SMALLEST_PART = 256 * KIB  # ours; Google takes any
_PROJECT = re.compile(r"[a-z0-9.:-]{1,100}")
_EMULATOR = "STORAGE_EMULATOR_HOST"  # the variable that all of Google's clients know


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GcsOptions(UploadOptions):
    """See ``UploadOptions``. Hashable, so that a process keeps one session for all that are equal.

    Attributes:
        token: who asks: a word, the path of a key file, its JSON, an access token, google-auth's object,
            or ``None`` for Google's default chain.
        endpoint_url: scheme, host and port of another server; ``""`` for Google's.
        user_project: who pays; ``""`` for the owner of the bucket.
        timeout: seconds without a byte of an answer.
    """

    largest_part: ClassVar[int] = GIB
    copying: ClassVar[Copying] = Copying.WHOLE

    token: Any = None
    endpoint_url: str = ""
    user_project: str = ""
    timeout: int = 60


def gcs_options(given: Mapping[str, Any]) -> GcsOptions:
    """Check what the user has given.

    Raises:
        ConfigError: ``UNKNOWN_OPTION``, ``BAD_VALUE`` or ``CREDENTIALS``.
    """
    values = {name: value for name, value in given.items() if value is not None and value != ""}
    known = [*_CHECKS, "project", "requester_pays"]
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise ConfigError(
            f"unknown storage options {unknown} for Google Cloud Storage; known are {', '.join(known)}",
            code="UNKNOWN_OPTION",
        )
    checked = {name: check(values[name]) for name, check in _CHECKS.items() if name in values}
    checked["user_project"] = _payer(values)
    checked.setdefault("endpoint_url", _emulator())
    return _without_open_secrets(GcsOptions(**checked))


def _without_open_secrets(options: GcsOptions) -> GcsOptions:
    """Nothing that lets somebody in goes over a network in the clear: not even the default chain is asked."""
    if not options.endpoint_url.startswith("http://"):
        return options
    if options.token is None:
        names = [each.name for each in fields(GcsOptions) if each.name != "token"]
        return GcsOptions(token=ANONYMOUS, **{name: getattr(options, name) for name in names})
    if options.token != ANONYMOUS and not _is_loopback(options.endpoint_url):
        raise ConfigError(
            "storage option 'endpoint_url' begins with http://, so anybody on the way could read the access "
            "token; write it with https://, or pass token='anon'",
            code="CREDENTIALS",
        )
    return options


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _emulator() -> str:
    found = os.environ.get(_EMULATOR, "")
    if not found:
        return ""
    return _endpoint(found if "://" in found else f"http://{found}", name=f"variable {_EMULATOR}")


def _endpoint(value: object, *, name: str = "storage option 'endpoint_url'") -> str:
    try:
        parts = urlsplit(_text("endpoint_url", value))
        _ = parts.port  # refused only now, if it is no number
    except ValueError as error:
        if isinstance(error, ConfigError):
            raise
        raise _no_url(name) from None  # its text repeats what may be a secret
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfigError(
            f"credentials in {name} are not allowed, nor anything after '?', since addresses are logged; use "
            "'token'",
            code="CREDENTIALS",
        )
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise _no_url(name)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def _no_url(name: str) -> ConfigError:
    return ConfigError(f"{name} must be a URL, as in 'https://storage.example.org'", code="BAD_VALUE")


def _payer(values: Mapping[str, Any]) -> str:
    """The project to be charged: that of the option, or ``project`` if the option only says yes."""
    pays = values.get("requester_pays", False)
    project = values.get("project", "")
    if isinstance(pays, bool):
        pays = project if pays else ""
        if not pays and values.get("requester_pays"):
            raise ConfigError(
                "storage option 'requester_pays' needs the project to be charged: pass it, or 'project' as "
                "well",
                code="BAD_VALUE",
            )
    for name, value in (("project", project), ("requester_pays", pays)):
        if not _PROJECT.fullmatch(_text(name, value) or "a"):
            raise ConfigError(f"storage option '{name}' must be the id of a project", code="BAD_VALUE")
    return str(pays)


def _token(value: object) -> object:
    """Hashable, and seen through: a key file's dictionary becomes its JSON."""
    if isinstance(value, Mapping):
        try:
            return json.dumps(dict(value), sort_keys=True)
        except (TypeError, ValueError):
            value = 0
    if isinstance(value, str) or hasattr(value, "before_request"):
        return value
    raise ConfigError(
        "storage option 'token' must be 'google_default', 'cloud', 'anon', the path of a key file, its "
        "content as a dictionary, an access token, or credentials of google.auth",
        code="BAD_VALUE",
    )


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise ConfigError(
            f"storage option '{name}' must be str, not {type(value).__name__}", code="BAD_VALUE"
        )
    return value


_CHECKS: Mapping[str, Any] = {
    "token": _token,
    "endpoint_url": _endpoint,
    "timeout": lambda value: whole_number("timeout", value, 1, 3600),
    "part_size": lambda value: whole_number("part_size", value, _SMALLEST_PART, GIB),
    "max_concurrency": lambda value: concurrency("max_concurrency", value),
    "conditional_writes": lambda value: conditional_writes("conditional_writes", value),
}
