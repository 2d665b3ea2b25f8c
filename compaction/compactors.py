"""Compactors as users make them, with Flink's names."""

from __future__ import annotations

from compaction.concat import ConcatFileCompactor, IdenticalFileCompactor
from compaction.contract import BaseFileCompactor
from compaction.record_wise import RecordWiseFileCompactor


class FileCompactor(BaseFileCompactor):
    """Makes the built-in compactors. Derive from ``RewritingFileCompactor`` for one of your own."""

    @staticmethod
    def concat_file_compactor(delimiter: bytes = b"") -> BaseFileCompactor:
        """Joins the bytes of files: for text, JSON lines, CSV and other row formats.

        The store copies them, on a local disk inside the kernel. A header is taken from the first
        file only.

        Args:
            delimiter: between two files, not after the last.
        """
        return ConcatFileCompactor(delimiter)

    @staticmethod
    def record_wise_file_compactor() -> BaseFileCompactor:
        """Reads the records of files and writes them anew: for formats whose files say their columns.

        Many small row groups become few large ones. Options and metadata are those of the sink's format.
        """
        return RecordWiseFileCompactor()

    @staticmethod
    def identical_file_compactor() -> BaseFileCompactor:
        """Publishes each file as it is when its bucket's time has come; for any format."""
        return IdenticalFileCompactor()


# They derive from the contract only. This makes isinstance() take them for compactors, too.
for _kind in (ConcatFileCompactor, IdenticalFileCompactor, RecordWiseFileCompactor):
    FileCompactor.register(_kind)
