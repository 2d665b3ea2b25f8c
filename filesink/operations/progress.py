"""How far long work is, for who waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from inspect import signature
from itertools import count
from typing import Protocol, TypeVar

from filesink.errors import ConfigError

A = TypeVar("A")
B = TypeVar("B")


class Progress(Protocol):
    """Told how far an operation is; in any thread, but by one at a time. What it raises ends it."""

    def __call__(self, step: str, done: int, total: int | None) -> object:
        """``done`` of ``total`` pieces of ``step``; ``None`` while nobody knows how many there are."""
        ...


def progress_of(given: Progress | None) -> Progress:
    """``given``, if it is one; nobody is told for ``None``.

    Raises:
        ConfigError: ``BAD_VALUE``.
    """
    if given is not None and not _takes_steps(given):
        raise ConfigError(
            f"progress must be a function of a step, a number and a total, got {type(given).__name__}",
            code="BAD_VALUE",
        )
    return given or nobody


def nobody(step: str, done: int, total: int | None) -> None:
    """See ``Progress``."""
    del step, done, total


def counted(progress: Progress, step: str, total: int, piece: Callable[[A], B]) -> Callable[[A], B]:
    """``piece``, of which each call that returns is told as one of ``total`` of ``step``."""
    numbers, lock = count(1), threading.Lock()

    def run(one: A) -> B:
        made = piece(one)
        with lock:
            progress(step, next(numbers), total)
        return made

    return run


def _takes_steps(progress: Progress) -> bool:
    try:
        signature(progress).bind("files", 0, None)
    except (TypeError, ValueError):
        return False
    return True
