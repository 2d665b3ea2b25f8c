"""Defects of writes that replace what is there."""

# ruff: noqa: E501 - a snippet is compared more easily if its lines are not broken

from __future__ import annotations

from property_tests.seeded.mutant import Mutant

_COMMITTER = "filesink/commit/committer.py"
_REPLACING = "filesink/commit/replaced_files.py"
_LISTED = "        files = self._listed(epoch, whole)\n"
_UNFINISHED = "        at_work = unfinished(self._open_ledger, own=epoch.sink_id)\n"
_PUBLISHER = "filesink/commit/publisher.py"
_TRANSACTIONS = "filesink/ledger/transactions.py"

OVERWRITES = (
    Mutant(
        "replaced files are removed before publication",
        _COMMITTER,
        "        pending, undone, discards, replaced = by_kind(committables)\n",
        "        pending, undone, discards, replaced = by_kind(committables)\n        self._remove(replaced)\n",
    ),
    Mutant(
        "replaced files stay",
        _COMMITTER,
        "        return self._remove(replaced)\n",
        "        return []\n",
    ),
    Mutant(
        "the removal of a replaced file is not synced",
        _COMMITTER,
        "sync_directories(sorted({parent(file.path) for file in replaced}))",
        "sync_directories([])",
    ),
    Mutant(
        "what has a grace is removed at once",
        _COMMITTER,
        "        return not isinstance(committable, ReplacedFile) or committable.is_due(now_ms)\n",
        "        return committable is not None\n",
    ),
    Mutant(
        "the time of a kept file begins with the epoch and not with its version",
        _PUBLISHER,
        "        now_ms = self._clock.now_ms()  # until now a reader may have begun with the version before\n",
        "        now_ms = record.decided_ms\n",
    ),
    Mutant(
        "what is kept is listed again, and its time begins anew",
        _REPLACING,
        "    left = {file.identity() for file in epoch.left if isinstance(file, ReplacedFile)}\n",
        "    left = set[tuple[str, int, str]]()\n",
    ),
    Mutant(
        "who writes next removes what is not due",
        "filesink/file_sink/left_files.py",
        "    due = [file for file in left if file.is_due(now)]\n",
        "    due = left\n",
    ),
    Mutant(
        "a removal that failed counts as done",
        _COMMITTER,
        "            log.warning(\"removing '%s' failed and is tried again: %s\", file.path, error)\n            return False\n",
        "            del error\n            return True\n",
    ),
    Mutant(
        "a file that somebody has changed is removed",
        "filesink/storage/local/store.py",
        "        if found is not None and (found.kind, found.size, found.version) != (Kind.FILE, size, version):\n",
        "        if found is not None and (found.kind, found.size) != (Kind.FILE, size):\n",
    ),
    Mutant(
        "files of an epoch that is not complete are replaced",
        _REPLACING,
        "            if name_of(path) not in at_work\n",
        "            if at_work is not None\n",
    ),
    Mutant(
        "ledgers are read before the files are listed",
        _REPLACING,
        _LISTED + _UNFINISHED,
        _UNFINISHED + _LISTED,
    ),
    Mutant(
        "a completion that power may take is believed",
        _REPLACING,
        "        ledger.directory.sync()\n",
        "",
    ),
    Mutant(
        "buckets without data are replaced",
        _REPLACING,
        "self._whole(prepared.committables))",
        "None)",
    ),
    Mutant(
        "one file is not replaced",
        _REPLACING,
        "[*prepared.committables, *replaced]",
        "[*prepared.committables, *replaced[1:]]",
    ),
    Mutant(
        "hidden files are replaced",
        "filesink/ledger/sweep.py",
        'if entry.kind is not Kind.DIRECTORY and entry.name[0] not in "._" and is_data(directory):',
        "if entry.kind is not Kind.DIRECTORY and is_data(directory):",
    ),
    Mutant(
        "overwrites do not exclude each other",
        "filesink/ledger/identity.py",
        "    return append_sink_id(uid) if mode is SaveMode.APPEND else EXCLUSIVE, cause\n",
        '    return append_sink_id(uid) if mode is SaveMode.APPEND else f"{EXCLUSIVE}-{ids.uuid()}", cause\n',
    ),
    Mutant(
        "the txn_id of a batch write is not claimed",
        _TRANSACTIONS,
        "            is_ours = claims.claim(record)\n",
        "            is_ours = True\n",
    ),
    Mutant(
        "a txn_id is claimed after its files are visible",
        _PUBLISHER,
        "        if not is_valid(record, self._ledger):\n",
        "        self._carry_out(record, committables, decider)\n        if not is_valid(record, self._ledger):\n",
    ),
)
