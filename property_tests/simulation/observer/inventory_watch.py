"""What the observer asks of the inventory (I19).

Every epoch that is complete has one version, and versions follow one another. When an epoch gets its
version, its files are visible for good. At the end the inventory names the files that readers see.
Entries are taken apart by hand; only the end is asked of the product's own reader, on a copy.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from filesink.inventory.reading import Reader
from filesink.inventory.snapshots import Snapshots
from filesink.storage.memory import MemoryFiles, MemoryStore
from property_tests.simulation.observer.reading import Record, payload_of, read_completion, read_record
from property_tests.simulation.observer.superseded import Superseded
from property_tests.simulation.observer.view import View
from property_tests.simulation.workload import rows_in
from property_tests.simulation.world.clock import SimClock
from property_tests.simulation.world.listing import all_files, visible_files
from property_tests.simulation.world.nodes import Directory, Inode

_FILE = re.compile(r"_filesink/_inventory/(?:(?P<version>[0-9]{12})\.entry|(?P<number>[0-9]{6})\.mark)")
_DIRECTORY = "_filesink/_inventory"
_COMPLETE = re.compile(r"_filesink/[^_][^/]*/[0-9]+\.complete")
_RECORD = re.compile(r"_filesink/[^_][^/]*/[0-9]+\.record")


class InventoryWatch:
    """Belongs to one observer.

    Attributes:
        versions: by the nonce of the record.
        noted_ms: when they came, by the driver's clock.
    """

    def __init__(self, view: View, superseded: Superseded) -> None:
        self._view = view
        self._superseded = superseded
        self.versions: dict[str, int] = {}
        self.noted_ms: dict[str, int] = {}
        self._entries: dict[int, str] = {}  # nonces of those that are there, or were folded
        self._marks: dict[int, int] = {}  # versions by number
        self._changes: dict[int, tuple[set[str], set[str]]] = {}  # added and removed

    def look(self, path: str, *, made: bool) -> bool:
        """A file was made or removed; whether it is one of an inventory."""
        found = _FILE.fullmatch(path)
        if found is None:
            return False
        if not made:
            self._removed(path, found["version"])
        elif found["version"] is not None:
            self._appended(path, int(found["version"]))
        else:
            self._folded(path, int(found["number"]))
        return True

    def completed(self, record: Record) -> None:
        """An epoch is complete: its version was put before."""
        if record.nonce not in self.versions:
            self._view.world.fail(f"I19: {record.path} is complete and has no version")

    def reread(self) -> None:
        """A power cut may have taken a name that nobody was told of."""
        directory = self._view.world.disk.find(_DIRECTORY)
        names = set(directory.entries) if isinstance(directory, Directory) else set()
        self._marks = {number: at for number, at in self._marks.items() if f"{number:06d}.mark" in names}
        folded = self._folded_to()
        gone = [at for at in self._entries if at > folded and f"{at:012d}.entry" not in names]
        for version in gone:
            nonce = self._entries.pop(version)
            self._changes.pop(version, None)
            self.versions.pop(nonce, None)
            if self._is_complete(nonce):
                self._view.world.fail(f"I19: version {version} was complete and is gone")

    def check_end(self) -> None:
        """What the inventory names is what readers see."""
        if not self._marks:
            return
        version = self.check_files()
        if max(self._entries, default=0) != version:
            self._view.world.fail(f"I19: the newest version is {max(self._entries)}, readers see {version}")

    def check_files(self) -> int:
        """Compare the newest snapshot, whose version is returned, with a listing."""
        view, world = self._view, self._view.world
        found = self._snapshots().files_at(None)
        named = {row["path"]: row["rows"] for row in found.rows.select(["path", "rows"]).to_pylist()}
        others = view.foreign.keys() | self._superseded.left_out() | view.replaced.left
        seen = {
            path: len(rows_in(bytes(inode.data), path))
            for path, inode in visible_files(world.disk.root).items()
            if path not in others and not path.startswith("_")
        }
        if named.keys() != seen.keys():
            world.fail(f"I19: {min(named.keys() ^ seen.keys())} is only in the inventory, or not in it")
        wrong = [path for path, rows in named.items() if rows and rows != seen[path]]
        if wrong:
            world.fail(f"I19: {wrong[0]} has not as many rows as the inventory says")
        return found.version

    def check_versions(self) -> None:
        """Every epoch that the ledgers call complete has a version; asked where nobody has looked on."""
        files = all_files(self._view.world.disk.root)
        epochs = self._snapshots().epochs(None)
        if epochs.num_rows and epochs["version"][0].as_py() > 1:
            return  # older ones have expired
        noted = set(epochs["nonce"].to_pylist())
        done = {read_completion(files[path])[0] for path in filter(_COMPLETE.fullmatch, files)}
        for path in filter(_RECORD.fullmatch, files):
            record = read_record(path, files[path])
            may_be_void = bool(record.cause.get("txn_id"))  # another write was first
            if record.nonce in done - noted and not may_be_void:
                self._view.world.fail(f"I19: {path} is complete and has no version")

    def _snapshots(self) -> Snapshots:
        """The product's own reader, of a copy."""
        copy, world = MemoryFiles(), self._view.world
        for path, inode in all_files(world.disk.root).items():
            if path.startswith(f"{_DIRECTORY}/"):
                MemoryStore(copy).put_if_absent(path, bytes(inode.data))
        return Snapshots(Reader(MemoryStore(copy), SimClock(world)), "base")

    # --- one file

    def _appended(self, path: str, version: int) -> None:
        entry = self._read(path)
        world, nonce = self._view.world, entry["nonce"]
        if version <= self._folded_to():
            return  # void; its driver finds out
        if version != max(self._entries, default=0) + 1:
            world.fail(f"I19: {path} does not follow version {max(self._entries, default=0)}")
        if nonce in self.versions:
            world.fail(f"I19: versions {self.versions[nonce]} and {version} are the same epoch")
        for name, *_ in entry["added"]:
            node = world.disk.find(name)
            visible = isinstance(node, Inode) and world.disk.find_synced(name) is node
            if not visible and name not in self._view.replaced.files:
                world.fail(f"I19: {path} names {name}, which is not visible for good")
        self._check_removed(path, nonce, set(entry["removed"]))
        self._entries[version] = nonce
        self.versions[nonce] = version
        self.noted_ms[nonce] = SimClock(world).now_ms()
        self._changes[version] = {name for name, *_ in entry["added"]}, set(entry["removed"])
        self._check_rows(path)

    def _check_rows(self, path: str) -> None:
        """Who reads the newest version sees no row twice, be its file there or not."""
        shown = self._view.shown
        removed = set[str]().union(*(gone for _, gone in self._changes.values()))
        live = set[str]().union(*(added for added, _ in self._changes.values())) - removed
        doubled = [
            row
            for row, times in Counter(row for name in live for row in shown.get(name, ())).items()
            if times > 1
        ]
        if doubled:
            self._view.world.fail(f"I19: row {doubled[0]} is twice in the version of {path}")

    def is_live(self, name: str) -> bool:
        """Whether the newest version has a file."""
        is_added = any(name in added for added, _ in self._changes.values())
        return is_added and not any(name in gone for _, gone in self._changes.values())

    def _check_removed(self, path: str, nonce: str, removed: set[str]) -> None:
        """An entry removes what its record does, but for dead letters and files of strangers."""
        chains = self._view.chains.values()
        record = next(one for chain in chains for one in chain.records.values() if one.nonce == nonce)
        gone = {*record.replaced, *(name for name, _ in record.superseded)} - self._view.foreign.keys()
        missing = {name for name in gone - removed if not name.startswith("_")}
        if missing:
            self._view.world.fail(f"I19: {path} does not say that {min(missing)} goes")

    def _folded(self, path: str, number: int) -> None:
        mark, world = self._read(path), self._view.world
        if number != max(self._marks, default=-1) + 1:
            world.fail(f"I19: {path} does not follow mark {max(self._marks, default=-1)}")
        if mark["version"] > max(self._entries, default=0) or mark["version"] < self._folded_to():
            world.fail(f"I19: {path} says version {mark['version']}")
        self._marks[number] = mark["version"]

    def _removed(self, path: str, version: str | None) -> None:
        if version is not None and int(version) > self._durable_fold():
            self._view.world.fail(f"I19: {path} was removed and is in no segment for good")

    def _read(self, path: str) -> dict[str, Any]:
        inode = self._view.world.disk.file(path)
        if not inode.durable:
            self._view.world.fail(f"I13: {path} is there before its bytes are durable")
        value: dict[str, Any] = json.loads(payload_of(inode))
        return value

    def _folded_to(self) -> int:
        return max(self._marks.values(), default=0)

    def _durable_fold(self) -> int:
        directory = self._view.world.disk.directory(_DIRECTORY)
        return max(
            (at for number, at in self._marks.items() if f"{number:06d}.mark" in directory.synced), default=0
        )

    def _is_complete(self, nonce: str) -> list[Record]:
        return [
            record
            for chain in self._view.chains.values()
            for slot, record in chain.records.items()
            if record.nonce == nonce and slot in chain.complete
        ]
