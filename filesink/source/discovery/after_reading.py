"""What becomes of a file that was read: it stays, moves or goes, when the checkpoint has what was read of it.

    _filesink/_found/<end, 12 digits>.done      all files before this number were taken care of

Rules:
1. Nothing is done before Spark has said that it will not ask for these files again.
2. A file that is not the one that was read, because another has come under its name, is left alone.
3. A driver that dies in between goes on where it stopped: a file that is gone was taken care of.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from filesink.errors import CommitConflictError, ConfigError
from filesink.naming import join, name_of, parent
from filesink.source.directories import Root, locate
from filesink.source.discovery.log import DIRECTORY, DiscoveryLog
from filesink.source.files import SourceFile
from filesink.storage.api import Kind, Store
from filesink.storage.open import open_store

_PIECE: Final = 8 << 20  # bytes that are copied at a time
_DONE = re.compile(r"([0-9]{12})\.done")
log = logging.getLogger("filesink")


class Action(Enum):
    """What becomes of a file that was read."""

    KEEP = "keep"
    MOVE = "move"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterReading:
    """What becomes of files that were read.

    Attributes:
        action: see ``Action``.
        move_to: a directory outside of what is read, on any store; ``""`` unless files are moved.
        storage_options: of its store.

    Raises:
        ConfigError: ``CONFLICT``.
    """

    action: Action = Action.KEEP
    move_to: str = ""
    storage_options: dict[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """Check that both go together."""
        if (self.action is Action.MOVE) != bool(self.move_to):
            raise ConfigError(
                "a directory to move files to goes with the action 'move', and with no other", code="CONFLICT"
            )

    def check(self, roots: tuple[Root, ...]) -> None:
        """Raise ``ConfigError`` (``CONFLICT``) if files of ``roots`` cannot be treated so."""
        if self.action is Action.KEEP:
            return
        for root in roots:
            if not root.is_writable:
                raise ConfigError(
                    f"'{root}' is on a file system that is only read: files there cannot be removed after "
                    "reading; keep them",
                    code="CONFLICT",
                )
            if self.move_to and Root(base=self.move_to).full("").startswith(root.full("")):
                raise ConfigError(
                    f"files would be moved to a directory below '{root}', which is read: they would be found "
                    "again; choose another one",
                    code="CONFLICT",
                )


class Tidying:
    """Takes care of files that were read. On the driver.

    Args:
        found: the log of these files.
        store: of its state location.
        roots: where the files are.
        after: what to do with them.
    """

    def __init__(
        self, found: DiscoveryLog, store: Store, *, roots: tuple[Root, ...], after: AfterReading
    ) -> None:
        self._found = found
        self._store = store
        self._roots = roots
        self._after = after
        self._done: int | None = None
        self._opened: dict[str, Store] = {}

    def finish(self, end: int) -> None:
        """All files before the number ``end`` were read, and nobody will ask for them again."""
        if self._after.action is Action.KEEP:
            return
        done = self._start()
        if end > done:
            for file in self._found.files(done, end):
                self._treat(file)
            self._note(end)

    def _treat(self, file: SourceFile) -> None:
        root, path = locate(self._roots, file.path)
        store = self._open(root.base, root.storage_options)
        if self._after.action is Action.DELETE:
            _remove(store, path, file)
        else:
            target = self._open(self._after.move_to, self._after.storage_options)
            _move(store, path, file=file, target=target)

    def _open(self, base: str, options: Mapping[str, Any]) -> Store:
        """The store of ``base``, made once."""
        if base not in self._opened:
            self._opened[base] = open_store(base, options)
            if base == self._after.move_to:
                self._opened[base].prepare()
        return self._opened[base]

    def _start(self) -> int:
        if self._done is None:
            self._done = max((number for _, number in self._marks()), default=0)
        return self._done

    def _marks(self) -> Iterator[tuple[str, int]]:
        for entry in self._store.list(DIRECTORY):
            if found := _DONE.fullmatch(entry.name):
                yield f"{DIRECTORY}/{entry.name}", int(found[1])

    def _note(self, end: int) -> None:
        self._store.put_if_absent(f"{DIRECTORY}/{end:012d}.done", b"done\n")
        for path, number in [*self._marks()]:
            if number < end:
                self._store.delete(path)
        self._done = end


def _remove(store: Store, path: str, file: SourceFile) -> None:
    entry = store.find(path)
    if entry is None:
        return
    if (entry.kind, entry.size, entry.mtime_ms) != (Kind.FILE, file.size, file.mtime_ms):
        log.warning("'%s' was replaced since it was read, and is left alone", file.path)
        return
    store.delete_if_unchanged(path, size=entry.size, version=entry.version)
    store.sync_directories([parent(path)])


def _move(store: Store, path: str, *, file: SourceFile, target: Store) -> None:
    """Copy the file under its path below ``target``, then remove it."""
    try:
        source = store.open_input(path)
    except FileNotFoundError:
        return
    with source:
        hidden = join(parent(path), f".{name_of(path)}.moving")
        target.discard(hidden)  # of a driver that died
        output = target.create(hidden, target=path)
        output.write(b"")
        while piece := source.read(_PIECE):
            output.write(piece)
        staged = output.close()
    target.sync()
    try:
        target.publish(staged, path)
    except CommitConflictError:
        moved = target.find(path)
        if moved is None or moved.size != file.size:
            raise
        output.discard()  # it was moved before, and only not removed
    else:
        target.sync_directories([parent(path)])
        target.release(staged)
    _remove(store, path, file)
