"""Defects of the local store: what is durable, what replaces, what is believed."""

# ruff: noqa: E501 - a snippet is compared more easily if its lines are not broken

from __future__ import annotations

from property_tests.seeded.mutant import Mutant

_SYNC = "filesink/storage/local/sync.py"
_PUT = "filesink/storage/local/put.py"
_PUBLISH = "filesink/storage/local/publish.py"
_OUTPUT = "filesink/storage/local/output.py"
_LOCAL = "filesink/storage/local/store.py"

STORAGE = (
    Mutant(
        "files are not synced", _SYNC, "                self._fs.fsync(handle)\n", "                pass\n"
    ),
    Mutant(
        "an fsync that failed is repeated",
        _SYNC,
        "                self._fs.fsync(handle)\n",
        "                try:\n                    self._fs.fsync(handle)\n"
        "                except OSError:\n                    self._fs.fsync(handle)\n",
    ),
    Mutant(
        "an early sync that failed is forgotten",
        _SYNC,
        "            self._lost = error  # ``sync`` must not call the writer's files durable later\n            raise",
        "            del error",
    ),
    Mutant(
        "directories are not synced",
        _SYNC,
        "            self._fs.fsync_directory(directory)\n",
        "            pass\n",
    ),
    Mutant("directories above are not synced", _SYNC, "sorted(touched | above))", "sorted(touched))"),
    Mutant(
        "a directory that was just made counts as durable",
        _SYNC,
        "                    self._durable.discard(path)",
        "                    self._durable.add(path)",
    ),
    Mutant(
        "a task does not sync",
        _LOCAL,
        "self._files.directories.sync(self._files.unsynced.sync())",
        "self._files.unsynced.sync()",
    ),
    Mutant(
        "published names are not synced",
        _LOCAL,
        '        """See ``Store.sync_directories``."""\n        self._files.directories.sync(directories)',
        '        """See ``Store.sync_directories``."""',
    ),
    Mutant("short writes are ignored", _OUTPUT, "        data = data[taken:]", "        return"),
    Mutant(
        "a short copy is taken for a whole one",
        _OUTPUT,
        "if copied != source.size - start:",
        "if copied > source.size - start:",
    ),
    Mutant("a record's bytes are not synced", _PUT, "        files.fs.fsync(handle)\n", ""),
    Mutant(
        "a record's name is not synced",
        _PUT,
        "        files.directories.sync([parent(path)])\n",
        "        pass\n",
    ),
    Mutant(
        "a record is written under its own name",
        _PUT,
        '    hidden = join(directory, f".{name}.put.{ids.uuid()}")\n',
        "    hidden = path\n",
    ),
    Mutant(
        "a failed link of a record is taken for another's",
        _PUT,
        "return PutResult.CREATED if found.inode == ours.inode else PutResult.EXISTS",
        "return PutResult.CREATED",
    ),
    Mutant(
        "publishing replaces what stands there",
        _PUBLISH,
        "        if not _is(found, staged):\n            raise _conflict(fs, target) from error",
        "        if not _is(found, staged):\n            fs.unlink(target)\n            fs.link(staged.path, target)",
    ),
    Mutant(
        "what stands under a final name counts as published",
        _PUBLISH,
        "    if not _is(found, staged):\n        raise _conflict(fs, target)\n    return True",
        "    return True",
    ),
    Mutant(
        "a lost hidden file counts as published",
        _PUBLISH,
        "    if found is None:\n        raise _lost(fs, staged, hidden)",
        "    if found is None:\n        return True",
    ),
    Mutant(
        "a failed link counts as done",
        _PUBLISH,
        '        if found is None:\n            raise storage_error(error, "publish", f"{fs.base}/{target}") from error',
        "        if found is None:\n            return",
    ),
    Mutant(
        "the hidden name is removed before the final one is made",
        _PUBLISH,
        "    try:\n        fs.link(staged.path, target)\n",
        "    fs.unlink(staged.path)\n    try:\n        fs.link(staged.path, target)\n",
    ),
    Mutant(
        "the hidden name is removed before the final one is durable",
        _PUBLISH,
        "            raise _conflict(fs, target) from error\n\n",
        "            raise _conflict(fs, target) from error\n    with suppress(FileNotFoundError):\n        fs.unlink(staged.path)\n\n",
    ),
    Mutant(
        "only the length of a file is checked",
        _PUBLISH,
        "    return found.inode == staged.inode or found.mtime_ns in times",
        "    return True",
    ),
    Mutant(
        "an error while a file is looked at counts as absent",
        _PUBLISH,
        "        return fs.stat(path)\n",
        "        with suppress(OSError):\n            return fs.stat(path)\n        return None\n",
    ),
    Mutant(
        "old probes are not removed",
        _PUBLISH,
        "            _remove_old_probes(fs, directory, fs.stat(first))\n",
        "",
    ),
)
