"""Markers that tell a reader who begins in the middle of a file where blocks end, as in Avro and Hadoop."""

from __future__ import annotations

import secrets
from typing import BinaryIO, Final

#: Bytes of a marker, in Avro and in SequenceFiles.
MARKER_SIZE: Final = 16
_BLOCK: Final = 256 << 10  # bytes read at a time


def new_marker() -> bytes:
    """Sixteen random bytes: a marker that could be known in advance could be in somebody's records."""
    return secrets.token_bytes(MARKER_SIZE)


def find(file: BinaryIO, mark: bytes, *, start: int, end: int) -> int | None:
    """Where ``mark`` first begins in ``[start, end)``, all of it in there; ``None`` for nowhere."""
    file.seek(start)
    window, at = b"", start
    while at < end and (block := file.read(min(_BLOCK, end - at))):
        window += block
        at += len(block)
        place = window.find(mark)
        if place >= 0:
            return at - len(window) + place
        window = window[-(len(mark) - 1) :]
    return None
