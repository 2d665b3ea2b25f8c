"""How several files become one: by their bytes, by their records, not at all, or in your own way.

Rules:
1. A compactor is pickled to wherever merges run; it keeps nothing of a file.
2. Memory does not grow with the size of the files.
3. Records keep their order: that of the files, and within each file its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction.inputs import HeldInput, InputFile
from filesink.errors import CompactionError, ConfigError, StorageError
from filesink.parts.file_format import BulkFormat, FileFormat, code_of
from filesink.parts.merging import Combine, Combined, MergeRequest, SinkFiles, concatenate
from filesink.parts.open_parts import Part
from filesink.storage.api import Store
from filesink.storage.staged import Piece, Tail

if TYPE_CHECKING:
    from formats.api import BinaryOutput

_REWRITTEN_ON_DRIVER = 8 << 20  # bytes; decoding and encoding takes some hundred times as long as copying


class FileCompactor(ABC):
    """Makes one file of several.

    Derive from ``RewritingFileCompactor`` for one of your own.

    Attributes:
        on_driver: bytes; what is more in an epoch is merged by a job. ``None`` for 256 MiB.
    """

    on_driver: int | None = None

    @abstractmethod
    def combine(self, files: SinkFiles) -> Combine:
        """What merges files of this sink; pickled. Called on the driver when the sink is built."""

    def check(self, form: FileFormat) -> None:
        """Raise ``ConfigError`` (``COMPACTION``) if files of ``form`` cannot be merged like this."""
        del form

    def key(self, part: Part) -> Hashable:
        """Parts of one bucket are merged only if their keys are equal: format, options, schema, ending."""
        return part[-1].signature, part[-1].suffix

    @staticmethod
    def concat_file_compactor(delimiter: bytes = b"") -> FileCompactor:
        """Joins the bytes of files: for text, JSON lines, CSV and other row formats.

        The store copies them, on a local disk inside the kernel. A header is taken from the first
        file only.

        Args:
            delimiter: between two files, not after the last.
        """
        return ConcatFileCompactor(delimiter)

    @staticmethod
    def record_wise_file_compactor() -> FileCompactor:
        """Reads the records of files and writes them anew: for formats whose files say their columns.

        Many small row groups become few large ones. Options and metadata are those of the sink's format.
        """
        from compaction.record_wise import RecordWiseFileCompactor

        return RecordWiseFileCompactor()

    @staticmethod
    def identical_file_compactor() -> FileCompactor:
        """Publishes each file as it is when its bucket's time has come; for any format."""
        return IdenticalFileCompactor()


@dataclass(frozen=True, slots=True)
class ConcatFileCompactor(FileCompactor):
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
class IdenticalFileCompactor(FileCompactor):
    """See ``FileCompactor.identical_file_compactor``."""

    def combine(self, files: SinkFiles) -> Combine:
        """See ``FileCompactor.combine``."""
        del files
        return concatenate

    def key(self, part: Part) -> Hashable:
        """See ``FileCompactor.key``; no two parts have the same."""
        return part[0].group


class RewritingFileCompactor(FileCompactor):
    """A compactor that reads files and writes a new one. Derive from it for your own."""

    on_driver = _REWRITTEN_ON_DRIVER

    @abstractmethod
    def rewrite(self, inputs: Sequence[InputFile], output: BinaryOutput, form: FileFormat) -> int:
        """Write the records of ``inputs`` into ``output`` as one file, and return how many there are.

        Called in a task, once per file to be made; again, for another output, if the task is retried.
        What it returns is compared with the records that the inputs are known to have: if they
        differ, the epoch fails and nothing is lost.
        """

    def combine(self, files: SinkFiles) -> Combine:
        """See ``FileCompactor.combine``."""
        return Rewrite(self, files.format)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Runs a rewriting compactor; implements ``filesink.parts.merging.Combine``."""

    compactor: RewritingFileCompactor
    form: FileFormat

    def __call__(self, store: Store, request: MergeRequest, path: str) -> Combined:
        """See ``Combine``."""
        inputs = [HeldInput(store=store, part=part) for part in request.parts]
        output = store.create(path, target=request.target)
        try:
            rows = self.compactor.rewrite(inputs, output, self.form)
            return Combined(staged=output.close(), rows=rows)
        except BaseException:  # a stopped worker leaves its file as well; it has a name of ours and is swept
            with suppress(StorageError):
                output.discard()
            raise


def _length(piece: Piece) -> int:
    match piece:
        case bytes():
            return len(piece)
        case Tail(staged=staged, start=start):
            return staged.size - start
        case _:
            return piece.size
