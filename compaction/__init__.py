"""Merging of small files before they are published: what to merge, when, and how."""

from compaction.compactors import FileCompactor, RewritingFileCompactor
from compaction.finished import CompactionPlan, compact, plan
from compaction.inputs import InputFile
from compaction.strategy import FileCompactStrategy

__all__ = [
    "CompactionPlan",
    "FileCompactStrategy",
    "FileCompactor",
    "InputFile",
    "RewritingFileCompactor",
    "compact",
    "plan",
]
