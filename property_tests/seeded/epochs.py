"""Defects of the epoch loop: who decides, what a replay is, what is swept."""

# ruff: noqa: E501 - a snippet is compared more easily if its lines are not broken

from __future__ import annotations

from property_tests.seeded.mutant import Mutant

_EPOCH = "filesink/commit/epoch.py"

EPOCHS = (
    Mutant(
        "files are published before the record",
        "filesink/commit/decision.py",
        "            standing = ledger.decide(record)\n",
        "            self._chain.publisher._committer.commit(self._sink.committable_codec.decode(1, record.committables.data))\n            standing = ledger.decide(record)\n",
    ),
    Mutant(
        "the record of the slot before is not waited for",
        "filesink/commit/chain.py",
        "            self.carry_through(head.record)\n            head = self.ledger.head()\n",
        "            head = replace(head, complete=True)\n",
    ),
    Mutant(
        "a lost slot counts as won",
        _EPOCH,
        "        if standing.nonce != record.nonce:",
        "        if standing.slot != record.slot:",
    ),
    Mutant(
        "a void slot counts as won",
        _EPOCH,
        "        if not self.ledger.is_open and not self.ledger.counts(record.slot):\n",
        "        if False:\n",
    ),
    Mutant(
        "a chain with a gap is gone on with",
        "filesink/ledger/damage.py",
        "    if missing is not None:\n",
        "    if False:\n",
    ),
    Mutant(
        "a failed publication removes what is published",
        "filesink/commit/epoch.py",
        "        committables = self._chain.publisher.publish(record, Decider.THIS_DRIVER)\n",
        "        try:\n            committables = self._chain.publisher.publish(record, Decider.THIS_DRIVER)\n        except Exception:\n            for one in gathered.reported:\n                self._chain.publisher._committer._store.delete(getattr(one, 'target', 'none'))\n            raise\n",
    ),
    Mutant(
        "an unknown decision discards the files",
        _EPOCH,
        "            raise  # what stands in the slot may be our own record\n",
        "            self._chain.publisher.discard(gathered.reported)\n            raise\n",
    ),
    Mutant(
        "a failed publication discards the files",
        "filesink/commit/epoch.py",
        "        committables = self._chain.publisher.publish(record, Decider.THIS_DRIVER)\n",
        "        try:\n            committables = self._chain.publisher.publish(record, Decider.THIS_DRIVER)\n        except Exception:\n            self._chain.publisher.discard(gathered.reported)\n            raise\n",
    ),
    Mutant(
        "an epoch that failed is forgotten",
        "filesink/commit/chain.py",
        "        self.forget()\n",
        "        pass\n",
    ),
    Mutant(
        "a replay is not counted",
        "filesink/commit/replay.py",
        "    if rows == decided.rows:\n",
        "    if rows != decided.rows or rows == decided.rows:\n",
    ),
    Mutant(
        "a replay's offsets are not compared",
        "filesink/commit/replay.py",
        "decided.fingerprint != cause.fingerprint",
        "not decided.fingerprint",
    ),
    Mutant(
        "a replay is skipped and not drained",
        "filesink/commit/repeats.py",
        "        return self.outcome_of(decided, cause, job.count_rows(), job.digest())\n",
        "        return self.outcome_of(decided, cause, decided.rows, decided.digest)\n",
    ),
    Mutant(
        "a replay writes again",
        "filesink/commit/replay.py",
        "cause.batch_id <= last.batch_id:",
        "cause.batch_id < last.batch_id:",
    ),
    Mutant(
        "the record of a batch is found by its number only, of the newest",
        "filesink/commit/replay.py",
        "    record = ledger.history.find(cause.query_id, cause.batch_id)\n",
        "    record = next(ledger.history.newest_first(), None)\n",
    ),
    Mutant(
        "upkeep forgets the last batch",
        "filesink/commit/decision.py",
        "    return None if epoch.head is None else epoch.head.record.last_batch\n",
        "    return None\n",
    ),
    Mutant(
        "columns are noted and not compared",
        "filesink/commit/recorded_schema.py",
        "    if last in (EMPTY, section):\n",
        "    if True:\n",
    ),
    Mutant(
        "upkeep forgets the columns",
        _EPOCH,
        "schema=schema_of(head))",
        "schema=schema_of(None))",
    ),
    Mutant(
        "states of tasks that did not run are lost",
        "filesink/commit/task_results.py",
        "    sections = {**kept, **{",
        "    sections = {**{",
    ),
    Mutant(
        "states of tasks that ran are kept as they were",
        "filesink/commit/task_results.py",
        "    sections = {**kept, **{result.subtask: result.state for result in results}}",
        "    sections = {**{result.subtask: result.state for result in results}, **kept}",
    ),
    Mutant(
        "nothing is ever swept",
        "filesink/commit/chain.py",
        "                self.telling.swept(self._sink.sweep(record, None))\n",
        "                pass\n",
    ),
    Mutant(
        "losers of good epochs are not swept",
        "filesink/commit/chain.py",
        "            elif losers is Losers.POSSIBLE:\n                self.telling.swept(self._sink.sweep(record, committables))\n",
        "",
    ),
    Mutant(
        "the sweep takes the next slot too",
        "filesink/ledger/sweep.py",
        "        if file.slot <= chain.complete_slot:",
        "        if file.slot <= chain.complete_slot + 1:",
    ),
    Mutant(
        "the sweep takes files of other sinks",
        "filesink/ledger/sweep.py",
        "if file.tag != tag or name_of(file.path) in named:",
        "if name_of(file.path) in named:",
    ),
    Mutant(
        "the sweep takes held files",
        "filesink/ledger/sweep.py",
        "if file.tag != tag or name_of(file.path) in named:",
        "if file.tag != tag:",
    ),
)
