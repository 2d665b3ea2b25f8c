"""Defects of the ledger and of what carries out its records."""

from __future__ import annotations

from property_tests.seeded.mutant import Mutant

_LEDGER = "filesink/ledger/ledger.py"
_DIRECTORY = "filesink/ledger/directory.py"
_FOLDING = "filesink/ledger/folding.py"
_HEAD = "filesink/ledger/head.py"

LEDGER = (
    Mutant(
        "the ledger reads the first page of a listing only",
        _DIRECTORY,
        "for entry in self._store.list(self.path))",
        "for entry in self._store.list(self.path)[:3])",
    ),
    Mutant(
        "a record that exists is taken for the driver's own",
        _LEDGER,
        "            return record\n        return self.read(record.slot)\n",
        "            return record\n        return record\n",
    ),
    Mutant(
        "an unknown outcome of decide counts as decided",
        _LEDGER,
        "            if standing is None:\n                raise\n",
        "            if standing is None:\n                return record\n",
    ),
    Mutant(
        "a standing record is not made durable after a failed create",
        _LEDGER,
        "                self.directory.sync()\n        except StorageError as error:",
        "                pass\n        except StorageError as error:",
    ),
    Mutant(
        "a record that another driver left is not made durable",
        _HEAD,
        "    slots.directory.sync()\n    record = slots.require(slot)\n",
        "    record = slots.require(slot)\n",
    ),
    Mutant(
        "the newest record counts as complete",
        _HEAD,
        "        return Head(record=record, complete=False)\n",
        "        return Head(record=record, complete=True)\n",
    ),
    Mutant(
        "records are never folded away",
        _FOLDING,
        '            self._store.put_if_absent(self._directory.path_of(mark, "mark"), b"")\n',
        "            pass\n",
    ),
    Mutant(
        "records are folded without a mark",
        _FOLDING,
        '            self._store.put_if_absent(self._directory.path_of(mark, "mark"), b"")\n',
        "            for slot in listing.records:\n                if slot <= mark:\n"
        '                    self._store.delete(self._directory.path_of(slot, "record"))\n',
    ),
    Mutant(
        "the mark is removed with its records",
        _DIRECTORY,
        'if slot < mark or (slot == mark and kind != "mark")',
        "if slot <= mark",
    ),
    Mutant(
        "too many records are folded away",
        _FOLDING,
        "is_due and (seen >= keep or",
        "is_due and (seen >= 0 or",
    ),
    Mutant(
        "a folded slot is not void",
        "filesink/ledger/history.py",
        "return self._directory.listing().has_folded(slot)",
        "return False",
    ),
    Mutant(
        "unfinished ledger files are not swept",
        _FOLDING,
        "            self._store.discard(path)",
        "            pass",
    ),
    Mutant(
        "an epoch is not marked complete",
        "filesink/commit/publisher.py",
        "        self._complete(record, left)\n",
        "",
    ),
    Mutant(
        "an epoch is marked complete before it is published",
        "filesink/commit/publisher.py",
        "        kept = self._until_done(\n",
        "        self._ledger.complete(record)\n        kept = self._until_done(\n",
    ),
    Mutant(
        "a commit that asks for a retry counts as done",
        "filesink/commit/publisher.py",
        "                raise _gave_up(slot, left, values, first) from first\n",
        "                return []\n",
    ),
    Mutant(
        "what a patient driver finds made counts as its own",
        "filesink/storage/retrying.py",
        "                return result\n",
        "                return result if operation != 'put_if_absent' else type(result).CREATED\n",
    ),
    Mutant(
        "a driver that has waited in vain takes silence for success",
        "filesink/storage/retrying.py",
        "                    self._in_vain = not error.is_permanent\n                    raise\n",
        "                    from filesink.storage.api import PutResult\n"
        "                    return PutResult.CREATED if operation == 'put_if_absent' else []\n",
    ),
)
