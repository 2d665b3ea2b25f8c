"""Markers that tell a reader who begins in the middle of a file where blocks end, as in Avro and Hadoop."""

from __future__ import annotations

import secrets
from typing import Final

#: Bytes of a marker, in Avro and in SequenceFiles.
MARKER_SIZE: Final = 16


def new_marker() -> bytes:
    """Sixteen random bytes: a marker that could be known in advance could be in somebody's records."""
    return secrets.token_bytes(MARKER_SIZE)
