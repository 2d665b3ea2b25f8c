"""Defects of how epochs come into the inventory; the histories of whole sinks hunt for them."""

from __future__ import annotations

from property_tests.seeded.mutant import Mutant

_PUBLISHER = "filesink/commit/publisher.py"
_NOTING = "filesink/inventory/noting.py"
_DRAFTS = "filesink/inventory/drafts.py"
_LOST = "filesink/operations/lost_files.py"
_NOTE = "        if self._inventory is not None:\n            self._inventory.note(record, committables)\n"
_VOID = "            self._ledger.complete(record, left=self._ledger.history.left_before(record.slot))\n"

NOTING = (
    Mutant("an epoch gets no version", _PUBLISHER, _NOTE, ""),
    Mutant(
        "an epoch is complete before it has its version",
        _PUBLISHER,
        _NOTE,
        "        self._ledger.complete(record)\n" + _NOTE,
    ),
    Mutant(
        "an epoch has its version before it is published",
        _PUBLISHER,
        "        kept = self._until_done(\n",
        _NOTE + "        kept = self._until_done(\n",
    ),
    Mutant(
        "the epoch of a claim that another write has gets a version",
        _PUBLISHER,
        _VOID,
        "            self._inventory and self._inventory.note(record, committables)\n" + _VOID,
    ),
    Mutant(
        "a replay looks for its version above the newest that its driver knows",
        _NOTING,
        "self._inventory.append(draft, floor=record.after_version)",
        "self._inventory.append(draft, floor=self._inventory.newest())",
    ),
    Mutant(
        "a record says that a version is there which is not",
        "filesink/commit/decision.py",
        "            after_version=self._chain.publisher.newest_version(),\n",
        "            after_version=self._chain.publisher.newest_version() + 1,\n",
    ),
    Mutant(
        "files that were given up are in the inventory",
        _LOST,
        "publisher.end(record, there, failed=",
        "publisher.end(record, committables, failed=",
    ),
    Mutant(
        "dead letters are in the inventory",
        _DRAFTS,
        "        if isinstance(file, PendingFile) and is_data(file.bucket)\n",
        "        if isinstance(file, PendingFile)\n",
    ),
    Mutant(
        "a replaced file stays in the inventory",
        _DRAFTS,
        "        case ReplacedFile(path=path) | SupersededFile(path=path) | UndoneFile(target=path):\n",
        "        case SupersededFile(path=path) | UndoneFile(target=path):\n",
    ),
    Mutant(
        "a superseded file stays in the inventory",
        _DRAFTS,
        "        case ReplacedFile(path=path) | SupersededFile(path=path) | UndoneFile(target=path):\n",
        "        case ReplacedFile(path=path) | UndoneFile(target=path):\n",
    ),
    Mutant(
        "a file in the inventory has the rows of its epoch",
        _DRAFTS,
        "AddedFile(path=file.target, size=file.size, rows=file.rows)",
        "AddedFile(path=file.target, size=file.size, rows=record.rows)",
    ),
    Mutant(
        "what follows files that were given up gets no version",
        _LOST,
        "        publisher.end(following, [], later=left.decode(codec) if left.data else ())\n",
        "        ledger.complete(following, left=left)\n",
    ),
)
