"""Which calls go wrong: one chosen call, or chance."""

from __future__ import annotations

import errno
import sys
from collections.abc import Collection
from random import Random

from property_tests.simulation.world.faults import (
    APPLICABLE,
    CRASHES,
    FILE_CALLS,
    NEEDS_SPACE,
    OBJECT_CALLS,
    Fault,
    Mode,
    codes,
    place,
    single_faults,
)
from property_tests.simulation.world.world import Plan


class OneFault(Plan):
    """The call with a given number goes wrong, and, if sticky, all later ones of its kind."""

    def __init__(self, number: int, fault: Fault, *, sticky: bool) -> None:
        self._number = number
        self._fault = fault
        self._sticky = sticky

    def fault(self, operation: str, path: str, number: int) -> Fault | None:
        """See ``Plan.fault``."""
        del operation, path
        return self._fault if number == self._number else None

    def is_sticky(self) -> bool:
        """See ``Plan.is_sticky``."""
        return self._sticky


class Recorder(Plan):
    """Nothing goes wrong; the names of the calls are kept, each with the kind of thing it is about."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def fault(self, operation: str, path: str, number: int) -> Fault | None:
        """See ``Plan.fault``."""
        del number
        self.calls.append((operation, place(path)))
        return None


class TwoFaults(Plan):
    """A crash at one call, and something else a number of calls later: in the recovery.

    A ``mode`` that does not apply to the call that it meets is a crash, too.
    """

    def __init__(self, first: int, crash: Fault, *, second: int, mode: Mode) -> None:
        self._first = first
        self._crash = crash
        self._second = second
        self._mode = mode

    def fault(self, operation: str, path: str, number: int) -> Fault | None:
        """See ``Plan.fault``."""
        del path
        if number == self._first:
            return self._crash
        if number != self._second:
            return None
        fitting = (fault for fault in single_faults(operation) if fault.mode is self._mode)
        return next(fitting, Fault(Mode.CRASH_AFTER))


_FILLS_UP = 0.05  # of all histories


class Chance(Plan):
    """Calls go wrong at random; each seed allows another subset of modes and calls (swarm testing).

    Args:
        random: of the history.
        spacing: calls between two faults, on average.
        faults: at most so many.
    """

    def __init__(self, random: Random, *, spacing: int, faults: int) -> None:
        self._random = random
        self._spacing = spacing
        self._left = faults
        self._modes = {mode for mode in Mode if random.random() < 0.6} or {Mode.CRASH_AFTER}
        share = random.choice((0.3, 1.0, 1.0))
        chosen = [random.random() < share for _ in FILE_CALLS]
        names = [*zip(FILE_CALLS, chosen, strict=True), *zip(OBJECT_CALLS, chosen, strict=False)]
        self._operations: Collection[str] = {name for name, is_chosen in names if is_chosen}
        self._sticky = random.choice((0.0, 0.0, 0.3))
        self._next = random.randrange(random.choice((40, 300, 700)))
        self._slow_until = 0
        self._full = random.randrange(600) if random.random() < _FILLS_UP else sys.maxsize

    def fault(self, operation: str, path: str, number: int) -> Fault | None:
        """See ``Plan.fault``."""
        del path
        if number >= self._full and operation in NEEDS_SPACE:
            return Fault(Mode.FULL, errno.ENOSPC)
        if number < self._slow_until and Mode.LATE in APPLICABLE[operation]:
            return Fault(Mode.LATE, errno.ETIMEDOUT)
        if number < self._next or self._left <= 0:
            return None
        modes = [mode for mode in CRASHES if mode in self._modes]
        if operation in self._operations:
            modes += [mode for mode in APPLICABLE[operation] if mode in self._modes]
        if not modes:
            return None  # the next call that can go wrong does
        self._left -= 1
        self._next = self._after(number)
        mode = self._random.choice(modes)
        if mode is Mode.LATE:  # a server that is slow is slow for a while
            self._slow_until = number + self._random.randrange(12)
        return self._drawn(operation, mode)

    def is_sticky(self) -> bool:
        """See ``Plan.is_sticky``."""
        return self._random.random() < self._sticky

    def make_room(self) -> None:
        """See ``Plan.make_room``."""
        self._full = sys.maxsize

    def _drawn(self, operation: str, mode: Mode) -> Fault:
        if mode in CRASHES:
            return Fault(mode)
        if mode is Mode.PARTIAL and self._random.random() < 0.5:
            return Fault(mode)
        return Fault(mode, self._random.choice(codes(operation, mode)))

    def _after(self, number: int) -> int:
        return number + 1 + int(self._random.expovariate(1 / self._spacing))


class MetastoreTrouble(Plan):
    """What another plan does, and calls of the metastore that go wrong often: it is on another machine."""

    def __init__(self, random: Random, plan: Plan, *, faults: int) -> None:
        self._random = random
        self._plan = plan
        self._left = faults
        self._often = random.choice((0.1, 0.3, 0.9))
        self._only = random.choice(("metastore", "metastore_read", "metastore_add", "metastore_alter"))

    def fault(self, operation: str, path: str, number: int) -> Fault | None:
        """See ``Plan.fault``."""
        found = self._plan.fault(operation, path, number)
        if found is not None or not operation.startswith(self._only):
            return found
        if self._left <= 0 or self._random.random() >= self._often:
            return None
        self._left -= 1
        mode = self._random.choice((*APPLICABLE[operation], Mode.CRASH_BEFORE, Mode.CRASH_AFTER))
        return Fault(mode, 0 if mode in CRASHES else self._random.choice(codes(operation, mode)))

    def is_sticky(self) -> bool:
        """See ``Plan.is_sticky``."""
        return self._plan.is_sticky()

    def make_room(self) -> None:
        """See ``Plan.make_room``."""
        self._plan.make_room()


class NextFault(Plan):
    """One fault at a time, at the first call from a number on that it applies to."""

    def __init__(self) -> None:
        self._number = 0
        self._mode: Mode | None = None

    def set(self, number: int, mode: Mode) -> None:
        """Have ``mode`` strike at call ``number`` or soon after."""
        self._number, self._mode = number, mode

    def fault(self, operation: str, path: str, number: int) -> Fault | None:
        """See ``Plan.fault``."""
        del path
        mode = self._mode
        if mode is None or number < self._number:
            return None
        if mode in CRASHES:
            self._mode = None
            return Fault(mode)
        if mode not in APPLICABLE[operation]:
            return None
        self._mode = None
        possible = codes(operation, mode)
        return Fault(mode, possible[number % len(possible)])
