"""Defects of part files: their names, their segments, their merging."""

# ruff: noqa: E501 - a snippet is compared more easily if its lines are not broken

from __future__ import annotations

from property_tests.seeded.mutant import Mutant

_COMMITTER = "filesink/commit/committer.py"
_WRITER = "filesink/parts/writer.py"
_BUCKET = "filesink/parts/bucket.py"

FILES = (
    Mutant(
        "inputs of a merge are removed before publication",
        _COMMITTER,
        "        pending, undone, discards, replaced = by_kind(committables)\n",
        "        pending, undone, discards, replaced = by_kind(committables)\n        for file in discards:\n            self._store.discard(file.path)\n",
    ),
    Mutant(
        "inputs of a merge are removed although some files failed",
        _COMMITTER,
        "        if left:\n            return [*left, *discards, *replaced]\n",
        "",
    ),
    Mutant(
        "a published file keeps its hidden name",
        _COMMITTER,
        "lambda file: self._store.release(file.staged), visible",
        "lambda _: None, visible",
    ),
    Mutant(
        "inputs of a merge stay",
        _COMMITTER,
        "        self._runner.run(self._discard_or_leave, [file.path for file in discards])\n",
        "",
    ),
    Mutant(
        "one failed file fails all",
        "filesink/parts/one_by_one.py",
        "                return error  # the file stays",
        "                return None  # the file stays",
    ),
    Mutant(
        "what tasks report is not verified",
        "filesink/parts/stages/verify.py",
        "                    new.append(committable)\n",
        "                    pass\n",
    ),
    Mutant(
        "an attempt's name has no uuid",
        "filesink/parts/attempt.py",
        "        self._attempt = context.ids.uuid()\n",
        '        self._attempt = f"{0:036}"\n',
    ),
    Mutant(
        "a part's name has no uuid",
        "filesink/naming.py",
        "{ids.uuid()[18:]}",
        "-8000-000000000000",
    ),
    Mutant(
        "files are reported before they are durable",
        _WRITER,
        "        self._store.sync()\n        outputs",
        "        outputs",
    ),
    Mutant("merged files are not synced", "filesink/parts/stages/merger.py", "        store.sync()\n", ""),
    Mutant(
        "all attempts at a merge have one name",
        "filesink/parts/stages/merger.py",
        "request.path(self.ids.uuid())",
        'request.path(request.target.rpartition("part-")[2][:36])',
    ),
    Mutant(
        "a failed attempt leaves its files for ever",
        "filesink/naming.py",
        "    found = _HIDDEN.fullmatch(name)\n",
        "    found = _HIDDEN.fullmatch(name) if name.endswith('0') else None\n",
    ),
    Mutant(
        "a resumed part begins with a header",
        "filesink/parts/file_format.py",
        'self.encoder.resume_part(carry_over), header=b"", hint=hint)',
        'self.encoder.resume_part(carry_over), header=b"#rows##\\n", hint=hint)',
    ),
    Mutant(
        "an open part is forgotten when its first record is put aside",
        _BUCKET,
        """            if not part.segments:
                self._open = None
""",
        """            self._open = None
""",
    ),
    Mutant(
        "records without a bucket are dropped",
        "filesink/buckets/router.py",
        "            self.refuse(given.filter(pa.array(np.isin(found.codes, those))), error)\n",
        "            self.refuse(given.slice(0, 0), error)\n",
    ),
    Mutant(
        "records without a bucket lie among the data",
        "filesink/parts/dead_letters.py",
        '(f"{self._dead_letters.path}{NO_BUCKET}", _letter(records, error.message))',
        '("no_bucket", _letter(records, error.message))',
    ),
    Mutant(
        "dead letters are cut into segments",
        _WRITER,
        "            if isinstance(self._plan.format, RowFormat) and bucket.parts is self._parts:\n",
        "            if isinstance(self._plan.format, RowFormat):\n",
    ),
    Mutant(
        "a part goes on as another part",
        "filesink/parts/file_format.py",
        "self.encoder.resume_part(carry_over)",
        "self.encoder.start_part()",
    ),
    Mutant(
        "segments of a part are merged in another order",
        "filesink/parts/stages/open_parts.py",
        "    return [tuple(group) for group in groups.values()]",
        "    return [tuple(reversed(group)) for group in groups.values()]",
    ),
    Mutant(
        "a merged part is also kept open",
        "filesink/parts/stages/open_parts.py",
        "subtask: [held for held in values if held.staged.path not in taken]",
        "subtask: list(values)",
    ),
    Mutant(
        "the end of input leaves parts open",
        "filesink/parts/stages/open_parts.py",
        "        if epoch.input is Input.ENDED:\n            return parts\n",
        "",
    ),
    Mutant(
        "a part that was closed with segments loses the last one",
        _BUCKET,
        "            self._end_segment(part)\n            self._closed += part.segments",
        "            self._closed += part.segments",
    ),
    Mutant(
        "records beyond a part's limit are dropped",
        _BUCKET,
        "            batch = batch.slice(taken)",
        "            batch = batch.slice(batch.num_rows)",
    ),
    Mutant(
        "a failed task is reported",
        "filesink/commit/task.py",
        "            writer.abort_prepare()\n            raise\n",
        "            return self._result(writer, context, 0)\n",
    ),
)
