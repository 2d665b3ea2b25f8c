"""Create-if-absent on a file system: a whole, durable file appears under its name, or nothing.

Rules:

* The bytes go to a name of their own that begins with ``.``, are made durable, and get their name
  by ``link``, which never replaces. A reader sees all of them or no file.
* Whoever finds the name taken makes it durable too before going on: its writer may have died
  between link and fsync, and what follows must not outlive the record it follows from.
* After a step whose answer got lost, inodes tell whose file it is. If even that cannot be read,
  the outcome is unknown, and said to be.
"""

from __future__ import annotations

from contextlib import suppress

from filesink.errors import CommitStateUnknown
from filesink.naming import join, parent
from filesink.ports import Ids
from filesink.storage.api import PutResult
from filesink.storage.local.output import LocalFiles, write_all
from filesink.storage.os_errors import explaining, storage_error


def put_if_absent(files: LocalFiles, ids: Ids, path: str, data: bytes) -> PutResult:
    """See ``Store.put_if_absent``."""
    if not data:
        return _durable(files, path, _put_empty(files, path))
    directory, _, name = path.rpartition("/")
    hidden = join(directory, f".{name}.put.{ids.uuid()}")
    try:
        with explaining("create", files.where(path)):
            _write(files, hidden, data)
        outcome = _link(files, hidden, path)
    except CommitStateUnknown:
        raise  # the hidden name is what tells later whose file it is
    except BaseException:
        _remove(files, hidden, path)
        raise
    _remove(files, hidden, path)
    return _durable(files, path, outcome)


def _remove(files: LocalFiles, hidden: str, path: str) -> None:
    """Remove the hidden name. While it is there, a slow server may still make a link that was given up."""
    try:
        with suppress(FileNotFoundError):
            files.fs.unlink(hidden)
    except OSError as error:
        raise _unknown(files, path) from error


def _write(files: LocalFiles, hidden: str, data: bytes) -> None:
    handle = files.create(hidden)
    try:
        write_all(files.fs, handle, memoryview(data))
        files.fs.fsync(handle)
    finally:
        files.fs.close(handle)


def _link(files: LocalFiles, hidden: str, path: str) -> PutResult:
    try:
        files.fs.link(hidden, path)
    except OSError as error:
        try:
            ours, found = files.fs.stat(hidden), files.fs.stat(path)
        except OSError as second:
            raise _unknown(files, path) from second
        if found is None:
            raise storage_error(error, "create", files.where(path)) from error
        if ours is None:
            raise _unknown(files, path) from error
        return PutResult.CREATED if found.inode == ours.inode else PutResult.EXISTS
    return PutResult.CREATED


def _put_empty(files: LocalFiles, path: str) -> PutResult:
    """Without content there is nothing to see by halves: the name itself is the file."""
    try:
        handle = files.create(path)
    except FileExistsError:
        return PutResult.EXISTS
    except OSError as error:
        try:
            found = files.fs.stat(path)
        except OSError as second:
            raise _unknown(files, path) from second
        if found is None:
            raise storage_error(error, "create", files.where(path)) from error
        raise _unknown(files, path) from error
    try:
        files.fs.close(handle)
    except OSError as error:
        raise _unknown(files, path) from error
    return PutResult.CREATED


def _durable(files: LocalFiles, path: str, outcome: PutResult) -> PutResult:
    try:
        files.directories.sync([parent(path)])
    except OSError as error:
        raise _unknown(files, path) from error
    return outcome


def _unknown(files: LocalFiles, path: str) -> CommitStateUnknown:
    return CommitStateUnknown(
        f"it is not known whether '{files.where(path)}' was created. Nothing was removed. Start again: the "
        "next run looks whether the file exists",
        code="UNKNOWN",
    )
