"""Options of one write as Spark hands them over: texts by names in lower case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import overload

from filesink.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Texts:
    """Options by their lower-cased names."""

    texts: Mapping[str, str]

    @overload
    def get(self, name: str) -> str | None: ...
    @overload
    def get(self, name: str, default: str) -> str: ...
    def get(self, name: str, default: str | None = None) -> str | None:
        """The text of an option, whatever its spelling."""
        return self.texts.get(name.lower(), default)

    def flag(self, name: str) -> bool:
        """``"true"`` or ``"false"``; an option that was not given is false."""
        match self.get(name, "false").lower():
            case "true":
                return True
            case "false":
                return False
            case _:
                raise self.bad(name, "'true' or 'false'")

    def number(self, name: str) -> int | None:
        """A whole number; ``None`` if it was not given."""
        text = self.get(name)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and len(text) < 20):
            raise self.bad(name, "a whole number")
        return int(text)

    def given(self, **names: str) -> dict[str, str]:
        """Those that were given, under the names of the parameters they are for."""
        found = {parameter: self.get(name) for parameter, name in names.items()}
        return {parameter: text for parameter, text in found.items() if text is not None}

    def bad(self, name: str, wanted: str) -> ConfigError:
        """The error of a value that an option does not take."""
        return ConfigError(
            f"option '{name}' must be {wanted}, got {repr(self.get(name))[:80]}", code="BAD_VALUE"
        )
