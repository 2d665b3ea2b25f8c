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
from filesink.errors import StorageError
from filesink.parts.file_format import FileFormat
from filesink.parts.stages.merger import Combine, Combined, MergeRequest, SinkFiles
from filesink.parts.stages.open_parts import Part
from filesink.storage.api import Store

if TYPE_CHECKING:
    from formats.api import BinaryOutput

_REWRITTEN_ON_DRIVER = 8 << 20  # bytes; decoding and encoding takes some hundred times as long as copying


class BaseFileCompactor(ABC):
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


class RewritingFileCompactor(BaseFileCompactor):
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
        """See ``BaseFileCompactor.combine``."""
        return Rewrite(self, files.format)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Runs a rewriting compactor; implements ``filesink.parts.stages.merger.Combine``."""

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
