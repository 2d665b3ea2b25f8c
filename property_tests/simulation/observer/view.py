"""What the observer has seen of one disk so far, and what its parts ask about a file or a record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from property_tests.simulation.observer.reading import Chain, Record, Seen, read_record, read_staged
from property_tests.simulation.observer.uploads import UploadWatch
from property_tests.simulation.workload import Source
from property_tests.simulation.world.nodes import Inode
from property_tests.simulation.world.world import World

EXCLUSIVE = "exclusive"  # the ledger of all writes that replace files


@dataclass(slots=True)
class Replaced:
    """What writes that replace files have done so far.

    Attributes:
        rows: those of files that were replaced and are gone.
        files: all that a record has named.
        edited: those that somebody has put others in the place of.
        left: what the newest complete epoch could not remove.
        ever_left: what any could not.
    """

    rows: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)
    edited: set[str] = field(default_factory=set)
    left: frozenset[str] = frozenset()
    ever_left: set[str] = field(default_factory=set)


class View:
    """Facts, which the parts of the observer gather and share; they judge them.

    Args:
        world: whose disk.
        sources: all rows that are ever written.
    """

    def __init__(self, world: World, sources: list[Source]) -> None:
        self.world = world
        self.sources = sources
        self.visible: dict[str, Seen] = {}
        self.shown: dict[str, list[str]] = {}  # rows of every file that was ever seen
        self.rows: dict[str, str] = {}  # row to the file that shows it
        self.chains: dict[str, Chain] = {}
        self.decided: dict[str, tuple[str, Record]] = {}  # target to sink and record
        self.claims: dict[str, str] = {}  # nonce of the record that a txn_id stands for, by its name
        self.foreign: dict[str, bytes] = {}
        self.replaced = Replaced()
        self.on_complete: Callable[[Chain, int], None] = lambda _chain, _slot: None
        self.on_decided: Callable[[Record], None] = lambda _record: None
        self.uploads: UploadWatch | None = None  # of an object store, whose objects are files here
        self.looks = True

    def is_void(self, record: Record) -> bool:
        """Whether another write has the txn_id of ``record``."""
        name = record.cause.get("remembered_in", "")
        return self.claims.get(name, record.nonce) != record.nonce

    def is_claimed(self, record: Record) -> bool:
        """Whether no other write may have its txn_id."""
        name = record.cause.get("remembered_in", "")
        return not name or self.claims.get(name) == record.nonce

    def is_settled(self, name: str) -> bool:
        """Whether nobody needs a visible file any more to carry its epoch through, power cut or not."""
        if name not in self.decided:
            return name in self.foreign
        sink, record = self.decided[name]
        if record.slot <= self.chains[sink].mark:
            return True
        if record.slot not in self.chains[sink].complete:
            return False
        # Of one chain, only the newest epoch is ever carried through, so a power cut changes nothing.
        done = f"_filesink/{sink}/{record.slot:012d}.complete"
        return sink == EXCLUSIVE or self.world.disk.find_synced(done) is not None

    def read(self, path: str) -> Record:
        """The record that has just been put."""
        inode = self.world.disk.file(path)
        if not inode.durable:
            self.world.fail(f"I13: {path} is there before its bytes are durable")
        try:
            return read_record(path, inode)
        except (ValueError, KeyError, TypeError) as error:
            self.world.fail(f"I13: {path} cannot be read: {error}")
            raise

    def check_durable(self, path: str, inode: Inode, what: str) -> None:
        """No power cut may take the bytes or the name of a file."""
        if not inode.durable:
            self.world.fail(f"I1: {what}, {path}, has bytes that are not durable")
        if self.world.disk.find_synced(path) is not inode:
            self.world.fail(f"I1: {what}, {path}, has a name that is not durable")

    def staged_bytes(self, entry: dict[str, Any]) -> bytes | None:
        """What is there under the hidden name of an entry of a record, as it was recorded."""
        uploads = self.uploads.bucket.uploads if self.uploads else {}
        return read_staged(self.world.disk, uploads, entry)
