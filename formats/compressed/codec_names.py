"""Names of codecs as people write them."""

from __future__ import annotations

from typing import Any, get_args

from formats.errors import FormatError


def codec_name(given: object, names: Any, *, what: str) -> Any:
    """The member of ``names`` that is meant, regardless of case: ``ZSTD`` is ``zstd``.

    Args:
        given: what the user gave.
        names: a ``Literal`` of all names, in lower case.
        what: the format that has these codecs, for messages.

    Raises:
        FormatError: kind ``"option"``; there is no codec of that name.
    """
    known = get_args(names)
    found = given.lower() if isinstance(given, str) else given
    if found not in known:
        shown = repr(given)[:40]
        why = ", whose libraries are under the GPL" if found == "lzo" else ""
        raise FormatError(
            f"{what} has no compression {shown}{why}: use one of {', '.join(known)}", kind="option"
        )
    return found
