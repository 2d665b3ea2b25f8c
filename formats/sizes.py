"""Sizes as people write them: ``134217728`` or ``"128MiB"``.

Text has a unit, since ``"5"`` may be meant as bytes or as megabytes. Units are powers of 1024 whatever
their spelling (``m``, ``MB``, ``MiB``), as in Spark's and Flink's settings.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from formats.errors import FormatError

#: The largest size that fits Arrow's and Parquet's 64-bit counters.
MAX_SIZE: Final = 2**63 - 1
_TEXT: Final = re.compile(r"\s*([0-9]{1,20}(?:\.[0-9]{1,20})?)\s*([a-zA-Z]*)\s*")
_PREFIXES: Final = "kmgtp"
_UNITS: Final = {"b": 1} | {
    prefix + end: 1024 ** (power + 1) for power, prefix in enumerate(_PREFIXES) for end in ("", "b", "ib")
}


def parse_size(value: int | str, *, name: str) -> int:
    """The number of bytes that ``value`` means.

    Args:
        value: bytes, or text of a number with a unit, as in ``"64 MiB"`` or ``"1.5g"``.
        name: the option, for messages.

    Returns:
        Bytes, from 1 to ``MAX_SIZE``; a fraction of a byte is dropped.

    Raises:
        FormatError: kind ``"option"``; not a size, zero or negative, or larger than ``MAX_SIZE``.
    """
    size = _bytes(value)
    if size is None or not 1 <= size <= MAX_SIZE:
        raise FormatError(
            f"{name} must be a size > 0 (e.g. '128MiB', '64 kb', or an int of bytes), got {repr(value)[:80]}",
            kind="option",
        )
    return size


def _bytes(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _TEXT.fullmatch(value) if isinstance(value, str) else None
    unit = _UNITS.get(match[2].lower()) if match else None
    return int(Decimal(match[1]) * unit) if match and unit else None


def size_text(size: int) -> str:
    """Bytes for people: ``1.5 MiB``."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"
