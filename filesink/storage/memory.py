"""The simplest store that keeps the contract: a dictionary. What the others are compared with."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from threading import RLock
from typing import TYPE_CHECKING, BinaryIO

from filesink.errors import CommitConflictError, InternalError, StagedDataLost, StorageError
from filesink.naming import check_relative
from filesink.storage.api import Entry, Kind, PutResult, Store
from filesink.storage.bucket_ids import Refusal
from filesink.storage.staged import HiddenFile, Piece, Staged, Tail, own

if TYPE_CHECKING:
    from formats.api import Buffer


@dataclass(slots=True)
class MemoryFile:
    """One file. ``inode`` tells it apart from any other that ever had the same name."""

    inode: int
    mtime_ms: int
    content: bytes = b""


@dataclass(slots=True)
class MemoryFiles:
    """What all stores of one simulated machine see.

    Args:
        now_ms: gives files their modification time, in milliseconds since 1970 UTC.
    """

    now_ms: Callable[[], int] = field(default=lambda: 0)
    files: dict[str, MemoryFile] = field(default_factory=dict)
    lock: RLock = field(default_factory=RLock)
    made: int = 0

    def make(self, path: str, content: bytes = b"") -> MemoryFile | None:
        """A new file, or ``None`` if there is one already."""
        with self.lock:
            if check_relative(path) in self.files:
                return None
            self.made += 1
            self.files[path] = MemoryFile(self.made, self.now_ms(), content)
            return self.files[path]


class MemoryOutput:
    """See ``filesink.storage.api.Output``."""

    def __init__(self, files: MemoryFiles, path: str) -> None:
        self._files = files
        self._path = path
        self._file: MemoryFile | None = None
        self._closed = False

    @property
    def closed(self) -> bool:
        """See ``Output.closed``."""
        return self._closed

    def write(self, data: Buffer, /) -> int:
        """See ``Output.write``."""
        piece = bytes(memoryview(data).cast("B"))
        self._open().content += piece
        return len(piece)

    def tell(self) -> int:
        """See ``Output.tell``."""
        return len(self._file.content) if self._file else 0

    def flush(self) -> None:
        """See ``Output.flush``."""

    def close(self) -> HiddenFile:
        """See ``Output.close``."""
        file = self._open()
        self._closed = True
        return _identify(self._path, file)

    def discard(self) -> None:
        """See ``Output.discard``."""
        self._closed = True
        with self._files.lock:
            if self._file is not None and self._files.files.get(self._path) is self._file:
                del self._files.files[self._path]

    def _open(self) -> MemoryFile:
        if self._closed:
            raise InternalError(f"'{self._path}' was written after it was closed", code="CLOSED")
        if self._file is None:
            self._file = self._files.make(self._path)
        if self._file is None:
            raise CommitConflictError(f"'{self._path}' exists already, not overwritten", code="EXISTS")
        return self._file


class MemoryStore(Store):
    """A store whose files live as long as the ``MemoryFiles`` it is given. Durable at once."""

    name = "memory"

    def __init__(self, files: MemoryFiles) -> None:
        self._shared = files
        self._files = files.files

    def prepare(self) -> None:
        """See ``Store.prepare``."""

    def create(self, path: str, *, target: str | None) -> MemoryOutput:
        """See ``Store.create``."""
        del target
        return MemoryOutput(self._shared, check_relative(path))

    def refusal(self, path: str) -> Refusal | None:
        """See ``Store.refusal``."""
        del path
        return None

    def sync(self) -> None:
        """See ``Store.sync``."""

    def promote(self, held: Staged, target: str) -> Staged:
        """See ``Store.promote``."""
        del target
        return held

    def concat(self, pieces: Sequence[Piece], path: str, *, target: str | None) -> Staged:
        """See ``Store.concat``."""
        with self._shared.lock:
            content = b"".join(map(self._bytes, pieces))
            output = self.create(path, target=target)
            output.write(content)
            return output.close()

    def _bytes(self, piece: Piece) -> bytes:
        match piece:
            case bytes():
                return piece
            case Tail(staged=staged, start=start):
                return self._bytes(staged)[start:]
            case _:
                self.verify(piece)
                return self._files[piece.path].content

    def verify(self, staged: Staged) -> None:
        """See ``Store.verify``."""
        if self._identity(own(staged, HiddenFile).path) != staged:
            raise StagedDataLost(f"'{staged.path}' is gone or changed", code="STAGED_DATA_LOST")

    def publish(self, staged: Staged, target: str) -> None:
        """See ``Store.publish``."""
        file = own(staged, HiddenFile)
        with self._shared.lock:
            hidden = self._identity(file.path)
            found = self._identity(check_relative(target))
            if found is None:
                self.verify(file)
                self._files[target] = self._files.pop(file.path)
            elif (found.size, found.inode) != (file.size, file.inode):
                raise CommitConflictError(f"'{target}' exists already, not overwritten", code="EXISTS")
            elif hidden == file:
                del self._files[file.path]

    def is_published(self, staged: Staged, target: str) -> bool:
        """See ``Store.is_published``."""
        file = own(staged, HiddenFile)
        with self._shared.lock:
            found = self._identity(check_relative(target))
        return found is not None and (found.size, found.inode) == (file.size, file.inode)

    def sync_directories(self, directories: Iterable[str]) -> None:
        """See ``Store.sync_directories``."""
        del directories

    def discard(self, path: str) -> None:
        """See ``Store.discard``."""
        self.delete(path)

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        """See ``Store.put_if_absent``."""
        return PutResult.EXISTS if self._shared.make(path, bytes(data)) is None else PutResult.CREATED

    def read(self, path: str) -> bytes | None:
        """See ``Store.read``."""
        file = self._files.get(check_relative(path))
        if file is None and self.list(path):
            raise StorageError(f"cannot read '{path}': it is a directory", code="WRONG_KIND")
        return None if file is None else file.content

    def delete(self, path: str) -> None:
        """See ``Store.delete``."""
        with self._shared.lock:
            self._files.pop(check_relative(path), None)

    def list(self, directory: str) -> list[Entry]:
        """See ``Store.list``. Directories exist as long as there are files in them."""
        below = f"{check_relative(directory)}/" if directory else ""
        entries: dict[str, Entry] = {}
        with self._shared.lock:
            for path, file in self._files.items():
                name, slash, _ = path.removeprefix(below).partition("/")
                if path.startswith(below):
                    entries[name] = _entry(name, file, Kind.DIRECTORY if slash else Kind.FILE)
        return list(entries.values())

    def open_input(self, path: str) -> BinaryIO:
        """See ``Store.open_input``."""
        content = self.read(path)
        if content is None:
            raise FileNotFoundError(path)
        return io.BytesIO(content)

    def _identity(self, path: str) -> HiddenFile | None:
        file = self._files.get(path)
        return None if file is None else _identify(path, file)


def _identify(path: str, file: MemoryFile) -> HiddenFile:
    return HiddenFile(path=path, size=len(file.content), inode=file.inode, mtime_ns=file.mtime_ms * 1_000_000)


def _entry(name: str, file: MemoryFile, kind: Kind) -> Entry:
    size = len(file.content) if kind is Kind.FILE else 0
    return Entry(name=name, size=size, mtime_ms=file.mtime_ms, kind=kind, version=str(file.inode))
