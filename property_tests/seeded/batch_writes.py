"""Defects of batch writes that go on side by side: open chains, claims, completions, what cannot be removed."""

# ruff: noqa: E501 - a snippet is compared more easily if its lines are not broken

from __future__ import annotations

from property_tests.seeded.mutant import Mutant

_CLAIMS = "filesink/ledger/claims.py"
_EPOCH = "filesink/commit/epoch.py"
_IDENTITY = "filesink/ledger/identity.py"
_FOLDING = "filesink/ledger/folding.py"
_DEAD_FILES = "filesink/operations/dead_files.py"
_PUBLISHER = "filesink/commit/publisher.py"
_REPLACING = "filesink/commit/replaced_files.py"

BATCH_WRITES = (
    Mutant(
        "a record is appended above one that may not be durable",
        "filesink/ledger/open_chain.py",
        """        if listing.unfinished():
            ledger.directory.sync()
""",
        "",
    ),
    Mutant(
        "a slot of an open chain that was taken counts as won",
        "filesink/ledger/open_chain.py",
        "is None or placed.nonce != record.nonce:\n",
        "is None or placed.nonce == '':\n",
    ),
    Mutant(
        "an open chain is folded past a slot that is not done",
        _FOLDING,
        "            is_due = slot <= settled if self._directory.is_open else slot in listing.complete\n",
        "            is_due = slot in listing.complete and settled >= -1\n",
    ),
    Mutant(
        "of an open chain only the newest epoch is carried through",
        "filesink/ledger/history.py",
        "            return listing.unfinished()\n",
        "            return listing.unfinished()[-1:]\n",
    ),
    Mutant(
        "completions without a record are accepted",
        "filesink/ledger/damage.py",
        "    if strays := listing.strays():\n",
        "    if strays := listing.strays()[:0]:\n",
    ),
    Mutant(
        "a completion names another record",
        "filesink/ledger/ledger.py",
        "        mark = Completion(nonce=record.nonce, left=left, end=end)\n",
        '        mark = Completion(nonce="", left=left, end=end)\n',
    ),
    Mutant(
        "a claim that another driver left is not made durable",
        _CLAIMS,
        "            self._store.sync_directories([self._directory])\n        return claims\n",
        "            pass\n        return claims\n",
    ),
    Mutant(
        "a claim is taken from whoever has it",
        _CLAIMS,
        "            if not is_free and (newest is None or newest.nonce != supersedes):\n                return False\n",
        "            del is_free, supersedes\n",
    ),
    Mutant(
        "files of a batch write bear the tag of its chain",
        "filesink/commit/chain.py",
        "            sink_id=writer or self.ledger.sink_id,\n            slot=0 if writer else next_slot(head),\n",
        "            sink_id=self.ledger.sink_id,\n            slot=0 if writer else next_slot(head),\n",
    ),
    Mutant(
        "an overwrite that has lost its slot does not look again",
        "filesink/commit/decision.py",
        "            prepared = stage.follow(epoch, prepared, others)\n",
        "            del stage\n",
    ),
    Mutant(
        "overwrites of the same partition follow each other",
        _REPLACING,
        "        if both := sorted(ours & theirs):\n",
        "        if both := sorted(ours & theirs)[:0]:\n",
    ),
    Mutant(
        "overwrites of any partitions are in each other's way",
        _REPLACING,
        "        if both := sorted(ours & theirs):\n",
        "        if both := sorted(ours | theirs):\n",
    ),
    Mutant(
        "an epoch that came while another was seen through is not waited for",
        "filesink/commit/chain.py",
        "        while head is not None and not head.complete:  # others may go on as soon as one is\n",
        "        if head is not None and not head.complete:\n",
    ),
    Mutant(
        "what an epoch could not remove is not on record",
        _PUBLISHER,
        "            left = Section.of(self._sink.committable_codec, [*self.failed, *self.kept])\n",
        "            left = Section.of(self._sink.committable_codec, self.kept) if self.kept else EMPTY\n",
    ),
    Mutant(
        "what an epoch could not remove is not tried again",
        "filesink/commit/decision.py",
        "            rows=gathered.rows,\n            committables=self._committables(prepared, head),\n",
        "            rows=gathered.rows,\n            committables=Section.of(self._sink.committable_codec, prepared.committables),\n",
    ),
    Mutant(
        "an overwrite that comes second forgets what is left to be removed",
        "filesink/commit/decision.py",
        "            slot=next_slot(head),\n            committables=self._committables(prepared, head),\n",
        "            slot=next_slot(head),\n            committables=Section.of(self._sink.committable_codec, prepared.committables),\n",
    ),
    Mutant(
        "an epoch waits for what cannot be removed",
        "filesink/commit/committer.py",
        "        return isinstance(committable, ReplacedFile)\n",
        "        return committable is None\n",
    ),
    Mutant(
        "what is replaced and could not be removed is merged",
        "compaction/offline/finished.py",
        " and complete.has(name_of(file.path), name)\n    ]\n    live = live_of(store, small, clock)",
        " and type(complete)(slots=complete.slots, publishing=complete.publishing)"
        ".has(name_of(file.path), name)\n    ]\n    live = None",
    ),
    Mutant(
        "a batch write that is decided while a sweep looks counts as done",
        _DEAD_FILES,
        "                records = list(ledger.history.newest_first())\n                # Asked afterwards: one that is decided between the two looks is no leftover of a write.\n                unfinished = {record.slot for record in ledger.history.publishing()}\n",
        "                unfinished = {record.slot for record in ledger.history.publishing()}\n                records = list(ledger.history.newest_first())\n",
    ),
    Mutant(
        "a sweep takes the files of batch writes at work",
        _DEAD_FILES,
        "                        named = frozenset() if is_done else _named(self._tiers, record)\n                        yield Chain(sink_id=record.files_of, complete_slot=0 if is_done else -1, named=named)\n",
        "                        yield Chain(sink_id=record.files_of, complete_slot=0, named=frozenset())\n                        del is_done\n",
    ),
    Mutant(
        "a sweep takes what batch writes are about to put",
        _FOLDING,
        "        if self._directory.is_open:  # others may be at work for any slot that is kept\n            newest = self._directory.listing().folded_to()\n",
        "",
    ),
    Mutant(
        "queries that wrote before others are not on record",
        _IDENTITY,
        "    last, known = head.record.last_batch, dict(head.record.queries)\n",
        "    last, known = head.record.last_batch, dict[str, int]()\n",
    ),
)
