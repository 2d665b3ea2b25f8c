"""Patterns of names in paths, as Hadoop and Spark take them: ``*``, ``?``, ``[a-z]``, ``{a,b}``. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable

from filesink.errors import ConfigError

_MAGIC = re.compile(r"[*?\[{]")
#: Whether a name fits.
Fits = Callable[[str], bool]


def has_magic(text: str) -> bool:
    """Whether ``text`` is a pattern and no name."""
    return _MAGIC.search(text) is not None


def split_pattern(path: str) -> tuple[str, tuple[str, ...]]:
    """The directory above the first pattern in ``path``, and the names and patterns below it."""
    names = path.split("/")
    first = next((place for place, name in enumerate(names) if has_magic(name)), len(names))
    return "/".join(names[:first]), tuple(name for name in names[first:] if name)


def compiled(pattern: str) -> Fits:
    """What tells whether a name fits ``pattern``.

    Raises:
        ConfigError: ``BAD_VALUE``; a bracket or brace is not closed.
    """
    try:
        expression = re.compile(_expression(pattern))
    except (re.error, ValueError) as error:
        raise ConfigError(
            f"the pattern {pattern!r:.80} cannot be read: close each '[' and '{{', and give at least one "
            "character between brackets",
            code="BAD_VALUE",
        ) from error
    return lambda name: expression.fullmatch(name) is not None


def _expression(pattern: str) -> str:
    made, place, depth = [], 0, 0
    while place < len(pattern):
        letter, place = pattern[place], place + 1
        match letter:
            case "*":
                made.append(".*")
            case "?":
                made.append(".")
            case "[":
                end = pattern.index("]", place + 1)
                made.append(_choice(pattern[place:end]))
                place = end + 1
            case "{":
                depth += 1
                made.append("(?:")
            case "," if depth:
                made.append("|")
            case "}" if depth:
                depth -= 1
                made.append(")")
            case _:
                made.append(re.escape(letter))
    return f"(?s:{''.join(made)})"


def _choice(inside: str) -> str:
    """A choice of characters; ``!`` and ``^`` at its beginning turn it round."""
    is_not = inside[:1] in {"!", "^"}
    kept = re.sub(r"([\\\[\]^])", r"\\\1", inside[1:] if is_not else inside)
    return f"[{'^' if is_not else ''}{kept}]"
