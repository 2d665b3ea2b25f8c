"""How far long work is, for who waits for it.

Rule: who waits ends nothing. What a ``Progress`` raises would leave an epoch decided and not complete, or an
erasure without its proof.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from inspect import signature
from itertools import count
from typing import Protocol, TypeVar

from filesink.errors import ConfigError
from filesink.storage.api import Store
from filesink.storage.wrapped import WrappedStore

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")
log = logging.getLogger("filesink")


class Progress(Protocol):
    """Told how far an operation is; in any thread, but by one at a time.

    What it raises is logged, the work goes on, and nothing more is told. Only what ends a program does that
    here, too: ``KeyboardInterrupt`` and ``SystemExit``.
    """

    def __call__(self, step: str, done: int, total: int | None) -> object:
        """``done`` of ``total`` pieces of ``step``; ``None`` while nobody knows how many there are."""
        ...


def progress_of(given: Progress | None) -> Progress:
    """``given`` as a ``Progress`` that never raises, if it is one; nobody is told for ``None``.

    Raises:
        ConfigError: ``BAD_VALUE``.
    """
    if given is None:
        return nobody
    if not _takes_steps(given):
        raise ConfigError(
            f"progress must be a function of a step, a number and a total, got {type(given).__name__}",
            code="BAD_VALUE",
        )
    return _UntilItRaises(given)


def nobody(step: str, done: int, total: int | None) -> None:
    """See ``Progress``."""
    del step, done, total


def counted(progress: Progress, step: str, total: int | None, piece: Callable[[A], B]) -> Callable[[A], B]:
    """``piece``, of which each call that returns is told as one of ``total`` of ``step``."""
    numbers, lock = count(1), threading.Lock()

    def run(one: A) -> B:
        made = piece(one)
        with lock:
            progress(step, next(numbers), total)
        return made

    return run


def telling(
    open_store: Callable[[], Store], progress: Progress, steps: Mapping[str, str]
) -> Callable[[], Store]:
    """What opens the same stores, whose calls are told: for work that is done elsewhere.

    Args:
        open_store: opens a store; all that it opens count together.
        progress: is told. Nothing is wrapped for ``nobody``.
        steps: what pieces of work are called, by the names of those methods of ``Store`` that do one.
    """
    if progress is nobody:
        return open_store
    each = {step: counted(progress, step, None, lambda _: None) for step in steps.values()}
    tell = {method: each[step] for method, step in steps.items()}
    return lambda: _ToldStore(open_store(), tell)


class _ToldStore(WrappedStore):
    """Does what ``store`` does, and tells of calls that have returned."""

    def __init__(self, store: Store, tell: Mapping[str, Callable[[None], None]]) -> None:
        super().__init__(store)
        self.runner = store.runner
        self._tell = tell

    def _call(self, operation: str, path: str, effect: Callable[[], T]) -> T:
        del path
        result = effect()
        if operation in self._tell:
            self._tell[operation](None)
        return result


class _UntilItRaises:
    """Tells a ``Progress`` of a user's until it raises."""

    def __init__(self, given: Progress) -> None:
        self._given = given
        self._lock = threading.Lock()

    def __call__(self, step: str, done: int, total: int | None) -> None:
        """See ``Progress``."""
        with self._lock:
            try:
                self._given(step, done, total)
            except Exception as error:  # noqa: BLE001 - a user's code: it may raise anything, and no work is lost of it
                self._given = nobody
                log.warning(
                    "progress failed with %s: %s; the work goes on, and nothing more is told of it",
                    type(error).__name__,
                    error,
                )


def _takes_steps(progress: Progress) -> bool:
    try:
        signature(progress).bind("files", 0, None)
    except (TypeError, ValueError):
        return False
    return True
