"""Arguments of public calls, checked when they are given: a wrong one is a ``ConfigError``. Pure."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from typing import Any, TypeVar

from filesink.errors import ConfigError
from formats import arguments

E = TypeVar("E", bound=Enum)
V = TypeVar("V")


def instance_of(value: V, kind: type[Any], *, name: str) -> V:
    """``value`` if it is a ``kind``.

    Raises:
        ConfigError: ``BAD_VALUE``; it says ``name`` and both types, never the value.
    """
    return arguments.instance_of(value, kind, name=name, error=_bad_value)


def column_name(value: object, *, name: str) -> str:
    """``value`` if a column can have that name.

    Raises:
        ConfigError: ``BAD_VALUE``; it is no text, empty, or has a lone surrogate.
    """
    column = str(instance_of(value, str, name=name))
    if not column or not arguments.is_text(column):
        raise _bad_value(f"{name} must be the name of a column, got {arguments.shown(column)}")
    return column


def one_of(value: object, allowed: Collection[str], *, name: str) -> None:
    """Raise ``ConfigError`` (``BAD_VALUE``) unless ``value`` is one of the words ``allowed``."""
    arguments.one_of(value, allowed, name=name, error=_bad_value)


def choice(kind: type[E], value: object, name: str) -> E:
    """The member of ``kind`` that the word ``value`` means, for the argument ``name``."""
    one_of(value, [member.value for member in kind], name=name)
    return kind(value)


def _bad_value(message: str) -> ConfigError:
    return ConfigError(message, code="BAD_VALUE")
