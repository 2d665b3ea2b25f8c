"""A store around a store that fails where a plan says so. For tests of those who use stores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from filesink.storage.api import Output, Store
from filesink.storage.staged import Staged
from filesink.storage.wrapped import WrappedStore

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
#: and ``discard`` for outputs) and its path, see ``WrappedStore``.
Plan = Callable[[str, str], Fault | None]


class FaultyStore(WrappedStore):
    """Does what ``store`` does unless ``plan`` has a fault for it."""

    def __init__(self, store: Store, plan: Plan) -> None:
        super().__init__(store)
        self._plan = plan

    def create(self, path: str, *, target: str | None) -> Output:
        """See ``Store.create``. Without effect by itself, so only its output fails."""
        return FaultyOutput(self._store.create(path, target=target), path, self._plan)

    def _call(self, operation: str, path: str, effect: Callable[[], T]) -> T:
        return perform(self._plan, (operation, path), effect)


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
