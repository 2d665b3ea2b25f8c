"""The paths that are known, at 16 bytes each: a sorted array of hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Digests = NDArray[Any]

# Two of 10^9 paths have the same hash with a probability of 10^-21.
_BYTES: Final = 16
_KIND: Final = np.dtype(f"S{_BYTES}")  # compared as bytes; a zero at the end is no other than none there
_MOST_RECENT: Final = 1 << 16  # digests that wait to be merged into the large array


class KnownPaths:
    """A set of paths that only grows, and answers for many at a time."""

    def __init__(self) -> None:
        self._sorted: Digests = np.empty(0, _KIND)
        self._recent: Digests = np.empty(0, _KIND)

    def __len__(self) -> int:
        return len(self._sorted) + len(self._recent)

    @property
    def nbytes(self) -> int:
        """Memory that the hashes take."""
        return self._sorted.nbytes + self._recent.nbytes

    def add(self, paths: Iterable[str]) -> None:
        """Know ``paths`` from now on."""
        added = np.unique(_digests(paths))
        self._recent = np.union1d(self._recent, added[~_contains(self._sorted, added)])
        if len(self._recent) > _MOST_RECENT:
            places = np.searchsorted(self._sorted, self._recent)
            self._sorted = np.insert(self._sorted, places, self._recent)
            self._recent = np.empty(0, _KIND)

    def unknown(self, paths: Sequence[str]) -> list[int]:
        """The places of those that are not known, each path once."""
        # Sorted, they are looked for eight times as fast.
        digests, first = np.unique(_digests(paths), return_index=True)
        is_known = _contains(self._sorted, digests) | _contains(self._recent, digests)
        return [int(place) for place in np.sort(first[~is_known])]


def _contains(known: Digests, digests: Digests) -> NDArray[np.bool_]:
    if not len(known):
        return np.zeros(len(digests), np.bool_)
    places = np.minimum(np.searchsorted(known, digests), len(known) - 1)
    found: NDArray[np.bool_] = known[places] == digests
    return found


def _digests(paths: Iterable[str]) -> Digests:
    made = [
        hashlib.blake2b(path.encode(errors="surrogatepass"), digest_size=_BYTES).digest() for path in paths
    ]
    return np.array(made, _KIND)
