"""Defects of operations: what retention drops, what a rollback removes, and who is told."""

from __future__ import annotations

from property_tests.seeded.mutant import Mutant

_RETAIN = "filesink/operations/replacing/retain.py"
_RETENTION = "filesink/operations/replacing/retention.py"
_ERASE = "filesink/operations/erasing/erase.py"
_ROLLBACK = "filesink/operations/replacing/rollback.py"

OPERATIONS = (
    Mutant(
        "retention drops files that a driver still looks for",
        _RETAIN,
        "        gone = [file for file in beyond if not seen.is_busy(file)]\n",
        "        gone = list(beyond)\n",
    ),
    Mutant(
        "retention keeps one file less",
        _RETENTION,
        "(self.number is not None and index >= self.number)",
        "(self.number is not None and index >= self.number - 1)",
    ),
    Mutant(
        "a rollback goes back one version too far",
        _ROLLBACK,
        "seen.directory.snapshot(self.version).files",
        "seen.directory.snapshot(max(0, self.version - 1)).files",
    ),
    Mutant(
        "an erasure removes files that a driver still looks for",
        _ERASE,
        "idle = [file for file in live if not seen.is_busy(file)]",
        "idle = list(live)",
    ),
    Mutant(
        "an erasure drops what shares a file with an erased row",
        _ERASE,
        "            if erased[file.path] == file.rows:\n",
        "            if erased[file.path]:\n",
    ),
    Mutant(
        "an erasure is certified without a look beside the live files",
        _ERASE,
        "left = [*self._proof(live, files), *left_beside(seen, files), *known]",
        "left = [*self._proof(live, files), *known]",
    ),
    Mutant(
        "an erasure is certified without a second look at the live files",
        _ERASE,
        "left = [*self._proof(live, files), *left_beside(seen, files), *known]",
        "left = [*left_beside(seen, files), *known]",
    ),
    Mutant(
        "what an operation has made is not durable when it is decided",
        "filesink/operations/replacing/epochs.py",
        "self._store.sync()  # of the very store",
        "# of the very store",
    ),
    Mutant(
        "an operation puts off what it has to announce",
        "filesink/commit/epoch.py",
        "            return self._without_input(cause, Input.ENDED)\n",
        "            return self._without_input(cause, Input.GOES_ON)\n",
    ),
)
