"""Merging by bytes, and not at all."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from compaction.contract import BaseFileCompactor
from filesink.errors import CompactionError, ConfigError
from filesink.parts.file_format import BulkFormat, FileFormat, code_of
from filesink.parts.stages.merger import Combine, Combined, MergeRequest, SinkFiles, concatenate
from filesink.parts.stages.open_parts import Part
from filesink.storage.api import Store
from filesink.storage.staged import Piece, Tail


@dataclass(frozen=True, slots=True)
class ConcatFileCompactor(BaseFileCompactor):
    """See ``FileCompactor.concat_file_compactor``; also the combine itself."""

    delimiter: bytes = b""

    def __post_init__(self) -> None:
        if not isinstance(self.delimiter, bytes):
            raise ConfigError(
                f"delimiter takes bytes such as b'\\n', got {type(self.delimiter).__name__}", code="BAD_VALUE"
            )

    def combine(self, files: SinkFiles) -> Combine:
        """See ``FileCompactor.combine``."""
        del files
        return self

    def check(self, form: FileFormat) -> None:
        """See ``FileCompactor.check``; bulk files end with a footer and cannot be joined."""
        if isinstance(form, BulkFormat):
            raise ConfigError(
                f"files of {type(code_of(form)).__name__} cannot be joined byte by byte; use "
                "FileCompactor.record_wise_file_compactor()",
                code="COMPACTION",
            )

    def key(self, part: Part) -> Hashable:
        """See ``FileCompactor.key``; what ties a header to its records (Avro's marker) must be equal too."""
        return part[-1].signature, part[-1].suffix, part[-1].carry_over

    def __call__(self, store: Store, request: MergeRequest, path: str) -> Combined:
        """See ``Combine``."""
        pieces: list[Piece] = []
        for number, part in enumerate(request.parts):
            first, *others = part
            if number and self.delimiter:
                pieces.append(self.delimiter)
            header = first.header_size if number else 0
            pieces.append(Tail(staged=first.staged, start=header) if header else first.staged)
            pieces += [held.staged for held in others]
        staged = store.concat(pieces, path, target=request.target)
        expected = sum(map(_length, pieces))
        if staged.size != expected:
            raise CompactionError(
                f"joining {len(request.parts)} files into '{request.target}' made {staged.size} bytes of "
                f"{expected}; nothing was published and the files are kept. Look into the store's log",
                code="SIZE",
            )
        return Combined(staged=staged)


@dataclass(frozen=True, slots=True)
class IdenticalFileCompactor(BaseFileCompactor):
    """See ``FileCompactor.identical_file_compactor``."""

    def combine(self, files: SinkFiles) -> Combine:
        """See ``FileCompactor.combine``."""
        del files
        return concatenate

    def key(self, part: Part) -> Hashable:
        """See ``FileCompactor.key``; no two parts have the same."""
        return part[0].group


def _length(piece: Piece) -> int:
    match piece:
        case bytes():
            return len(piece)
        case Tail(staged=staged, start=start):
            return staged.size - start
        case _:
            return piece.size
