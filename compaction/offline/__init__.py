"""Merging of finished files, outside the promise of the sink; see ``docs/compaction.md``.

May use everything of ``filesink`` and ``compaction``.
"""
