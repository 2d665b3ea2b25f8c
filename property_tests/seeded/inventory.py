"""Defects of the inventory; histories of it alone hunt for them."""

# ruff: noqa: E501 - a snippet is compared more easily if its lines are not broken

from __future__ import annotations

from property_tests.seeded.mutant import Mutant

_APPENDING = "filesink/inventory/appending.py"
_READING = "filesink/inventory/reading.py"
_FOLDING = "filesink/inventory/folding.py"
_PUTTING = "filesink/inventory/putting.py"
_SWEEPING = "filesink/inventory/sweeping.py"
_FILES = "filesink/inventory/rows/files.py"
_MERGING = "filesink/inventory/rows/merging.py"
_EPOCHS = "filesink/inventory/rows/epochs.py"

INVENTORY = (
    Mutant(
        "inventory: an entry counts although a mark came to its version first",
        _APPENDING,
        "        if self._reader.is_newest(known):\n",
        "        if known:\n",
    ),
    Mutant(
        "inventory: a replay is not looked for in segments",
        _APPENDING,
        "            if found is None:\n                found = self._reader.version_of(look, draft.nonce, after=after)\n",
        "",
    ),
    Mutant(
        "inventory: a replay is not looked for in entries",
        _APPENDING,
        "found = next((one.version for one in entries if one.epoch.nonce == draft.nonce), None)",
        "found = None",
    ),
    Mutant(
        "inventory: a version is put above what was listed, not above what was searched",
        _APPENDING,
        "            if known.newest != checked:\n",
        "            if known.newest < checked:\n",
    ),
    Mutant(
        "inventory: the next mark is not looked for when entries were read",
        _READING,
        "            if not self.is_newest(look):\n",
        "            if not look:\n",
    ),
    Mutant(
        "inventory: the number of a mark that was removed is free",
        _READING,
        "        is_recent = 0 <= self._clock.now_ms() - look.seen_ms < _SURE_MS\n",
        "        is_recent = True\n",
    ),
    Mutant(
        "inventory: a lost answer is taken for success",
        _PUTTING,
        "        standing = _reread(store, path, error)\n        if standing is None:\n            raise\n",
        "        del error\n        return True\n",
    ),
    Mutant(
        "inventory: a file that exists is taken for the driver's own",
        _PUTTING,
        "    if standing != data:\n        return False\n",
        "",
    ),
    Mutant(
        "inventory: entries are removed before the mark",
        _FOLDING,
        "        data = mark.to_bytes()\n",
        "        data = mark.to_bytes()\n        for version in look.entries:\n"
        '            self._store.delete(f"_filesink/_inventory/{version:012d}.entry")\n',
    ),
    Mutant(
        "inventory: a mark forgets how the horizon has moved",
        _FOLDING,
        "            horizon=horizon,\n            segments=",
        "            horizon=look.mark.horizon,\n            segments=",
    ),
    Mutant(
        "inventory: a fold that has lost goes on",
        _FOLDING,
        "        if not put(self._store, mark_path(mark.number), data):\n            return None\n",
        "        put(self._store, mark_path(mark.number), data)\n",
    ),
    Mutant(
        "inventory: a merge forgets what it has read from one segment",
        _FOLDING,
        "        rows = merge(self._reader.rows(found.merged))\n",
        "        rows = merge(self._reader.rows(found.merged[1:]))\n",
    ),
    Mutant(
        "inventory: removals are forgotten while their files are in older segments",
        _MERGING,
        'yield rows.filter(pc.invert(pc.and_(is_past(rows, horizon), pc.is_valid(rows["added"]))))',
        "yield rows.filter(pc.invert(is_past(rows, horizon)))",
    ),
    Mutant(
        "inventory: removed files are forgotten while somebody may ask for them",
        _FILES,
        'pc.less_equal(rows["removed"], horizon), fill_value=False',
        'pc.is_valid(rows["removed"]), fill_value=False',
    ),
    Mutant(
        "inventory: a path has a row for each time it was named",
        _FILES,
        "    return rows if begins.all() else _one_for_each(rows, begins)\n",
        "    return rows\n",
    ),
    Mutant(
        "inventory: a removal that comes before its file does not count",
        _FILES,
        '    is_left = pc.fill_null(pc.greater(rows["removed"], version), fill_value=True)\n',
        '    is_left = pc.fill_null(pc.greater(rows["removed"], version), fill_value=True)\n'
        '    is_left = pc.or_(is_left, pc.fill_null(pc.less(rows["removed"], rows["added"]), fill_value=False))\n',
    ),
    Mutant(
        "inventory: segments of a fold that is at work are swept",
        _SWEEPING,
        "            if number <= newest.number and name not in named\n",
        "            if name not in named\n",
    ),
    Mutant(
        "inventory: a mark tells the time before its driver has looked",
        _FOLDING,
        """        look = self._reader.look()
        if look is None or look.mark.kind is MarkKind.ADOPTING or not look.entries:
            return None
        now_ms = self._clock.now_ms()  # see rule 5
""",
        """        now_ms = self._clock.now_ms()
        look = self._reader.look()
        if look is None or look.mark.kind is MarkKind.ADOPTING or not look.entries:
            return None
""",
    ),
    Mutant(
        "inventory: segments go as soon as the next mark is there",
        _SWEEPING,
        "age >= _NEWEST and has_passed(after.folded_ms, now_ms, _GRACE_MS)",
        "age >= 1",
    ),
    Mutant(
        "inventory: what a fold that has lost has made is never swept",
        _SWEEPING,
        "        dead += [\n            segment_path(name)\n",
        "        [\n            segment_path(name)\n",
    ),
    Mutant(
        "inventory: epochs are forgotten from the middle",
        _EPOCHS,
        "    return rows.slice(first), max(horizon,",
        "    return rows.slice(first + 1), max(horizon,",
    ),
)
