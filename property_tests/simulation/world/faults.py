"""What can go wrong with one call to the operating system, and what is applied when.

The letters are those of the fault model in ``docs/reliability.md``.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from enum import Enum


class Mode(Enum):
    """How one call goes wrong."""

    ERROR = "a"  # nothing was done
    LOST_REPLY = "b"  # it was done, and an error comes back
    PARTIAL = "c"  # a part was done: a short write, a torn one, a copy that stops
    LATE = "d"  # an error, and some calls later it is done all the same: a server that was slow
    CRASH_BEFORE = "e"  # the process dies before
    CRASH_AFTER = "f"  # the process dies after
    POWER_ORDERED = "g-ordered"  # power fails after the call, see ``Cut``
    POWER_WEAK = "g-weak"
    TWICE = "h"  # sent again by the network: the answer is that of the second execution
    FULL = "i"  # no space, for this call and all that need some, until somebody makes room


@dataclass(frozen=True, slots=True)
class Fault:
    """One call that goes wrong.

    ``code`` is the errno or HTTP status of modes a to d, else 0; ``delay`` the calls until a late
    effect, 0 for any number. ``refuses``: all later calls of its kind fail until the next restart, as on a
    server that is overloaded.
    """

    mode: Mode
    code: int = 0
    delay: int = 0
    refuses: bool = False

    def __str__(self) -> str:
        return f"{self.mode.name}{f' {errno.errorcode.get(self.code, self.code)}' if self.code else ''}"


_LATER = 8  # calls
CRASHES = (Mode.CRASH_BEFORE, Mode.CRASH_AFTER, Mode.POWER_ORDERED, Mode.POWER_WEAK)
_MAKES = (Mode.ERROR, Mode.LOST_REPLY, Mode.LATE, Mode.TWICE)
#: Calls that a full disk refuses.
NEEDS_SPACE = frozenset(("mkdir", "create_exclusive", "write", "copy", "link"))

#: Modes of each call besides ``CRASHES``. A call that changes nothing can only fail.
FILE_CALLS: dict[str, tuple[Mode, ...]] = {
    "make_base": (Mode.ERROR, Mode.LOST_REPLY),
    "mkdir": _MAKES,
    "create_exclusive": _MAKES,
    "write": (Mode.ERROR, Mode.PARTIAL),
    "copy": (Mode.ERROR, Mode.PARTIAL),
    "fsync": (Mode.ERROR, Mode.LOST_REPLY),
    "close": (Mode.ERROR,),
    "fstat": (Mode.ERROR,),
    "stat": (Mode.ERROR,),
    "link": _MAKES,
    "unlink": _MAKES,
    "fsync_directory": (Mode.ERROR, Mode.LOST_REPLY),
    "read": (Mode.ERROR,),
    "open_read": (Mode.ERROR,),
    "list": (Mode.ERROR,),
    "metastore_read": (Mode.ERROR,),
    "metastore_add": (Mode.ERROR, Mode.LOST_REPLY, Mode.PARTIAL),
    "metastore_alter": (Mode.ERROR, Mode.LOST_REPLY, Mode.PARTIAL),
}
#: Calls of an object store. What changes something may take effect after its caller was told otherwise.
OBJECT_CALLS: dict[str, tuple[Mode, ...]] = {
    "head": (Mode.ERROR,),
    "get": (Mode.ERROR,),
    "put": _MAKES,
    "delete": _MAKES,
    "list_objects": (Mode.ERROR,),
    "list_uploads": (Mode.ERROR,),
    "create_upload": _MAKES,
    "upload_part": _MAKES,
    "copy_part": _MAKES,
    "list_parts": (Mode.ERROR,),
    "complete": _MAKES,
    "abort": _MAKES,
}
APPLICABLE = FILE_CALLS | OBJECT_CALLS
_ANY = (errno.EIO, errno.ESTALE, errno.ETIMEDOUT)
_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
#: Errors of each call. EINTR is not among them: Python repeats the call (PEP 475).
ERRNOS: dict[str, tuple[int, ...]] = {
    "make_base": (*_ANY, *_SPACE, errno.EACCES),
    "mkdir": (*_ANY, *_SPACE, errno.EACCES, errno.ENAMETOOLONG),
    "create_exclusive": (*_ANY, *_SPACE, errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE),
    "write": (errno.EIO, *_SPACE),
    "copy": (errno.EIO, *_SPACE, errno.EMFILE),
    "fsync": (errno.EIO, errno.ENOSPC, errno.EDQUOT),
    "close": (errno.EIO, errno.ENOSPC, errno.EDQUOT),
    "fstat": (errno.EIO, errno.ESTALE),
    "stat": (*_ANY, errno.EACCES),
    "link": (*_ANY, *_SPACE, errno.EACCES, errno.EPERM, errno.EXDEV, errno.ELOOP),
    "unlink": (*_ANY, errno.EROFS, errno.EACCES, errno.EPERM),
    "fsync_directory": (errno.EIO, errno.ENOSPC, errno.EMFILE),
    "read": (*_ANY, errno.EACCES, errno.EMFILE),
    "open_read": (*_ANY, errno.EACCES, errno.EMFILE),
    "list": (*_ANY, errno.EACCES, errno.ENFILE),
    "metastore_read": (errno.ECONNRESET, errno.ETIMEDOUT),
    "metastore_add": (errno.ECONNRESET, errno.ETIMEDOUT),
    "metastore_alter": (errno.ECONNRESET, errno.ETIMEDOUT),
}
_UNAVAILABLE = 503  # the one status that does not say whether it was done
_STATUSES = {"put": (_UNAVAILABLE, 409, 403), "complete": (_UNAVAILABLE, 409, 403)}
#: What the second execution of a call answers.
SECOND_ANSWER = {
    "mkdir": errno.EEXIST,
    "create_exclusive": errno.EEXIST,
    "link": errno.EEXIST,
    "unlink": errno.ENOENT,
}


def codes(operation: str, mode: Mode) -> tuple[int, ...]:
    """What a call that goes wrong in this way may answer; 0 is the answer of the call itself."""
    if mode is Mode.TWICE:
        return (SECOND_ANSWER.get(operation, 0),)
    if operation in OBJECT_CALLS:
        return _STATUSES.get(operation, (_UNAVAILABLE, 403)) if mode is Mode.ERROR else (_UNAVAILABLE,)
    return ERRNOS[operation]


def place(path: str) -> str:
    """The kind of thing a path names; faults are counted by operation and place."""
    name = path.rpartition("/")[2]
    if name.startswith(".probe"):
        return "probe"
    if path.startswith("_filesink"):
        kind = name.rpartition(".")[2]
        if ".put." in name:
            return "ledger put"
        return f"ledger {kind}" if kind in {"record", "complete", "mark"} else "ledger directory"
    if ".inprogress." in name:
        return "merged" if "-merged." in name else "hidden"
    if name.startswith("part-"):
        return "final"
    return {"": "base", "metastore": "metastore"}.get(path, "bucket")


def single_faults(operation: str) -> list[Fault]:
    """Every fault of one call; each mode once, with the first errno that fits it."""
    faults = [Fault(mode) for mode in CRASHES]
    for mode in APPLICABLE[operation]:
        possible = codes(operation, mode)
        faults += [Fault(mode, code) for code in (possible if operation in OBJECT_CALLS else possible[:1])]
        if mode is Mode.LATE:  # soon, or when its caller has drawn its conclusions
            faults.append(Fault(mode, possible[0], delay=_LATER))
        if mode is Mode.PARTIAL:
            faults.append(Fault(mode))  # without an error: the caller must look at what came back
    return faults
