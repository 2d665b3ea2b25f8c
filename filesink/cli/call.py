"""One call of a command: what all of them take, where they print, and how they end.

Exit codes: 0 good, 1 a finding, 2 a wrong use, 3 could not look.

Rules:
1. Tables and JSON go to standard output, everything else to standard error.
2. An error is one sentence. Its traceback is there with ``--debug``.
3. Output that cannot be written, or that nobody reads any more, is the matter of ``program``.
4. Whatever comes from a store is cleaned before it is printed, see ``text.clean``.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

import filesink
from filesink.cli.text import as_json, clean
from filesink.errors import (
    CleanupError,
    ConfigError,
    DependencyError,
    FilesinkError,
    StateCorruptError,
    StateError,
)
from filesink.system import SystemClock

WIDTH = 100  # columns


class Exit(IntEnum):
    """How a command ends."""

    GOOD = 0
    FINDING = 1
    USAGE = 2
    COULD_NOT_LOOK = 3
    NOBODY_READS = 141  # what a shell says of a program that SIGPIPE has ended


def exit_of(error: FilesinkError) -> Exit:
    """Whether the caller asked for something that cannot be, or it could not be looked at."""
    match error:
        case DependencyError():
            return Exit.COULD_NOT_LOOK
        case ConfigError():
            return Exit.USAGE
        case StateError(code="HISTORY_EXPIRED" | "FILES_GONE"):
            return Exit.USAGE
        case CleanupError():
            return Exit.FINDING
        case _:
            return Exit.COULD_NOT_LOOK


@dataclass(frozen=True, kw_only=True)
class Call:
    """What was given to a command besides its own arguments.

    Attributes:
        json: whether a machine reads what is printed.
        options: of the store; may hold secrets.
        debug: whether errors have a traceback.
    """

    json: bool
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    debug: bool = False
    out: Console = field(default_factory=lambda: _console(stderr=False), repr=False)
    err: Console = field(default_factory=lambda: _console(stderr=True), repr=False)
    clock: SystemClock = field(default_factory=SystemClock, repr=False)

    def open(self, path: str) -> filesink.SinkDirectory:
        """See ``filesink.open``."""
        return filesink.open(path, self.options)

    def now(self) -> datetime:
        """In UTC."""
        return self.moment(self.clock.now_ms())

    @staticmethod
    def moment(at_ms: int) -> datetime:
        """Milliseconds since 1970 UTC as a moment."""
        return datetime.fromtimestamp(at_ms / 1000, tz=UTC)

    def line(self, text: str = "", style: str = "") -> None:
        """A line for people."""
        self.out.print(Text(clean(text), style=style), soft_wrap=False)

    def advice(self, text: str) -> None:
        """A line with commands for people: the terminal breaks it, so that it can be copied whole."""
        self.out.print(Text(clean(text)), soft_wrap=True)

    def show(self, value: Any) -> None:
        """A line for machines."""
        self.whole(as_json(value))

    def whole(self, text: str) -> None:
        """A line of any length for other programs."""
        with _writing():
            typer.echo(text)

    def note(self, text: str) -> None:
        """Something beside the result. If nobody can read it, that ends no work in its midst."""
        with suppress(OSError):
            self.err.print(Text(clean(text)), soft_wrap=True)

    @contextmanager
    def progress(self) -> Iterator[Steps]:
        """A bar on standard error, if that is a terminal."""
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        hidden = self.json or not self.err.is_terminal
        with Progress(*columns, console=self.err, transient=True, disable=hidden) as bar:
            yield Steps(bar)


class Steps:
    """Shows how far a step of long work is."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._tasks: dict[str, Any] = {}

    def __call__(self, step: str, done: int, total: int | None) -> None:
        """``done`` of ``total`` pieces of ``step``; ``None`` if nobody knows how many there are."""
        if step not in self._tasks:
            self._tasks[step] = self._bar.add_task(step, total=total)
        self._bar.update(self._tasks[step], completed=done, total=total)


class OutputError(OSError):
    """The output of a command cannot be written."""


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(error.errno, error.strerror) from error


class _Console(Console):
    """Leaves it to ``program`` what becomes of a command whose output nobody takes."""

    def on_broken_pipe(self) -> None:
        """See ``rich.console.Console``."""
        raise BrokenPipeError

    def print(self, *objects: Any, **how: Any) -> None:
        """See ``rich.console.Console``."""
        with _writing():
            super().print(*objects, **how)


def _console(*, stderr: bool) -> Console:
    found = _Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    return found if found.is_terminal and found.width <= WIDTH else _of_width(stderr=stderr)


def _of_width(*, stderr: bool) -> Console:
    return _Console(stderr=stderr, highlight=False, markup=False, emoji=False, width=WIDTH)


@contextmanager
def ending(call: Call) -> Iterator[None]:
    """Turn what a command raises into a sentence and an exit code."""
    with _logging(call):
        try:
            yield
            with _writing():
                sys.stdout.flush()  # not when the interpreter ends: then nobody hears of an error
        except (BrokenPipeError, OutputError):
            raise
        except FilesinkError as error:
            if call.debug:
                raise
            hint = "; filesink fsck tells what mends it" if isinstance(error, StateCorruptError) else ""
            _fail(call, f"{error.message}{hint}", exit_of(error), word=error.code)
        except (typer.Exit, typer.Abort, KeyboardInterrupt):
            raise
        except Exception as error:  # a defect of ours; the last one to hear of it, so that it is a sentence
            if call.debug:
                raise
            # Not its text, which may hold a value of a record.
            what = (
                f"this should not happen ({type(error).__name__}); please report it with what --debug shows"
            )
            _fail(call, what, Exit.COULD_NOT_LOOK, word="INTERNAL")


def _fail(call: Call, message: str, exit_code: Exit, *, word: str) -> NoReturn:
    if call.json:
        call.show({"error": message, "code": word})
    else:
        call.note(f"filesink: {message} [{word}]")
    raise typer.Exit(int(exit_code))


class _Warnings(logging.Handler):
    """Prints what the library warns of."""

    def __init__(self, call: Call) -> None:
        super().__init__(logging.WARNING)
        self._call = call

    def emit(self, record: logging.LogRecord) -> None:
        """See ``logging.Handler``."""
        self._call.note(f"{record.levelname.lower()}: {record.getMessage()}")


@contextmanager
def _logging(call: Call) -> Iterator[None]:
    log, handler = logging.getLogger("filesink"), _Warnings(call)
    log.addHandler(handler)
    propagates, log.propagate = log.propagate, False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.propagate = propagates


def chains_with(uid: str | None, ids: Iterable[str], path: str) -> frozenset[str] | None:
    """Those of ``ids`` that belong to ``uid``, which may be an id itself; ``None`` for all.

    Raises:
        ConfigError: ``NO_SINK``; it names those that are there.
    """
    if uid is None:
        return None
    there = frozenset(ids)
    found = there & {f"uid-{uid}", f"appends-{uid}", uid}
    if not found:
        known = ", ".join(f"'{name}'" for name in sorted(there)) or "none"
        raise ConfigError(
            f"no sink with uid '{uid}' has written to '{path}'; these have: {known}. Pass one of them "
            "as --uid, or what follows 'uid-' in it",
            code="NO_SINK",
        )
    return found
