"""Pieces of Spark SQL, written so that no setting of the parser changes their meaning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def identifier(name: str) -> str:
    """A column by its name."""
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


def text(value: str) -> str:
    """A string; as bytes, since what a backslash means in a literal is a matter of settings."""
    return f"string(X'{value.encode().hex()}')" if value else "''"


def struct(names: Iterable[str]) -> str:
    """The columns of ``names`` as one struct."""
    return f"struct({', '.join(map(identifier, names))})"


def options(values: Mapping[str, str]) -> str:
    """Options of ``to_json`` and the like."""
    return f"map({', '.join(text(part) for pair in values.items() for part in pair)})"
