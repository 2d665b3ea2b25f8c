"""Arguments of public calls, checked when they are given: a wrong one is a ``ConfigError``. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

from filesink.errors import ConfigError

V = TypeVar("V")


def instance_of(value: object, kind: type[V], *, name: str) -> V:
    """``value`` if it is a ``kind``.

    Raises:
        ConfigError: ``BAD_VALUE``; it says ``name`` and both types, never the value.
    """
    if not isinstance(value, kind):
        raise ConfigError(
            f"{name} must be of type {kind.__name__}, got {type(value).__name__}", code="BAD_VALUE"
        )
    return value


def column_name(value: object, *, name: str) -> str:
    """``value`` if a column can have that name.

    Raises:
        ConfigError: ``BAD_VALUE``; it is no text, empty, or has a lone surrogate.
    """
    column = instance_of(value, str, name=name)
    if not column or any("\ud800" <= character <= "\udfff" for character in column):
        raise ConfigError(f"{name} must be the name of a column, got {repr(column)[:40]}", code="BAD_VALUE")
    return column


def one_of(value: object, allowed: Collection[str], *, name: str) -> None:
    """Raise ``ConfigError`` (``BAD_VALUE``) unless ``value`` is one of the words ``allowed``."""
    if not isinstance(value, str) or value not in allowed:
        words = " or ".join(map(repr, allowed))
        raise ConfigError(f"{name} must be {words}, got {repr(value)[:40]}", code="BAD_VALUE")
