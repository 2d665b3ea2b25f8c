"""Defects of announcing: too early, never, forgotten, elsewhere."""

# ruff: noqa: E501 - a snippet is compared more easily if its lines are not broken

from __future__ import annotations

from property_tests.seeded.mutant import Mutant

_PUBLISHER = "filesink/commit/publisher.py"
_DUE = "filesink/metastore/due_partitions.py"
_COMMITTER = "filesink/metastore/partition_committer.py"
_POLICY = "filesink/metastore/metastore_policy.py"
_WAITING = "filesink/metastore/announcements.py"

METASTORE = (
    Mutant(
        "partitions are announced before their files",
        _PUBLISHER,
        "        kept = self._until_done(\n",
        "        self.announce(record, decider)\n        kept = self._until_done(\n",
    ),
    Mutant(
        "an epoch is complete before it is announced",
        _PUBLISHER,
        "        self.announce(record, decider)\n        self.end(record, committables, failed=kept, later=later)\n",
        "        self.end(record, committables, failed=kept, later=later)\n        self.announce(record, decider)\n",
    ),
    Mutant(
        "what an earlier driver has decided is not announced",
        _PUBLISHER,
        "            commit = self._aggregated.restore_commit\n",
        "            return\n",
    ),
    Mutant(
        "what waits is forgotten",
        "filesink/commit/chain.py",
        "            waiting=() if continued is None else self.publisher.waiting(continued.record.waiting),\n",
        "",
    ),
    Mutant(
        "what waits is not put on record",
        "filesink/commit/decision.py",
        "            waiting=waiting,\n",
        "",
    ),
    Mutant(
        "partitions that wait are only those of the newest epoch",
        _WAITING,
        "                found[value.bucket] = replace(value, slot=slot)\n",
        "                pass\n",
    ),
    Mutant(
        "the end announces nothing",
        _DUE,
        "epoch.input is Input.ENDED or self.commit.trigger",
        "self.commit.trigger",
    ),
    Mutant(
        "a metastore that fails counts as done",
        _POLICY,
        "            return batch\n",
        "            return ()\n",
    ),
    Mutant(
        "a policy that fails is not repeated",
        _COMMITTER,
        "        return [values[one.bucket] for one in left]\n",
        "        return []\n",
    ),
    Mutant(
        "a lost reply counts as done",
        _POLICY,
        "        added = self.metastore.add_partitions(table, new)\n",
        "        try:\n            added = self.metastore.add_partitions(table, new)\n        except MetastoreError:\n            return {}\n",
    ),
    Mutant(
        "partitions are added where the base path is not",
        "filesink/metastore/locations.py",
        "return f\"{base.rstrip('/')}/{bucket}\" if bucket else base",
        "return base",
    ),
    Mutant(
        "a partition that an overwrite empties is not announced",
        _WAITING,
        "            case ReplacedFile(path=path):\n                files.setdefault(parent(path), [])\n",
        "",
    ),
    Mutant(
        "nobody looks before an epoch is decided",
        _COMMITTER,
        "        self.check([*_partitions(found.now), *first])\n",
        "",
    ),
    Mutant(
        "a partition that is elsewhere is taken for ours",
        "filesink/metastore/tables/partitions.py",
        "        if same_place(partition.location, ours):\n",
        "        if same_place(partition.location, ours) or one.file_count:\n",
    ),
    Mutant(
        "an emptied partition keeps its statistics",
        _POLICY,
        "        changed = list(_changed(known.values(), wanted, site))\n",
        "        changed = [one for one in _changed(known.values(), wanted, site) if wanted[one.values].file_count]\n",
    ),
)
