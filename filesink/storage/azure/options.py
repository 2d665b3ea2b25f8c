"""Storage options of Azure: the names of adlfs, and how blocks are sent. Values are repeated nowhere."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from filesink.errors import ConfigError
from filesink.storage.objects.api import MIB
from filesink.storage.objects.options import UploadOptions, concurrency, whole_number

_SMALLEST_BLOCK = MIB  # ours; Azure takes any
_HOST = re.compile(r"[A-Za-z0-9._-]+(?::[0-9]{1,5})?(?:/[A-Za-z0-9._-]*)?")
_TEXTS = ("account_name", "account_key", "sas_token", "connection_string", "account_host")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AzureOptions(UploadOptions):
    """See ``UploadOptions``; a part is a block, of which Azure takes 50,000 of 4,000 MiB for a blob."""

    largest_part: ClassVar[int] = 4000 * MIB

    account_name: str | None = None
    account_key: str | None = None
    sas_token: str | None = None
    connection_string: str | None = None
    account_host: str | None = None
    credential: Any = None


def azure_options(given: Mapping[str, Any]) -> AzureOptions:
    """Check what the user has given.

    Raises:
        ConfigError: ``UNKNOWN_OPTION`` or ``BAD_VALUE``.
    """
    known = [each.name for each in fields(AzureOptions) if each.name != "conditional_writes"]
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise ConfigError(
            f"unknown storage options {unknown} for Azure; known are {', '.join(known)}",
            code="UNKNOWN_OPTION",
        )
    values = {name: value for name, value in given.items() if value is not None}
    _check_account(values)
    if "part_size" in values:
        whole_number("part_size", values["part_size"], _SMALLEST_BLOCK, AzureOptions.largest_part)
    if "max_concurrency" in values:
        concurrency("max_concurrency", values["max_concurrency"])
    return AzureOptions(**values)


def _check_account(values: Mapping[str, Any]) -> None:
    """Check the options that name an account or let somebody in."""
    for name in _TEXTS:
        if not isinstance(values.get(name, ""), str):
            raise ConfigError(
                f"storage option '{name}' must be str, not {type(values[name]).__name__}", code="BAD_VALUE"
            )
    for name in ("account_name", "account_host"):
        if not _HOST.fullmatch(values.get(name, "a")):
            raise ConfigError(
                f"storage option '{name}' must be the account's name, or its host as in "
                "'lake.blob.core.windows.net', with a port perhaps, and without user, password or token",
                code="BAD_VALUE",
            )
    if inspect.iscoroutinefunction(getattr(values.get("credential"), "get_token", None)):
        raise ConfigError(  # adlfs takes those; here its token would be a coroutine
            "storage option 'credential' is from azure.identity.aio; pass the one from azure.identity",
            code="BAD_VALUE",
        )
