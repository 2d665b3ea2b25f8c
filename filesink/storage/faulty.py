"""A store around a store that fails where a plan says so. For tests of those who use stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from filesink.storage.api import Deletion, Entry, Output, PutResult, Removal, Store
from filesink.storage.bucket_ids import Refusal
from filesink.storage.staged import Piece, Staged

if TYPE_CHECKING:
    from formats.api import Buffer

T = TypeVar("T")


class Moment(Enum):
    """When an operation fails."""

    BEFORE = "before"  # nothing was done
    AFTER = "after"  # it was done, and only the answer got lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """``error`` is raised before the effect of an operation, or after it.

    A crash is an error that nobody catches: a ``BaseException`` of the test's own.
    """

    moment: Moment
    error: BaseException


#: Asked before each operation with its name (that of the method of ``Store``; ``write``, ``close``
#: and ``discard`` for outputs) and its path (``""`` for ``prepare``, ``sync`` and
#: ``sync_directories``; the target for ``promote`` and ``publish``).
Plan = Callable[[str, str], Fault | None]


class FaultyStore(Store):
    """Does what ``store`` does unless ``plan`` has a fault for it."""

    def __init__(self, store: Store, plan: Plan) -> None:
        self.name = store.name
        self._store = store
        self._plan = plan

    def prepare(self) -> None:
        """See ``Store.prepare``."""
        perform(self._plan, ("prepare", ""), self._store.prepare)

    def removal(self) -> Removal:
        """See ``Store.removal``."""
        return perform(self._plan, ("removal", ""), self._store.removal)

    def create(self, path: str, *, target: str | None) -> Output:
        """See ``Store.create``. Without effect by itself, so only its output fails."""
        return FaultyOutput(self._store.create(path, target=target), path, self._plan)

    def refusal(self, path: str) -> Refusal | None:
        """See ``Store.refusal``. Without effect."""
        return self._store.refusal(path)

    def sync(self) -> None:
        """See ``Store.sync``."""
        perform(self._plan, ("sync", ""), self._store.sync)

    def promote(self, held: Staged, target: str) -> Staged:
        """See ``Store.promote``."""
        return perform(self._plan, ("promote", target), lambda: self._store.promote(held, target))

    def concat(self, pieces: Sequence[Piece], path: str, *, target: str | None) -> Staged:
        """See ``Store.concat``."""
        return perform(self._plan, ("concat", path), lambda: self._store.concat(pieces, path, target=target))

    def verify(self, staged: Staged) -> None:
        """See ``Store.verify``."""
        perform(self._plan, ("verify", staged.path), lambda: self._store.verify(staged))

    def publish(self, staged: Staged, target: str) -> None:
        """See ``Store.publish``."""
        perform(self._plan, ("publish", target), lambda: self._store.publish(staged, target))

    def is_published(self, staged: Staged, target: str) -> bool:
        """See ``Store.is_published``."""
        return perform(self._plan, ("is_published", target), lambda: self._store.is_published(staged, target))

    def sync_directories(self, directories: Iterable[str]) -> None:
        """See ``Store.sync_directories``."""
        perform(self._plan, ("sync_directories", ""), lambda: self._store.sync_directories(directories))

    def release(self, staged: Staged) -> None:
        """See ``Store.release``."""
        perform(self._plan, ("release", staged.path), lambda: self._store.release(staged))

    def discard(self, path: str) -> None:
        """See ``Store.discard``."""
        perform(self._plan, ("discard", path), lambda: self._store.discard(path))

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        """See ``Store.put_if_absent``."""
        return perform(self._plan, ("put_if_absent", path), lambda: self._store.put_if_absent(path, data))

    def read(self, path: str) -> bytes | None:
        """See ``Store.read``."""
        return perform(self._plan, ("read", path), lambda: self._store.read(path))

    def delete(self, path: str) -> None:
        """See ``Store.delete``."""
        perform(self._plan, ("delete", path), lambda: self._store.delete(path))

    def delete_if_unchanged(self, path: str, *, size: int, version: str) -> Deletion:
        """See ``Store.delete_if_unchanged``."""
        return perform(
            self._plan,
            ("delete_if_unchanged", path),
            lambda: self._store.delete_if_unchanged(path, size=size, version=version),
        )

    def list(self, directory: str) -> list[Entry]:
        """See ``Store.list``."""
        return perform(self._plan, ("list", directory), lambda: self._store.list(directory))

    def scan(self, directory: str) -> Iterator[Entry]:
        """See ``Store.scan``."""
        yield from perform(self._plan, ("scan", directory), lambda: self._store.scan(directory))

    def find(self, path: str) -> Entry | None:
        """See ``Store.find``."""
        return perform(self._plan, ("find", path), lambda: self._store.find(path))

    def open_input(self, path: str) -> BinaryIO:
        """See ``Store.open_input``."""
        return perform(self._plan, ("open_input", path), lambda: self._store.open_input(path))


class FaultyOutput:
    """See ``filesink.storage.api.Output``."""

    def __init__(self, output: Output, path: str, plan: Plan) -> None:
        self._output = output
        self._path = path
        self._plan = plan

    @property
    def closed(self) -> bool:
        """See ``Output.closed``."""
        return self._output.closed

    def write(self, data: Buffer, /) -> int:
        """See ``Output.write``."""
        return perform(self._plan, ("write", self._path), lambda: self._output.write(data))

    def tell(self) -> int:
        """See ``Output.tell``."""
        return self._output.tell()

    def flush(self) -> None:
        """See ``Output.flush``."""

    def close(self) -> Staged:
        """See ``Output.close``."""
        return perform(self._plan, ("close", self._path), self._output.close)

    def discard(self) -> None:
        """See ``Output.discard``."""
        perform(self._plan, ("discard", self._path), self._output.discard)


def perform(plan: Plan, operation: tuple[str, str], effect: Callable[[], T]) -> T:
    """Run ``effect``, failing before or after it if the plan says so."""
    fault = plan(*operation)
    if fault is None:
        return effect()
    if fault.moment is Moment.AFTER:
        effect()
    raise fault.error
