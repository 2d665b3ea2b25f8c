"""Decimals as PostgreSQL's ``numeric``: a sign, and digits of four decimal places each. Pure.

    number of digits, weight of the first, sign, digits after the point; then the digits, 16 bits each

The server strips zeros at either end, so every value of a column has as many digits as the column needs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_BASE = 10_000
_PLACES = 4  # of a digit
_NEGATIVE = 0x4000
_IN_64_BITS = 18  # digits


def numerics(array: pa.Array[Any]) -> npt.NDArray[Any]:
    """The values of a ``decimal128`` array; what a null has for a value is undefined."""
    scale: int = array.type.scale
    before = -(-(array.type.precision - scale) // _PLACES)  # digits before the point, of four places each
    after = -(-scale // _PLACES)
    negative, limbs = _magnitudes(array)
    kind = np.dtype([("head", ">u2", 4), ("digits", ">u2", before + after)])
    found = np.zeros(len(array), kind)
    found["head"][:, 0] = before + after
    found["head"][:, 1] = (before - 1) & 0xFFFF
    found["head"][:, 2] = np.where(negative, _NEGATIVE, 0)
    found["head"][:, 3] = scale
    digits = found["digits"]
    for place in reversed(range(before + after)):
        # The last digit may have fewer places after the point than four.
        missing = -scale % _PLACES if place == before + after - 1 and after else 0
        digits[:, place] = _take_off(limbs, _BASE // 10**missing) * 10**missing
    return found


def _magnitudes(array: pa.Array[Any]) -> tuple[npt.NDArray[np.bool_], list[npt.NDArray[np.uint64]]]:
    """Where values are negative, and each without its sign, as limbs, the most significant first."""
    data: Any = array.buffers()[1]
    words = np.frombuffer(data, np.uint64, 2 * len(array), offset=16 * array.offset).reshape(-1, 2)
    low, high = words[:, 0], words[:, 1]
    negative = high >= 1 << 63
    low = np.where(negative, ~low + np.uint64(1), low)
    if array.type.precision <= _IN_64_BITS:
        return negative, [low]
    high = np.where(negative, ~high + (low == 0), high)
    half, mask = np.uint64(32), np.uint64(0xFFFF_FFFF)
    return negative, [high >> half, high & mask, low >> half, low & mask]


def _take_off(limbs: list[npt.NDArray[np.uint64]], divisor: int) -> npt.NDArray[np.uint64]:
    """Divide ``limbs`` in place; the remainders."""
    by, rest = np.uint64(divisor), np.zeros_like(limbs[0])
    for place, limb in enumerate(limbs):
        limbs[place], rest = np.divmod((rest << np.uint64(32)) + limb, by)
    return rest
