"""Merging of small files before they are published: what to merge, when, and how."""

from compaction.compactors import FileCompactor, RewritingFileCompactor
from compaction.inputs import InputFile
from compaction.strategy import FileCompactStrategy

__all__ = ["FileCompactStrategy", "FileCompactor", "InputFile", "RewritingFileCompactor"]
