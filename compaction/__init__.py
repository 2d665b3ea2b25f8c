"""Merging of small files: what to merge, when, and how.

The modules here merge before files are published, as a stage of the sink; ``offline`` merges finished files.
Stands above ``filesink``, which never imports it. May use ``formats`` and, outside of ``offline``, of
``filesink`` only ``parts``, ``storage``, ``api`` and the ground. Imports neither Spark nor a store's client.
"""

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
