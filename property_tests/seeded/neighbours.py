"""Defects that show only when others write below the same base path, or write in another way."""

from __future__ import annotations

from property_tests.seeded.mutant import Mutant

_IDENTITY = "filesink/ledger/identity.py"
_COLLECTED = "filesink/commit/external_epochs.py"
_GUARD = "filesink/commit/layout_guard.py"

NEIGHBOURS = (
    Mutant(
        "a batch write with a txn_id is written again",
        "filesink/commit/replay.py",
        "        case BatchWrite(remembered_in=name) if name:\n",
        "        case BatchWrite(remembered_in=name) if not name:\n",
    ),
    Mutant(
        "an abort after a failed commit removes what is decided",
        _COLLECTED,
        "        if None in results:\n",
        "        if results:\n",
    ),
    Mutant(
        "a task does not look whether its batch is decided",
        _COLLECTED,
        "    if find_decided(cause, head, ledger, options) is not None:\n        return None\n",
        "",
    ),
    Mutant(
        "a new query is not refused",
        _IDENTITY,
        "    elif on_new_query is OnNewQuery.REFUSE or earlier is not None or batch.batch_id > 0:\n",
        "    elif earlier is not None:\n",
    ),
    Mutant(
        "a query that was replaced may come back",
        _IDENTITY,
        "    elif on_new_query is OnNewQuery.REFUSE or earlier is not None or batch.batch_id > 0:\n",
        "    elif on_new_query is OnNewQuery.REFUSE:\n",
    ),
    Mutant(
        "a new query replaces nothing",
        "filesink/commit/chain.py",
        "        self._options.make_way(self._ports, check)\n",
        "",
    ),
    Mutant(
        "batches of another query are taken for those of the same number",
        _IDENTITY,
        "    if last is not None and last.query_id == batch.query_id:\n",
        "    if last is not None:\n",
    ),
    Mutant(
        "what a query has written before another came is forgotten",
        _IDENTITY,
        "        return earlier\n",
        "        return None\n",
    ),
    Mutant(
        "what was written before records were folded away is forgotten",
        _IDENTITY,
        'known = MicroBatch(query_id=query_id, batch_id=head.record.queries[query_id], fingerprint="")',
        "known = None",
    ),
    Mutant(
        "layout: files of other endings are let in",
        _GUARD,
        "    if there.suffix != new.suffix:\n",
        "    if there.format != new.format:\n",
    ),
    Mutant(
        "layout: nobody puts it",
        _GUARD,
        "            elif self._layouts.put(seen.number + 1, wanted):\n",
        "            else:\n",
    ),
    Mutant(
        "layout: every path begins anew",
        _GUARD,
        "        return next(visible(self._store), None) is None\n",
        "        return True\n",
    ),
    Mutant(
        "layout: what a driver that died has left beside it stays",
        "filesink/ledger/layouts.py",
        "        dead = [name for name, match in found if match and int(match[1]) <= newest]\n",
        "        dead = [name for name, match in found if match and int(match[1]) < 0]\n",
    ),
)
