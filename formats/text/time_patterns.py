"""Dates and timestamps by a pattern of Java's ``DateTimeFormatter``, a column at a time.

Letters: ``yyyy``, ``MM``, ``dd``, ``HH``, ``mm``, ``ss``, ``S`` to ``SSSSSS``, ``XXX``; text in single
quotes, and anything that is neither letter nor one of ``[]{}#``, stands for itself. These are slices of
the ISO 8601 text of a value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from formats.arrow import Column, Text, pc
from formats.errors import FormatError
from formats.text import temporal

_TOKEN: Final = re.compile(r"'(?:[^']|'')*'|([a-zA-Z])\1*|[^a-zA-Z']+")
_DATE: Final = {"yyyy": (0, -6), "MM": (-5, -3), "dd": (-2, None)}  # of 2024-07-01
_MOMENT: Final = {
    "yyyy": (0, -22), "MM": (-21, -19), "dd": (-18, -16),
    "HH": (-15, -13), "mm": (-12, -10), "ss": (-9, -7),
    **{"S" * digits: (-6, digits - 6 or None) for digits in range(1, 7)},
}  # fmt: skip
_OFFSET: Final = "XXX"
_RESERVED: Final = frozenset("[]{}#")  # Java's, for sections that may be left out and for what is to come


class Kind(Enum):
    """What a pattern is for."""

    DATE = "date"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimePattern:
    """One pattern.

    Raises:
        FormatError: kind ``"option"``; a letter that is unknown, or that values of ``kind`` do not have.
    """

    pattern: str
    kind: Kind

    def __post_init__(self) -> None:
        """Check every letter."""
        text: object = self.pattern
        if not isinstance(text, str) or not text or "".join(m[0] for m in _TOKEN.finditer(text)) != text:
            raise FormatError(f"{self.kind.value}_format is not a pattern like 'yyyy-MM-dd'", kind="option")
        bare = "".join(m[0] for m in _TOKEN.finditer(text) if not m[1] and not m[0].startswith("'"))
        if not _RESERVED.isdisjoint(bare):
            raise FormatError(
                f"{self.kind.value}_format has one of [ ] {{ }} #, which Java keeps for itself: "
                "put it into single quotes",
                kind="option",
            )
        known = (*self._slices(), *([_OFFSET] if self.kind is Kind.TIMESTAMP else []))
        for token in self._letters():
            if token not in known:
                raise FormatError(
                    f"{self.kind.value}_format has {token[:20]!r}; known are {', '.join(known)}: use "
                    "these, put text into single quotes, or render the column in Spark with date_format()",
                    kind="option",
                )

    @property
    def has_offset(self) -> bool:
        """Whether values need a zone."""
        return _OFFSET in self._letters()

    def text(self, column: Column) -> Text:
        """The text of every value; null where it is null."""
        offset: Text | str | None = None
        if self.kind is Kind.DATE:
            whole = temporal.date_text(column)
        else:
            whole, offset = temporal.wall_clock_text(column)
        pieces: list[Text | str] = []
        for match in _TOKEN.finditer(self.pattern):
            token = match[0]
            if token == _OFFSET:
                pieces.append(_minutes(offset))
            elif match[1]:
                pieces.append(pc.utf8_slice_codeunits(whole, *self._slices()[token]))
            else:
                pieces.append(_literal(token))
        # A row is null where its value is: the first piece carries that, if no other does.
        return pc.binary_join_element_wise(pc.utf8_slice_codeunits(whole, 0, 0), *pieces, "")

    def _slices(self) -> dict[str, tuple[int, int | None]]:
        return _DATE if self.kind is Kind.DATE else _MOMENT

    def _letters(self) -> list[str]:
        return [match[0] for match in _TOKEN.finditer(self.pattern) if match[1]]


def _minutes(offset: Text | str | None) -> Text | str:
    """The offset as ``XXX`` writes it: without the seconds that zones had before 1900."""
    if offset is None or isinstance(offset, str):
        return offset or ""
    return pc.utf8_slice_codeunits(offset, 0, len("+00:53"))


def _literal(token: str) -> str:
    if not token.startswith("'"):
        return token
    return token[1:-1].replace("''", "'") or "'"
