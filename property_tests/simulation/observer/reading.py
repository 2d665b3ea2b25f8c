"""How the observer reads a tree and a ledger, without the product's own code."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from property_tests.simulation.world.bucket import Upload
from property_tests.simulation.world.disk import Disk
from property_tests.simulation.world.nodes import Inode


@dataclass(frozen=True, slots=True)
class Record:
    """What a record of the ledger says, as the observer reads it."""

    path: str
    inode: Inode
    slot: int
    nonce: str
    cause: dict[str, Any]
    pending: dict[str, dict[str, Any]]  # by target
    discards: frozenset[str]
    replaced: frozenset[str]
    held: dict[str, dict[str, Any]]  # by hidden path
    announced: frozenset[str] = frozenset()  # buckets
    superseded: frozenset[tuple[str, str]] = frozenset()  # with what stands for it
    graces: Mapping[str, int] = field(default_factory=dict)  # of what it replaces, in milliseconds


@dataclass(slots=True)
class Chain:
    """The ledger of one sink, as it stands."""

    records: dict[int, Record] = field(default_factory=dict)
    complete: set[int] = field(default_factory=set)
    mark: int = -1
    is_open: bool = False  # its records need nothing of each other

    def at_work(self) -> list[Record]:
        """Records whose files may still be needed hidden: the newest, or all that are not complete."""
        if self.is_open:
            return [
                one for slot, one in self.records.items() if slot > self.mark and slot not in self.complete
            ]
        newest = self.newest()
        return [] if newest is None else [newest]

    def newest(self) -> Record | None:
        """The last record that is not void."""
        valid = [slot for slot in self.records if slot > self.mark]
        return self.records[max(valid)] if valid else None

    def newest_slot(self) -> int:
        """The last slot that is decided."""
        return max(self.records.keys() | self.complete | {self.mark})


@dataclass(slots=True)
class Seen:
    """A visible file when it was first seen."""

    inode: Inode
    number: int
    data: bytes
    mtime_ns: int
    rows: list[str]


def tag_of(sink: str) -> str:
    """What all hidden names of a sink hold."""
    return hashlib.sha256(sink.encode()).hexdigest()[:8]


def read_record(path: str, inode: Inode) -> Record:
    """A record taken apart by hand: a line of frame, a line of JSON, then the sections."""
    head_line, _, body = payload_of(inode).partition(b"\n")
    head = json.loads(head_line)
    sections: dict[str, bytes] = {}
    for name, _, length in head["sections"]:
        sections[name], body = body[:length], body[length + 1 :]
    entries = json.loads(sections.pop("committables"))
    announced = json.loads(sections.pop("announcement", b"") or b"[]")
    held = [
        entry for name, data in sections.items() if name.startswith("state") for entry in json.loads(data)
    ]
    return Record(
        path=path,
        inode=inode,
        slot=head["slot"],
        nonce=head["nonce"],
        cause=head["cause"],
        pending={entry["target"]: entry for entry in entries if entry["kind"] == "pending"},
        discards=frozenset(entry["path"] for entry in entries if entry["kind"] == "discard"),
        replaced=frozenset(entry["path"] for entry in entries if entry["kind"] == "replaced"),
        held={staged_path(entry): entry for entry in held},
        superseded=frozenset(
            (entry["path"], entry["by"]) for entry in entries if entry["kind"] == "superseded"
        ),
        announced=frozenset(entry["bucket"] for entry in announced if entry["kind"] == "partition"),
        graces={
            entry["path"]: entry["grace_ms"]
            for entry in entries
            if entry["kind"] == "replaced" and "grace_ms" in entry and "since_ms" not in entry
        },
    )


def read_completion(inode: Inode) -> tuple[str, frozenset[str]]:
    """What a completion says: the nonce of its record, and paths that are still to be removed."""
    head, _, _ = payload_of(inode).partition(b"\n")
    nonce: str = json.loads(head)["nonce"]
    return nonce, frozenset(read_times(inode))


def read_times(inode: Inode) -> dict[str, int]:
    """For each path that is still to be removed, until when a completion promises it; else 0."""
    _, _, left = payload_of(inode).partition(b"\n")
    entries = json.loads(left or b"[]")
    return {entry["path"]: entry.get("since_ms", 0) + entry.get("grace_ms", 0) for entry in entries}


def payload_of(inode: Inode) -> bytes:
    frame, _, payload = bytes(inode.data).partition(b"\n")
    return zlib.decompress(payload) if b" zlib " in frame else payload


def staged_path(entry: dict[str, Any]) -> str:
    """The hidden path of what an entry of a record names; that of an upload is no file's."""
    staged: dict[str, str] = entry["staged"]
    if staged["kind"] != "upload":
        return staged["path"]
    above, slash, name = staged["target"].rpartition("/")
    return f"{above}{slash}.{name}.upload.{staged['upload_id']}"


def read_staged(disk: Disk, uploads: Mapping[str, Upload], entry: dict[str, Any]) -> bytes | None:
    """What is there under the name of ``entry``, as it was recorded; ``None`` if it is gone or changed."""
    staged = entry["staged"]
    if staged["kind"] == "upload":
        upload = uploads.get(staged["upload_id"])
        if upload is None or (upload.key, upload.token) != (staged["target"], staged["token"]):
            return None
        parts = {number: etag for number, (etag, _) in upload.parts.items()}
        return upload.data if parts == {part["number"]: part["etag"] for part in staged["parts"]} else None
    node = disk.find(staged["path"])
    return bytes(node.data) if isinstance(node, Inode) and len(node.data) == staged["size"] else None
