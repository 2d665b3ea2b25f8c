"""Text in other charsets than UTF-8: those in which every line stands for itself."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

from formats.errors import FormatError

if TYPE_CHECKING:
    from formats.api import Buffer

UTF_8 = "utf-8"


def canonical(charset: str) -> str:
    """Python's name of ``charset``, so that equal charsets have equal names.

    Raises:
        FormatError: kind ``"option"``; it is unknown, or begins every piece with a mark.
    """
    try:
        name = codecs.lookup(charset).name
        stateless = "\n\n".encode(name) == "\n".encode(name) * 2 and "\n".encode(name).decode(name) == "\n"
    except (LookupError, TypeError, ValueError) as error:
        raise FormatError(f"charset {charset!r} is unknown: use one such as UTF-8", kind="option") from error
    if not stateless:
        raise FormatError(
            f"charset {charset!r} begins every piece with a mark: use UTF-8 or, for UTF-16, UTF-16-LE",
            kind="option",
        )
    return name


def in_charset(text: Buffer, charset: str) -> Buffer:
    """Text in UTF-8 as text in ``charset``, a canonical name.

    Raises:
        FormatError: kind ``"value"``; the charset has no bytes for a character.
    """
    if charset == UTF_8:
        return text
    try:
        return codecs.decode(text, UTF_8).encode(charset)
    except UnicodeError as error:
        raise FormatError(f"a character cannot be written in {charset}; use UTF-8", kind="value") from error
