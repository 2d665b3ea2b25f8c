"""Options of one write as Spark hands them over: texts by names in lower case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar, overload

from filesink.errors import ConfigError

T = TypeVar("T")


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
        return self.choice(name, {"true": True, "false": False}, default="false")

    def choice(self, name: str, meanings: Mapping[str, T], *, default: str) -> T:
        """What the word means that an option has, in any case; its words in the order of the message."""
        word = self.get(name, default).lower()
        if word not in meanings:
            *others, last = (f"'{known}'" for known in meanings)
            raise self.bad(name, f"{', '.join(others)} or {last}")
        return meanings[word]

    def number(self, name: str) -> int | None:
        """A whole number; ``None`` if it was not given."""
        text = self.get(name)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and len(text) < 20):
            raise self.bad(name, "a whole number")
        return int(text)

    def size(self, name: str) -> int | str | None:
        """A size; digits alone are bytes, since Spark makes text of numbers. ``None`` if it was not given."""
        text = self.get(name)
        is_number = text is not None and text.isascii() and text.isdigit() and len(text) < 20
        return int(text) if text is not None and is_number else text

    def given(self, **names: str) -> dict[str, str]:
        """The options that were given, under the names of the parameters they are for."""
        found = {parameter: self.get(name) for parameter, name in names.items()}
        return {parameter: text for parameter, text in found.items() if text is not None}

    def bad(self, name: str, wanted: str) -> ConfigError:
        """The error of a value that an option does not take."""
        return ConfigError(
            f"option '{name}' must be {wanted}, got {repr(self.get(name))[:80]}", code="BAD_VALUE"
        )
