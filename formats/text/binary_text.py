"""Bytes as text: base64 for JSON, ``[00 FF 41]`` for CSV. Whole columns at once."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from formats import columns
from formats.arrow import Column, Text, pc
from formats.columns import Bytes, Offsets

_BASE64: Final = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)
_HEX: Final = np.frombuffer(b"".join(b"%02X " % byte for byte in range(256)), np.uint8).reshape(256, 3)


def base64_text(column: Column) -> Text:
    """Standard base64 with padding, as Spark's JSON writer."""
    starts = columns.offsets(column)
    sizes = np.diff(starts)
    groups = -(-sizes // 3)  # of three bytes, each four characters
    ends = np.concatenate(([0], np.cumsum(groups)))
    padded = np.zeros(int(ends[-1]) * 3, np.uint8)
    padded[_moved(starts, ends[:-1] * 3)] = columns.data_array(column)
    characters = _sextets(padded.reshape(-1, 3)).reshape(-1)
    missing = groups * 3 - sizes
    last = ends[1:] * 4
    characters[last[missing >= 1] - 1] = ord("=")
    characters[last[missing == 2] - 2] = ord("=")
    return _strings(ends * 4, characters, column)


def hex_text(column: Column) -> Text:
    """``[00 FF 41]``, and ``[]`` for no bytes, as Spark's CSV writer."""
    starts = columns.offsets(column)
    sizes = np.diff(starts)
    # "[" and three characters per byte, of which the last one's space becomes "]".
    lengths = np.where(sizes == 0, 2, 3 * sizes + 1)
    ends = np.concatenate(([0], np.cumsum(lengths)))
    characters = np.empty(int(ends[-1]), np.uint8)
    characters[ends[:-1]] = ord("[")
    bytes_at = np.repeat(ends[:-1] + 1 - 3 * (starts[:-1] - starts[0]), sizes) + 3 * np.arange(
        int(sizes.sum())
    )
    characters[bytes_at[:, None] + np.arange(3)] = _HEX[columns.data_array(column)]
    characters[ends[1:] - 1] = ord("]")
    return _strings(ends, characters, column)


def _moved(starts: Offsets, to: Offsets) -> Offsets:
    """New positions of all bytes when value i, which began at ``starts[i]``, begins at ``to[i]``."""
    sizes = np.diff(starts)
    moved: Offsets = np.repeat(to - (starts[:-1] - starts[0]), sizes) + np.arange(int(sizes.sum()))
    return moved


def _sextets(triples: Bytes) -> Bytes:
    first, second, third = triples.T
    codes = np.empty((len(triples), 4), np.uint8)
    codes[:, 0] = first >> 2
    codes[:, 1] = (first & 3) << 4 | second >> 4
    codes[:, 2] = (second & 15) << 2 | third >> 6
    codes[:, 3] = third & 63
    return _BASE64[codes]


def _strings(ends: Offsets, characters: Bytes, column: Column) -> Text:
    if int(ends[-1]) >= 2**31:
        raise pa.ArrowCapacityError("more than 2 GiB of text")
    text = pa.StringArray.from_buffers(
        len(column), pa.py_buffer(ends.astype(np.int32).data), pa.py_buffer(characters.data)
    )
    return pc.if_else(column.is_valid(), text, None) if column.null_count else text
