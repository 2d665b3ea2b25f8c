"""Text in other charsets than UTF-8: those in which every line stands for itself."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from formats.errors import FormatError

if TYPE_CHECKING:
    from formats.api import Buffer

UTF_8 = "utf-8"
_SURROGATES: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_REPLACEMENT: Final = "\ufffd".encode()
# Every character of ASCII, and what Python's codecs of escapes take for one.
_SAMPLE: Final = "".join(map(chr, range(128))) + "\\u0041\n"


def canonical(charset: str) -> str:
    """Python's name of ``charset``, so that equal charsets have equal names.

    Raises:
        FormatError: kind ``"option"``; it is unknown, begins every piece with a mark, or is one of
            Python's codecs that write other characters in the place of some of ASCII's.
    """
    try:
        name = codecs.lookup(charset).name
        keeps_text = _keeps_text(name)
    except (LookupError, TypeError, ValueError) as error:
        raise FormatError(f"charset {charset!r} is unknown: use one such as UTF-8", kind="option") from error
    if not keeps_text:
        raise FormatError(
            f"charset {charset!r} begins every piece with a mark, or does not have every character of ASCII "
            "as one: use UTF-8 or, for UTF-16, UTF-16-LE",
            kind="option",
        )
    return name


def _keeps_text(name: str) -> bool:
    """Whether text may be encoded in pieces, and line feeds, delimiters and quotes stay what they are."""
    try:
        pieces = [character.encode(name) for character in _SAMPLE]
        whole = b"".join(pieces)
        is_kept = whole == _SAMPLE.encode(name) and whole.decode(name) == _SAMPLE
    except UnicodeError:
        return False
    return is_kept and len(set(map(len, pieces))) == 1


def line_feed(charset: str) -> bytes:
    """The bytes of a line feed, as many as of every other character of ASCII: one, two or four."""
    return "\n".encode(charset)


def repaired(text: Buffer) -> Buffer:
    """Lines in UTF-8 with U+FFFD in the place of what is none; the very same bytes if all of them are.

    A string of Spark's may hold any bytes. The characters are those that Java puts there, and so Spark's
    own writers. Line feeds, quotes and delimiters in ASCII are never a part of what is replaced.
    """
    if _is_utf_8(text):
        return text
    # Java puts one in the place of half a surrogate pair, whole or cut, Python one in that of each byte.
    return _SURROGATES.sub(_REPLACEMENT, bytes(memoryview(text))).decode(UTF_8, "replace").encode()


def _is_utf_8(text: Buffer) -> bool:
    """As one value for Arrow, which looks at gibibytes per second: one or two hundredths of a rendering."""
    data = pa.py_buffer(text)
    limits = pa.py_buffer(np.array([0, data.size], np.int64).data)
    try:
        pa.LargeStringArray.from_buffers(1, limits, data).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


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
