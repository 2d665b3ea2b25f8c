"""Defects of what an operator does about decided files that are gone."""

from __future__ import annotations

from property_tests.seeded.mutant import Mutant

_RETRACTION = "filesink/retraction.py"
_GIVING_UP = "filesink/giving_up.py"

RECOVERY = (
    Mutant(
        "a record is taken back before its files",
        _RETRACTION,
        """        for file in published:
            self._store.delete(file.target)
        # Else a power cut could bring back files whose record is gone.
        self._store.sync_directories(directories)
        forget(record, ledger)
        ledger.retract(record.slot)
""",
        """        forget(record, ledger)
        ledger.retract(record.slot)
        for file in published:
            self._store.delete(file.target)
        self._store.sync_directories(directories)
""",
    ),
    Mutant(
        "files that were taken back come back",
        _RETRACTION,
        """        # Else a power cut could bring back files whose record is gone.
        self._store.sync_directories(directories)
""",
        "",
    ),
    Mutant(
        "what an earlier call has taken back is not made to stay away",
        _RETRACTION,
        "        directories = sorted({parent(file.target) for file in files})\n",
        "        directories = sorted({parent(file.target) for file in published})\n",
    ),
    Mutant(
        "a hidden name that was given back is not durable",
        _RETRACTION,
        """            self._hide_again(file, record.slot)
        self._store.sync_directories(directories)
""",
        """            self._hide_again(file, record.slot)
""",
    ),
    Mutant(
        "files of others are taken back",
        _RETRACTION,
        "[file for file in files if self._store.is_published(file.staged, file.target)]",
        "files",
    ),
    Mutant(
        "held files that were published are not given their names back",
        _RETRACTION,
        "        if not is_new and isinstance(file.staged, HiddenFile):",
        "        if is_new and isinstance(file.staged, HiddenFile):",
    ),
    Mutant(
        "a loss that was accepted is not counted",
        _GIVING_UP,
        "        return outcome, sum(file.rows for file in lost if file.target not in unmerged)\n",
        "        return outcome, 0\n",
    ),
)
