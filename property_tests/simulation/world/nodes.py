"""What a simulated disk is made of."""

from __future__ import annotations

from dataclasses import dataclass, field

from filesink.storage.api import Entry


@dataclass(slots=True, eq=False)
class Inode:
    """A file. ``synced`` is what a power cut leaves for sure; ``owner`` is whoever made it."""

    number: int
    owner: object = None
    data: bytearray = field(default_factory=bytearray)
    synced: bytes = b""
    clean: bool = False  # an fsync has failed: what was written before it will never be synced
    mtime_ns: int = 0
    links: int = 0
    handles: int = 0
    gone: bool = False
    listed: Entry | None = None

    @property
    def durable(self) -> bool:
        """Whether a power cut cannot change the content."""
        return len(self.synced) == len(self.data) and self.synced == self.data


@dataclass(slots=True)
class Change:
    """One name made or removed."""

    name: str
    node: Inode | Directory
    made: bool


@dataclass(slots=True, eq=False)
class Directory:
    """Names; ``synced`` are those on disk, ``changes`` what happened since, in order."""

    number: int
    entries: dict[str, Inode | Directory] = field(default_factory=dict)
    synced: dict[str, Inode | Directory] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    listed: Entry | None = None
