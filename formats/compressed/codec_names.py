"""Names of codecs as people write them."""

from __future__ import annotations

from typing import Any, get_args

from formats.errors import FormatError


def codec_name(given: object, names: Any, *, what: str) -> Any:
    """The one of ``names`` that is meant, in any case: ``ZSTD`` is ``zstd``.

    Args:
        given: by the user.
        names: a ``Literal`` of all, in lower case.
        what: has no others, in messages.

    Raises:
        FormatError: kind ``"option"``; it is none of them.
    """
    known = get_args(names)
    found = given.lower() if isinstance(given, str) else given
    if found not in known:
        shown = repr(given)[:40]
        raise FormatError(
            f"compression {shown} is none of {what}: use one of {', '.join(known)}", kind="option"
        )
    return found
