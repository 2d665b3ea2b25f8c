"""The files that go into a merge, as a compactor reads them."""

from __future__ import annotations

import hashlib
import io
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import BinaryIO, Protocol, cast

import pyarrow as pa

from filesink.parts.stages.open_parts import Part
from filesink.storage.api import Store
from filesink.storage.ranged import RangedFile
from filesink.storage.staged import Staged


class InputFile(Protocol):
    """One file to be merged. ``rows``: its records; ``size``: its bytes.

    ``signature`` names format, options and schema; files of equal signatures have equal schemas.
    """

    @property
    def rows(self) -> int:
        """Records in the file."""
        ...

    @property
    def size(self) -> int:
        """Bytes of the file."""
        ...

    @property
    def signature(self) -> str:
        """Of format, options and schema."""
        ...

    def open(self) -> BinaryIO:
        """The file from its first byte, seekable; for the caller to close.

        Raises:
            StagedDataLost: it is not there as it was closed.
        """
        ...


def signature_of(schema: pa.Schema) -> str:
    """An ``InputFile.signature`` of files of one format and options, with everything that ``schema`` says."""
    # What pa.Schema.to_string says is cut: of two long names only the beginning would count.
    return hashlib.sha256(schema.serialize().to_pybytes()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldInput:
    """A closed part, of one file or several; implements ``InputFile``."""

    store: Store
    part: Part

    @property
    def rows(self) -> int:
        """See ``InputFile.rows``."""
        return sum(held.rows for held in self.part)

    @property
    def size(self) -> int:
        """See ``InputFile.size``."""
        return sum(held.size for held in self.part)

    @property
    def signature(self) -> str:
        """See ``InputFile.signature``."""
        return self.part[-1].signature

    def open(self) -> BinaryIO:
        """See ``InputFile.open``."""
        files = [held.staged for held in self.part]
        if len(files) == 1:
            return self.store.open_staged(files[0])
        for file in files:
            self.store.verify(file)
        return cast("BinaryIO", io.BufferedReader(_Segments(self.store, files)))


class _Segments(RangedFile):
    """Several files read as one. At most one is open at a time."""

    def __init__(self, store: Store, files: Sequence[Staged]) -> None:
        self._store = store
        self._files = files
        self._starts = [0, *accumulate(file.size for file in files)]
        self._open: tuple[int, BinaryIO] | None = None
        super().__init__(self._starts[-1])

    def _range(self, start: int, most: int) -> bytes:
        index = bisect_right(self._starts, start) - 1
        file = self._file(index)
        file.seek(start - self._starts[index])
        return file.read(most)

    def close(self) -> None:
        """Close the file that is open, too."""
        if self._open is not None:
            self._open[1].close()
            self._open = None
        super().close()

    def _file(self, index: int) -> BinaryIO:
        if self._open is None or self._open[0] != index:
            if self._open is not None:
                self._open[1].close()
            self._open = index, self._store.open_staged(self._files[index])
        return self._open[1]
