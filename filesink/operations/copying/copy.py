"""Copies a path to another place or store, so that the copy is a sink itself.

    look     what is there, nothing half done
    data     files that readers see, dead letters, files that chains keep for later epochs
    look     the same is there: nobody has written meanwhile, else once more for what is new
    ledgers  inventory, then records, the newest first, then marks: a part of them stops every sink

Rules:
1. The target was empty, or is a copy of this path that was interrupted: a note says so until the end. Only
   then is anything removed there: what an earlier round has copied, and is not wanted any more.
2. Nothing is overwritten. A file that is there under its final name is whole; its size is compared.
3. A chain that keeps files for a later epoch gets a record that knows them as the target's store has made
   them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from filesink.errors import ConcurrentDriverError, ConfigError, StateError, StorageError
from filesink.inventory.chains import left_files
from filesink.ledger.identity import EXCLUSIVE
from filesink.ledger.ledger import Ledger
from filesink.ledger.sweep import walk
from filesink.naming import LEDGER_ROOT, HiddenName, join, name_of, parent, sink_tag, slot_of
from filesink.operations.copying.contents import Contents, contents_of, with_held
from filesink.operations.copying.notes import Note
from filesink.operations.progress import Progress, counted, nobody
from filesink.parts.recorded_paths import check_record
from filesink.ports import Ports
from filesink.sink_directory.site import Site
from filesink.storage.api import Kind, Output, Store
from filesink.storage.outcomes import PutResult
from filesink.storage.staged import Staged

_ROUNDS: Final = 5  # then somebody writes faster than this copies
_PATIENCE: Final = 10  # seconds
_PIECE: Final = 1 << 20  # bytes at a time
_TAG: Final = sink_tag("copy")


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyPlan:
    """What ``copy`` would do now.

    Attributes:
        version: of the path.
        files, bytes: of data, files that are held back included.
        held: how many of them are.
        ledger_files: below ``_filesink``.
        others: files of no sink, which are not copied.
    """

    version: int
    files: int
    bytes: int
    held: int
    ledger_files: int
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyReport:
    """What ``copy`` did. ``found`` files of an earlier call were there already."""

    version: int
    files: int
    bytes: int
    found: int


@dataclass(kw_only=True)
class Copy:
    """One copy.

    Attributes:
        source: the path.
        open_target: opens the store of the other place; several at a time.
        target_path: for messages.
        ports: of the program.
        progress: told how far it is.
    """

    source: Site
    open_target: Callable[[], Store]
    target_path: str
    ports: Ports
    progress: Progress = nobody

    def __post_init__(self) -> None:
        self.target = self.open_target()
        names = self.source.base_path, self.target_path
        self._note = Note(self.target, self.ports.ids.uuid(), names=names)

    def plan(self) -> CopyPlan:
        """What ``run`` would do now. Touches nothing. Raises as ``filesink.copy``."""
        contents = self._look()
        self._note.earlier(contents.inventory_id)
        return _plan(contents)

    def run(self) -> CopyReport:
        """Copy. Raises as ``filesink.copy``."""
        contents = self._look()
        self._note.put(contents.inventory_id)
        staged: dict[str, Staged] = {}
        contents, found = self._data(contents, staged)
        self._remove_others(contents)
        self._directories()
        self._ledgers(contents, staged)
        self._note.remove()
        return CopyReport(
            version=contents.version,
            files=len(contents.files) + len(contents.held),
            bytes=contents.bytes,
            found=found,
        )

    # --- the steps, in their order

    def _look(self) -> Contents:
        """What is there, when the epoch of a writer that is at work is complete."""
        for _ in range(_PATIENCE):
            try:
                return contents_of(self.source)
            except StateError as error:
                if error.code != "AT_WORK":
                    raise
            self.source.clock.sleep(1)
        return contents_of(self.source)

    def _data(self, contents: Contents, staged: dict[str, Staged]) -> tuple[Contents, int]:
        """Copy all data, until nothing new has come; what was copied, and how much was there before.

        ``staged`` takes what chains keep, by its hidden name.
        """
        done: set[str] = set()
        found = 0
        for _ in range(_ROUNDS):
            found += self._files(contents, done)
            self._held(contents, staged)
            before, contents = contents, self._look()
            if before == contents:
                return contents, found
        raise ConcurrentDriverError(
            f"'{self.source.base_path}' is written to faster than it is copied: {_ROUNDS} times there was "
            "something new. Stop the writers and call it again; what is copied is not copied again",
            code="CONCURRENT_DRIVER",
        )

    def _files(self, contents: Contents, done: set[str]) -> int:
        """Copy what is not there yet; returns how many were there before."""
        there = dict(_listed(self.target))
        new = [
            path for path in contents.files if path not in done and there.get(path) != contents.files[path]
        ]
        if wrong := [path for path in new if path in there]:
            raise ConfigError(
                f"'{wrong[0]}' in '{self.target_path}' is another file than in '{self.source.base_path}'. "
                "Nothing was overwritten. Remove it, or name a place where nothing is",
                code="TARGET_NOT_EMPTY",
            )

        def copied(path: str) -> None:
            self._file(path, contents.files[path])

        self.ports.runner.run(counted(self.progress, "files", len(new), copied), new)
        found = len([path for path in contents.files if path not in done]) - len(new)
        done.update(contents.files)
        return found

    def _file(self, path: str, size: int) -> None:
        target = self.open_target()
        name = HiddenName(target="copy", tag=_TAG, slot=0, attempt=self.ports.ids.uuid())
        output = target.create(join(parent(path), str(name)), target=path)
        staged = self._written(path, size, output)
        target.sync()
        self._note.check()
        target.publish(staged, path)
        target.sync_directories([parent(path)])
        target.release(staged)

    def _held(self, contents: Contents, staged: dict[str, Staged]) -> None:
        """Copy what chains keep; what an interrupted call has left of it is not known well enough."""
        for path, file in contents.held.items():
            if path not in staged:
                self._note.check()
                self.target.discard(path)
                staged[path] = self._written(path, file.size, self.target.create(path, target=None))
        self.target.sync()

    def _written(self, path: str, size: int, output: Output) -> Staged:
        try:
            with self.source.store.open_input(path) as stream:
                while data := stream.read(_PIECE):
                    output.write(data)
            if output.tell() == size:
                return output.close()
        except FileNotFoundError:
            pass
        except BaseException:
            with suppress(StorageError):
                output.discard()
            raise
        output.discard()
        raise ConcurrentDriverError(
            f"'{path}' was replaced or changed while it was copied. Stop whatever merges or overwrites "
            "files, and call it again; what is copied is not copied again",
            code="CONCURRENT_DRIVER",
        )

    def _remove_others(self, contents: Contents) -> None:
        """What an earlier round, or a call that was interrupted, has copied and is not there any more."""
        wanted = {*contents.files, *contents.held}
        for path, _ in list(_listed(self.target)):
            if path not in wanted:
                self._note.check()
                remove = self.target.discard if slot_of(path) is not None else self.target.delete
                remove(path)

    def _directories(self) -> None:
        """Make those of files that were replaced and are still to be removed: who goes on looks there."""
        ledger = Ledger(self.source.store, EXCLUSIVE, check=check_record)
        for directory in sorted({parent(file.path) for file in left_files(ledger)}):
            name = HiddenName(target="copy", tag=_TAG, slot=0, attempt=self.ports.ids.uuid())
            path = join(directory, str(name))
            self.target.create(path, target=None).close()
            self.target.discard(path)

    def _ledgers(self, contents: Contents, staged: dict[str, Staged]) -> None:
        for path in _below(self.target, LEDGER_ROOT):
            if path not in contents.ledger and path != self._note.path:
                self._note.check()
                self.target.delete(path)
        heads = {path: with_held(record, staged) for path, record in contents.heads.items()}
        for number, path in enumerate(sorted(contents.ledger, key=_order), start=1):
            data = heads[path].to_bytes() if path in heads else self.source.store.read(path)
            if data is None:
                raise ConcurrentDriverError(
                    f"'{path}' was removed while it was copied: somebody writes to "
                    f"'{self.source.base_path}'. Stop the writers and call it again",
                    code="CONCURRENT_DRIVER",
                )
            self._put(path, data, is_head=path in heads)
            self.progress("ledgers", number, len(contents.ledger))

    def _put(self, path: str, data: bytes, *, is_head: bool) -> None:
        self._note.check()
        if self.target.put_if_absent(path, data) is PutResult.CREATED or self.target.read(path) == data:
            return
        if not is_head:
            raise ConfigError(
                f"'{path}' in '{self.target_path}' is another file than in '{self.source.base_path}': "
                "somebody has written there. Nothing was overwritten. Name a place where nothing is",
                code="TARGET_NOT_EMPTY",
            )
        # Of an interrupted call: what the chain keeps has been copied anew since.
        self.target.delete(path)
        self.target.put_if_absent(path, data)


def _plan(contents: Contents) -> CopyPlan:
    return CopyPlan(
        version=contents.version,
        files=len(contents.files) + len(contents.held),
        bytes=contents.bytes,
        held=len(contents.held),
        ledger_files=len(contents.ledger),
        others=contents.others,
    )


def _order(path: str) -> tuple[bool, bool, list[int]]:
    """The inventory first and marks last; in between the newest first."""
    name = name_of(path)
    return not path.startswith(f"{LEDGER_ROOT}/_"), name.endswith(".mark"), [-ord(one) for one in path]


def _listed(store: Store) -> Iterable[tuple[str, int]]:
    """Every file but the ledgers, hidden or not."""
    for directory, entries in walk(store):
        for entry in entries:
            if entry.kind is Kind.FILE:
                yield join(directory, entry.name), entry.size


def _below(store: Store, directory: str) -> Collection[str]:
    found: list[str] = []
    for entry in store.list(directory):
        path = join(directory, entry.name)
        if entry.kind is Kind.DIRECTORY:
            found += _below(store, path)
        elif entry.kind is Kind.FILE:
            found.append(path)
    return found
