"""Merging of small files before they are published: what to merge, when, and how."""

from compaction.compactors import FileCompactor, RewritingFileCompactor
from compaction.finished import compact, plan
from compaction.inputs import InputFile
from compaction.strategy import FileCompactStrategy
from compaction.superseded import files
from compaction.swap import CompactionPlan

__all__ = [
    "CompactionPlan",
    "FileCompactStrategy",
    "FileCompactor",
    "InputFile",
    "RewritingFileCompactor",
    "compact",
    "files",
    "plan",
]
