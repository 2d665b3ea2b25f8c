"""Secrets: a job file says where they are, and nothing here prints them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

Kind = Literal["env", "file", "hadoop", "inline"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A reference to a secret, or, where a caller allows that, the secret itself.

    Attributes:
        kind: ``env`` a variable of the environment, ``file`` a file, ``hadoop`` an alias of Hadoop's
            credential providers, ``inline`` the file itself, as in SeaTunnel.
        name: of the variable, the file or the alias.
    """

    kind: Kind
    name: str = ""
    value: str = field(default="", repr=False)

    def __str__(self) -> str:
        return "***" if self.kind == "inline" else f"${{{self.kind}:{self.name}}}"

    @staticmethod
    def of(text: str) -> Secret:
        """What ``text`` refers to; all that is no reference is the secret itself."""
        kind, _, name = text.removeprefix("${").removesuffix("}").partition(":")
        if text.startswith("${") and text.endswith("}") and kind in get_args(Kind)[:3] and name:
            return Secret(kind=kind, name=name)  # type: ignore[arg-type] # one of the three
        return Secret(kind="inline", value=text)

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(_checked)


def _checked(given: Any, info: core_schema.ValidationInfo) -> Secret:
    found = given if isinstance(given, Secret) else Secret.of(str(given))
    if found.kind == "inline" and not (info.context or {}).get("inline_secrets"):
        raise PydanticCustomError(
            "inline_secret",
            "is a secret and stands in the file; write ${env:NAME}, ${file:/path} or ${hadoop:alias}, or "
            "allow it with --inline-secrets",
        )
    return found


class SecretSettings(dict[str, "Secret | str"]):
    """Free settings: those whose names say so, and those that refer to one, are secrets; others are texts."""

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(_settings)


def _settings(given: Any, info: core_schema.ValidationInfo) -> SecretSettings:
    if not isinstance(given, Mapping):
        raise PydanticCustomError("settings", "takes names and values in braces")
    found = SecretSettings()
    for name, value in _flat(given, ""):
        is_secret = isinstance(value, Secret) or Secret.of(str(value)).kind != "inline"
        if is_secret or _SECRET.search(name):
            found[name] = _checked(value, info)
        else:
            found[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def _flat(given: Mapping[Any, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Names as clients know them: to HOCON, ``security.protocol`` is one thing within another."""
    for name, value in given.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


_SECRET = re.compile(
    r"passw|secret|token|credential(?!s?\.provider)|access.?key|api.?key|private|authorization|cookie|signature",
    re.IGNORECASE,
)
_INSIDE = re.compile(
    r"(?i)((?:password|passwd|pwd|secret|token|access_?key|sig)\s*=\s*)[^&;,\s]+|(?<=://)[^/@\s]+:[^/@\s]+(?=@)"
)


def without_secrets(text: str) -> str:
    """``text`` with what looks like a secret in an address taken out."""
    return _INSIDE.sub(lambda found: f"{found[1] or ''}***", text)
