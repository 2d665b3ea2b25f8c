"""How a hidden file gets its final name on a file system: by a link.

Rules:

* ``rename`` replaces what stands under the new name without a word, so it is not used. ``link``
  never replaces: it fails with ``EEXIST``.
* The hidden name stays until the final one is durable: see ``Store.release``.
* On network file systems the answer to ``link`` may get lost although the step was done. So no
  answer but success is believed; looking at both names tells:

      hidden      target          outcome
      ours        absent          not done: link, or raise to be tried again
      ours        ours            done
      gone        ours            done earlier, and released
      any         another's       CommitConflictError
      gone        absent          StagedDataLost

* «Ours» is a file of the recorded size with the recorded inode or modification time, or the latter in
  whole seconds.
"""

from __future__ import annotations

import errno
from contextlib import suppress

from filesink.errors import CommitConflictError, ConfigError, StagedDataLost
from filesink.naming import join
from filesink.storage.api import Kind
from filesink.storage.local.fs import Fs, FsStat
from filesink.storage.os_errors import explaining, storage_error
from filesink.storage.probes import old_probes, probe_name
from filesink.storage.staged import HiddenFile

# What copies keep of a time, NTFS 100 ns and tar seconds. A name of ours is never given twice.
_UNITS_NS = (1, 100, 1_000, 1_000_000, 1_000_000_000)
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


def identify(path: str, found: FsStat) -> HiddenFile:
    """The identity of a file whose last byte is written."""
    return HiddenFile(path=path, size=found.size, inode=found.inode, mtime_ns=found.mtime_ns)


def verify(fs: Fs, staged: HiddenFile) -> None:
    """See ``Store.verify``."""
    found = _stat(fs, staged.path)
    if not _is(found, staged):
        raise _lost(fs, staged, found)


def publish(fs: Fs, staged: HiddenFile, target: str) -> None:
    """See ``Store.publish``."""
    if _published_before(fs, staged, target):
        return
    try:
        fs.link(staged.path, target)
    except OSError as error:
        if _published_before(fs, staged, target):
            return
        found = _stat(fs, target)
        if found is None:
            raise storage_error(error, "publish", f"{fs.base}/{target}") from error
        if not _is(found, staged):
            raise _conflict(fs, target) from error


def is_published(fs: Fs, staged: HiddenFile, target: str) -> bool:
    """See ``Store.is_published``."""
    return _is(_stat(fs, target), staged)


def prove_links(fs: Fs, directory: str, unique: str) -> None:
    """Raise ``ConfigError`` unless ``link`` works on this file system and does not replace.

    Args:
        fs: the file system.
        directory: where it is tried; exists, and is small, since it is searched for old probes.
        unique: makes the names of two files that are removed again.
    """
    first, second = (join(directory, probe_name(unique, kind)) for kind in ("", "link"))
    with explaining("create", f"{fs.base}/{first}"):
        fs.close(fs.create_exclusive(first))
        try:
            _remove_old_probes(fs, directory, fs.stat(first))
            if not _links(fs, first, second):
                raise ConfigError(
                    f"the file system of '{fs.base}' cannot publish without replacing: it does not "
                    "support hard links, or replaces files by them; use another path",
                    code="NO_EXCLUSIVE_PUBLISH",
                )
        finally:
            for path in (second, first):
                with suppress(FileNotFoundError):
                    fs.unlink(path)


def _remove_old_probes(fs: Fs, directory: str, made: FsStat | None) -> None:
    """Remove what probes have left that died half-way; ages are by the file system's own clock."""
    if made is None:
        return
    for name in old_probes(fs.list(directory), made.mtime_ns // 1_000_000):
        with suppress(FileNotFoundError):
            fs.unlink(join(directory, name))


def _links(fs: Fs, first: str, second: str) -> bool:
    try:
        fs.link(first, second)
        fs.link(first, second)
    except FileExistsError:
        linked, original = fs.stat(second), fs.stat(first)
        return linked is not None and original is not None and linked.inode == original.inode
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
    return False


def _published_before(fs: Fs, staged: HiddenFile, target: str) -> bool:
    """Whether the hidden file is gone because it is published; raises if it is gone otherwise.

    Looks at the hidden name first: another driver that publishes the same file meanwhile links
    before it unlinks, so the target is there whenever the hidden name is not.
    """
    hidden = _stat(fs, staged.path)
    if _is(hidden, staged):
        return False
    found = _stat(fs, target)
    if found is None:
        raise _lost(fs, staged, hidden)
    if not _is(found, staged):
        raise _conflict(fs, target)
    return True


def _stat(fs: Fs, path: str) -> FsStat | None:
    with explaining("look at", f"{fs.base}/{path}"):
        return fs.stat(path)


def _is(found: FsStat | None, staged: HiddenFile) -> bool:
    if found is None or found.kind is not Kind.FILE or found.size != staged.size:
        return False
    times = {staged.mtime_ns // unit * unit for unit in _UNITS_NS}
    return found.inode == staged.inode or found.mtime_ns in times


def _lost(fs: Fs, staged: HiddenFile, found: FsStat | None) -> StagedDataLost:
    if found is None:
        what = "is gone"
    elif found.size == staged.size:
        what = "was modified later, or copied by a tool that does not keep the time of modification"
    else:
        what = f"is another file, of {found.size} bytes"
    return StagedDataLost(
        f"'{fs.base}/{staged.path}', written with {staged.size} bytes, {what}; something else removed or "
        "changed it. Restore it, or choose with FileSink.recover(lost=...) how to go on",
        code="STAGED_DATA_LOST",
    )


def _conflict(fs: Fs, target: str) -> CommitConflictError:
    return CommitConflictError(
        f"'{fs.base}/{target}' exists with other content and was not overwritten; find out who wrote it, "
        "move it away and start again",
        code="EXISTS",
    )
