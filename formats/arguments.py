"""Arguments of public calls, checked when they are given: a wrong one is a ``FormatError``. Pure.

Whoever raises errors of another kind (``filesink.arguments``) says so with ``error``, which makes one of a
message. Messages say the name of the argument, what it takes and what it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeVar

from formats.errors import FormatError

V = TypeVar("V")

_SHOWN: Final = 40  # characters of a value in a message


def option_error(message: str) -> FormatError:
    """The error of an argument of a format."""
    return FormatError(message, kind="option")


def kind_of(value: object) -> str:
    """What ``value`` is, in a message."""
    return f"the class {value.__name__}; call it" if isinstance(value, type) else type(value).__name__


def instance_of(
    value: V, kind: type[Any], *, name: str, error: Callable[[str], Exception] = option_error
) -> V:
    """``value`` if it is a ``kind``.

    Raises:
        FormatError: kind ``"option"``; it says ``name`` and both types, never the value.
    """
    if isinstance(value, kind):
        return value
    found = kind_of(value)
    if found == kind.__name__:  # such as the session of Spark Connect
        found = f"another {found}, that of {type(value).__module__}"
    raise error(f"{name} must be of type {kind.__name__}, got {found}")


def one_of(
    value: object,
    allowed: Collection[str],
    *,
    name: str,
    error: Callable[[str], Exception] = option_error,
) -> None:
    """Raise ``FormatError`` (kind ``"option"``) unless ``value`` is one of the words ``allowed``."""
    if not isinstance(value, str) or value not in allowed:
        raise error(f"{name} must be {' or '.join(map(repr, allowed))}, got {shown(value)}")


def check_number(value: object, fits: Callable[[float], bool], *, name: str, wanted: str) -> None:
    """Raise unless ``value`` is a number, no truth value, that ``fits``.

    Raises:
        FormatError: kind ``"option"``; it says which numbers are ``wanted``.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not fits(value):
        raise option_error(f"{name} must be {wanted}, got {shown(value)}")


def check_names(value: object, *, name: str, words: Collection[str] = ()) -> None:
    """Raise ``FormatError`` (kind ``"option"``) unless ``value`` is a list of names, or one of ``words``.

    Any other text is none: it would be taken for as many names as it has letters.
    """
    if isinstance(value, str):
        is_right = value in words
    else:
        is_right = isinstance(value, Sequence) and all(isinstance(one, str) for one in value)
    if not is_right:
        wanted = " or ".join([*map(repr, words), "a list of names of columns"])
        raise option_error(f"{name} must be {wanted}, got {shown(value)}")


def check_pairs(value: object, *, name: str) -> None:
    """Raise ``FormatError`` (kind ``"option"``) unless ``value`` maps text to text, or is ``None``."""
    given: Any = {} if value is None else instance_of(value, Mapping, name=name)
    others = [one for pair in given.items() for one in pair if not is_text(one)]
    if others:
        raise option_error(f"{name} must map text to text that has bytes in UTF-8, got {shown(others[0])}")


def is_text(value: object) -> bool:
    """Whether ``value`` is text that can be written: a surrogate without its other half has no bytes."""
    return isinstance(value, str) and not any("\ud800" <= one <= "\udfff" for one in value)


def shown(value: object) -> str:
    """The beginning of ``value`` in a message."""
    return repr(value)[:_SHOWN]
