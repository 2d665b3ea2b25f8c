"""Defects that show only when others write below the same base path, or write in another way."""

from __future__ import annotations

from property_tests.seeded.mutant import Mutant

_COLLECTED = "filesink/collected.py"

NEIGHBOURS = (
    Mutant(
        "a batch write with a txn_id is written again",
        "filesink/replay.py",
        "        case BatchWrite(txn_id=txn_id) if txn_id:\n",
        "        case BatchWrite(txn_id=txn_id) if not txn_id:\n",
    ),
    Mutant(
        "an abort after a failed commit removes what is decided",
        _COLLECTED,
        "            if self.ledger.read(slot) is None and not self.ledger.is_void(slot):\n",
        "            if slot >= 0:\n",
    ),
    Mutant(
        "a task does not look whether its batch is decided",
        _COLLECTED,
        "    if find_decided(cause, head, ledger, options) is not None:\n        return None\n",
        "",
    ),
)
