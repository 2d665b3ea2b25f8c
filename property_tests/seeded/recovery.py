"""Defects of what an operator does about decided files that are gone."""

from __future__ import annotations

from property_tests.seeded.mutant import Mutant

_RETRACTION = "filesink/retraction.py"
_GIVING_UP = "filesink/giving_up.py"

_DELETED = """        for file in files:
            if self._store.is_published(file.staged, file.target):
                self._store.delete(file.target)
        # Else a power cut could bring back files of an epoch that is undone.
        self._store.sync_directories(directories)
"""
_UNDONE = """        copy = remembered(record, ledger)
        if copy is not None:
            self._undo(*copy, {})
        self._undo(ledger, record, moved)
"""

RECOVERY = (
    Mutant(
        "an epoch is undone before its files are gone",
        _RETRACTION,
        _DELETED + _UNDONE,
        _UNDONE + _DELETED,
    ),
    Mutant(
        "files that were taken back come back",
        _RETRACTION,
        """        # Else a power cut could bring back files of an epoch that is undone.
        self._store.sync_directories(directories)
""",
        "",
    ),
    Mutant(
        "what an earlier call has taken back is not made to stay away",
        _RETRACTION,
        "        directories = sorted({parent(file.target) for file in files})\n",
        """        there = [file for file in files if self._store.is_published(file.staged, file.target)]
        directories = sorted({parent(file.target) for file in there})
""",
    ),
    Mutant(
        "the new name of what is held again is not durable",
        _RETRACTION,
        "        self._store.sync_directories(sorted({parent(path) for path in moved}))\n",
        "",
    ),
    Mutant(
        "files of others are taken back",
        _RETRACTION,
        """            if self._store.is_published(file.staged, file.target):
                self._store.delete(file.target)
""",
        """            self._store.delete(file.target)
""",
    ),
    Mutant(
        "held files that were published are not held again",
        _RETRACTION,
        """                elif target and self._store.is_published(old, target):
                    self._store.publish(replace(old, path=target), new.path)
""",
        "",
    ),
    Mutant(
        "the state of an epoch that is taken back goes on",
        _RETRACTION,
        """        states = {} if before is None else states_of(self._tiers, before.states)
        held = {
""",
        """        states = states_of(self._tiers, record.states)
        held = {
""",
    ),
    Mutant(
        "a loss that was accepted is not counted",
        _GIVING_UP,
        "        return outcome, sum(file.rows for file in lost if file.target not in unmerged)\n",
        "        return outcome, 0\n",
    ),
)
