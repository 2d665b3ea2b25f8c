"""Which partition a row goes to, chosen for many rows at once, and the rows in the order of their partitions.

The client would choose the same by itself, row by row; but to fill one partition after the other takes it
half the time. The hash is that of Java's client (``Utils.murmur2`` of Apache Kafka), so that keys meet.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

ANY = -1  # the client chooses
_SEED, _MIX = np.uint32(0x9747B28C), np.uint32(0x5BD1E995)
_OF_REST = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF], np.uint32)  # the bytes behind the last whole word
_SHORT = np.iinfo(np.int16).max
_LONGEST_KEY = 4096  # bytes; each word takes as long for one row as for thousands


class Placing:
    """Places rows of one topic.

    Args:
        partitions: how many it has.
        first: where rows without a key begin, modulo ``partitions``.
    """

    def __init__(self, partitions: int, *, first: int = 0) -> None:
        self._partitions = partitions
        self._next = first

    def placed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """``batch`` by partitions, which each row has then; in each, the order of the rows is kept.

        Rows without a key go to one partition, the next ones to another.
        """
        found = self._found(batch)
        if found is None:
            return batch
        asked = batch.schema.get_field_index("partition")
        if asked >= 0:
            given = batch.column(asked).fill_null(ANY).to_numpy(zero_copy_only=False)
            found = np.where(given == ANY, found, given)
            batch = batch.drop_columns("partition")
        small = found.max(initial=0) <= _SHORT  # numbers of 16 bits are sorted in a tenth of the time
        order = np.argsort(found.astype(np.int16) if small else found, kind="stable")
        placed: pa.RecordBatch = batch.take(order)
        return placed.append_column("partition", pa.array(found[order], pa.int32()))

    def _found(self, batch: pa.RecordBatch) -> Any:
        """A partition for each row; ``None`` if the client had better choose."""
        self._next += 1
        keyless = self._next % self._partitions
        place = batch.schema.get_field_index("key")
        if place < 0:
            return np.full(batch.num_rows, keyless, np.int32)
        keys: Any = batch.column(place)
        hashes = murmur2(keys)
        if hashes is None:
            return None
        chosen = (hashes & np.uint32(0x7FFFFFFF)) % np.uint32(self._partitions)
        has_key = keys.is_valid().to_numpy(zero_copy_only=False)
        return np.where(has_key, chosen.astype(np.int32), keyless)


def murmur2(keys: Any) -> Any:
    """The hash of each key of an array of binaries, as ``uint32``; ``None`` if one is very long."""
    starts, lengths, words_at = _layout(keys)
    if len(lengths) and lengths.max() > _LONGEST_KEY:
        return None
    order = np.argsort(-lengths, kind="stable")  # so that those that have one more word come first
    starts, lengths = starts[order], lengths[order]
    whole, rest = lengths >> 2, lengths & 3
    hashes = _SEED ^ lengths.astype(np.uint32)
    have = np.searchsorted(-whole, -np.arange(whole.max(initial=0)), side="left")
    for place, count in enumerate(have):  # of words, not of rows
        word = words_at[starts[:count] + 4 * place] * _MIX
        word ^= word >> np.uint32(24)
        hashes[:count] = (hashes[:count] * _MIX) ^ (word * _MIX)
    last = (hashes ^ (words_at[starts + 4 * whole] & _OF_REST[rest])) * _MIX
    hashes = np.where(rest > 0, last, hashes)
    hashes = (hashes ^ (hashes >> np.uint32(13))) * _MIX
    found = np.empty_like(hashes)
    found[order] = hashes ^ (hashes >> np.uint32(15))
    return found


def _layout(keys: Any) -> tuple[Any, Any, Any]:
    """Where keys start, how long they are, and the four bytes from each byte on as a number."""
    kind = np.int64 if pt.is_large_binary(keys.type) else np.int32
    _, offsets, data = keys.buffers()
    ends = np.frombuffer(offsets, kind)[keys.offset : keys.offset + len(keys) + 1].astype(np.int64)
    first, size = (int(ends[0]), int(ends[-1] - ends[0])) if len(keys) else (0, 0)
    padded = np.zeros(size + 4, np.uint8)
    if size:
        padded[:size] = np.frombuffer(data, np.uint8)[first : first + size]
    words_at = np.ndarray(size + 1, "<u4", buffer=padded, strides=(1,))
    return ends[:-1] - first, np.diff(ends), words_at
