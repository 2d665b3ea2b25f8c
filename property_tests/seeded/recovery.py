"""Defects of what an operator does about decided files that are gone."""

from __future__ import annotations

from property_tests.seeded.mutant import Mutant

_TAKING_BACK = "filesink/parts/taking_back.py"
_MAINTENANCE = "filesink/operations/maintenance.py"
_RETRACTION = "filesink/operations/retraction.py"
_GIVING_UP = "filesink/operations/lost_files.py"

RECOVERY = (
    Mutant(
        "files that were taken back come back",
        _TAKING_BACK,
        "        self._store.sync_directories(sorted(directories))\n",
        "",
    ),
    Mutant(
        "what an earlier call has taken back is not made to stay away",
        _TAKING_BACK,
        """        done = set(self._each.succeeding("taking back", self._take_away, undone))
        directories = {self._left_of(parent(file.target)) for file in undone}
""",
        """        there = [file for file in undone if self._store.is_published(file.staged, file.target)]
        done = set(self._each.succeeding("taking back", self._take_away, undone))
        directories = {parent(file.target) for file in there}
""",
    ),
    Mutant(
        "files of others are taken back",
        _TAKING_BACK,
        """        if self._store.is_published(file.staged, file.target):
            self._store.delete(file.target)
""",
        """        self._store.delete(file.target)
""",
    ),
    Mutant(
        "copies of what is held again are not durable",
        _RETRACTION,
        "        self._store.sync()\n",
        "",
    ),
    Mutant(
        "held files that were published are not held again",
        _RETRACTION,
        "                sources.append(replace(staged, path=published[staged.path]))\n",
        "                pass\n",
    ),
    Mutant(
        "the state of an epoch that is taken back goes on",
        _RETRACTION,
        "        states = {} if before is None else states_of(self._tiers, before.states)\n",
        "        states = states_of(self._tiers, record.states)\n",
    ),
    Mutant(
        "a power cut gives back what was given up, and it is published without a version",
        _GIVING_UP,
        """        for directory in sorted({parent(file.staged.path) for file in lost}):
            self._make_removals_durable(directory)
""",
        "",
    ),
    Mutant(
        "a loss that was accepted is not counted",
        _GIVING_UP,
        "        return outcome, sum(file.rows for file in lost if file.target not in unmerged)\n",
        "        return outcome, 0\n",
    ),
    Mutant(
        "a sweep goes by the clock of its host",
        _MAINTENANCE,
        "self._dead.find(older_than_ms, self._store_ms)",
        "self._dead.find(older_than_ms, self._ports.clock.now_ms)",
    ),
)
