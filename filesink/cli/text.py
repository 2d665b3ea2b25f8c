"""Words for people: names without control characters, sizes, ages, JSON. Pure."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from typing import Any, Final

#: What a terminal would obey, or what hides how a name is spelled: control and format characters, separators
#: of lines, surrogates.
_NOT_SHOWN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_UNITS: Final = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))


def clean(text: str) -> str:
    """``text`` with everything escaped that a terminal would not show as it is."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(one) if unicodedata.category(one) in _NOT_SHOWN else one for one in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode()


def count(number: int | None, what: str = "") -> str:
    """``1,234 files``; a question mark if nobody knows."""
    shown = "?" if number is None else f"{number:,}"
    if not what:
        return shown
    return f"{shown} {what}" if number == 1 else f"{shown} {what}s"


def age(moment: datetime | None, now: datetime) -> str:
    """``5 min ago``."""
    if moment is None:
        return "never"
    seconds = int((now - moment).total_seconds())
    if seconds < 0:
        return "in the future"
    unit, length = next(((unit, length) for unit, length in _UNITS if seconds >= length), ("s", 1))
    return f"{seconds // length} {unit} ago"


def time(moment: datetime | None) -> str:
    """In UTC, to the second."""
    return "" if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def as_json(value: Any) -> str:
    """One line of ASCII."""
    return json.dumps(plain(value), ensure_ascii=True, allow_nan=False)


def file_object(file: Any) -> dict[str, Any]:
    """A live file, without the statistics of its columns: these are values of records."""
    values: dict[str, Any] = plain(file)
    del values["statistics"]
    return values


def plain(value: Any) -> Any:
    """Values of JSON: a dataclass is an object, a moment is text of ISO 8601 in UTC."""
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case Mapping():
            return {str(name): plain(one) for name, one in value.items()}
        case list() | tuple():
            return [plain(one) for one in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return plain(asdict(value))
        case _:
            return value
