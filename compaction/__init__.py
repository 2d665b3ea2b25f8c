"""Merging of small files before they are published: what to merge, when, and how."""

from compaction.compactors import FileCompactor
from compaction.contract import RewritingFileCompactor
from compaction.inputs import InputFile
from compaction.offline.finished import compact, plan
from compaction.offline.superseded import files
from compaction.offline.swap import CompactionPlan
from compaction.strategy import FileCompactStrategy

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
