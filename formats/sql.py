"""Pieces of Spark SQL, written so that no setting of the parser changes their meaning."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

_WORD: Final = re.compile(r"\w+", re.ASCII)


def identifier(name: str) -> str:
    """A column by its name."""
    # Between backticks anything but a word is a pattern under spark.sql.parser.quotedRegexColumnNames.
    return _quoted(name) if _WORD.fullmatch(name) else f"IDENTIFIER({text(_quoted(name))})"


def text(value: str) -> str:
    """A string; as bytes, since what a backslash means in a literal is a matter of settings."""
    return f"string(X'{value.encode().hex()}')" if value else "''"


def struct(names: Iterable[str]) -> str:
    """The columns of ``names`` as one struct."""
    return f"struct({', '.join(map(_field, names))})"


def options(values: Mapping[str, str]) -> str:
    """Options of ``to_json`` and the like."""
    return f"map({', '.join(text(part) for pair in values.items() for part in pair)})"


def _field(name: str) -> str:
    column = identifier(name)
    return column if column == _quoted(name) else f"{column} AS {_quoted(name)}"


def _quoted(name: str) -> str:
    escaped = name.replace("`", "``")
    return f"`{escaped}`"
