"""Everything that happens in one history: processes, actors, clock, ids, and what goes wrong when.

Rules:

* One integer decides everything: the same seed gives the same history, call by call.
* Every call of a port goes through ``World.step``. It is the only place where another actor may get
  its turn, a fault may strike, and time passes.
* A dead process does nothing more: whatever its code still tries raises ``Killed``, and has no effect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

import greenlet

from property_tests.simulation.world.disk import Cut, Disk
from property_tests.simulation.world.faults import Fault, Mode, place
from property_tests.simulation.world.late import Late, LateEffects

R = TypeVar("R")
START_MS = 1_700_000_000_000


class Killed(BaseException):
    """The process is gone. Not an ``Exception``: no code survives its own process."""


class Violation(BaseException):
    """An invariant does not hold."""


@dataclass(slots=True, eq=False)
class Process:
    """A driver or a worker. ``lineage`` is the driver that it works for, itself for a driver."""

    name: str
    lineage: Process | None = None
    dead: bool = False
    sticky: dict[str, Fault] = field(default_factory=dict)
    children: list[Process] = field(default_factory=list)

    @property
    def driver(self) -> Process:
        """The driver that this process belongs to."""
        return self if self.lineage is None else self.lineage


@dataclass(slots=True, eq=False)
class Actor:
    """One thread of a process."""

    name: str
    process: Process
    thread: Any
    ready: Callable[[], bool] | None = None
    done: bool = False


class Plan:
    """Decides which calls go wrong. By default none."""

    def fault(self, operation: str, path: str, number: int) -> Fault | None:
        """The fault of call ``number``, counted from 1; asked once per call."""
        del operation, path, number
        return None

    def is_sticky(self) -> bool:
        """Whether the error just given comes back at every later call of its kind, until a restart."""
        return False

    def make_room(self) -> None:
        """Somebody removes other files from a disk that is full."""


class World:
    """A machine and its processes.

    Args:
        random: the source of every choice.
        plan: which calls go wrong.
        pace: calls between two turns, on average; 0 lets an actor run until it waits.
    """

    def __init__(self, random: Random, plan: Plan, *, pace: int) -> None:
        self.random = random
        self.disk = Disk()
        self.plan: Plan | None = plan
        self.watch: Callable[[Process, str, str], None] = lambda _process, _operation, _path: None
        self.operations = 0
        self.now_ms = START_MS
        self.fired: Counter[tuple[str, str, str]] = Counter()
        self.trace: Callable[[str], None] | None = None
        self.violation: Violation | None = None
        self.power_cuts = 0
        self.on_cut: Callable[[], None] = lambda: None
        self._pace = pace
        self._deaths = False
        self.late = LateEffects(random)
        self._actors: list[Actor] = []
        self._hub = greenlet.getcurrent()
        self._current: Actor | None = None
        self._next_turn = self._turn_after()

    # --- actors

    def spawn(self, name: str, process: Process, body: Callable[[], None]) -> Actor:
        """Start a thread of ``process``; it gets its first turn when the scheduler likes."""

        def run() -> None:
            try:
                body()
            except Killed:
                pass
            except Violation:
                pass  # kept in ``self.violation``
            finally:
                actor.done = True

        actor = Actor(name, process, greenlet.greenlet(run, self._hub))
        self._actors.append(actor)
        return actor

    def run(self, until: Callable[[], bool]) -> None:
        """Give turns until ``until`` holds. Called from outside of all actors."""
        while not until() and self.violation is None:
            self._bury()
            ready = [actor for actor in self._actors if actor.ready is None or actor.ready()]
            if not ready:
                self.fail("nothing can go on: " + ", ".join(actor.name for actor in self._actors))
            actor = ready[0] if len(ready) == 1 else ready[self.random.randrange(len(ready))]
            actor.ready = None
            self._switch(actor)
        self._bury()
        if self.violation is not None:
            raise self.violation

    def run_at_most(self, calls: int, until: Callable[[], bool]) -> None:
        """As ``run``; a violation (I7) if that takes more ``calls`` from now on."""
        last = self.operations + calls
        self.run(lambda: until() or self.operations > last)
        if self.operations > last:
            self.fail("I7: a history that does not come to its end")

    def wait(self, ready: Callable[[], bool]) -> None:
        """Let others go on until ``ready`` holds. Called by an actor."""
        actor = self._current
        assert actor is not None
        if not ready():
            actor.ready = ready
            self._hub.switch()
        if actor.process.dead:
            raise Killed

    @property
    def current(self) -> Process:
        """The process whose code runs now. Asked by actors only."""
        assert self._current is not None
        return self._current.process

    def has_others(self, driver: Process) -> bool:
        """Whether anything runs that ``driver`` has not started."""
        return any(actor.process.driver is not driver for actor in self._actors)

    def _switch(self, actor: Actor) -> None:
        self._current = actor
        self._next_turn = self._turn_after()
        actor.thread.switch()
        self._current = None
        if actor.done:
            self._actors.remove(actor)

    def _bury(self) -> None:
        """Unwind the threads of dead processes; none of their calls has an effect any more."""
        if not self._deaths:
            return
        self._deaths = False
        for actor in [actor for actor in self._actors if actor.process.dead]:
            self._current = actor
            if actor.thread:
                actor.thread.throw(Killed)
            self._current = None
            self._actors.remove(actor)

    def end(self) -> None:
        """Kill everything."""
        for actor in self._actors:
            actor.process.dead = self._deaths = True
        self._bury()

    # --- calls

    def step(
        self,
        process: Process,
        operation: str,
        path: str,
        effect: Callable[..., R],
        *arguments: Any,
        partial: Callable[..., R] | None = None,
        late: Callable[..., object] | None = None,
    ) -> R:
        """Carry out one call of ``process``, or what the plan makes of it.

        ``partial`` does a part, and ``late`` does it when nobody waits for it any more.
        """
        if process.dead:
            raise Killed
        if self.operations >= self._next_turn and self._is_an_actors_own():
            self._hub.switch()
            if process.dead:
                raise Killed
        self.operations = number = self.operations + 1
        if self.trace is not None:
            self.trace(f"{number:5d} {process.name:12} {operation} {path}")
        fault = None if self.plan is None else self._fault(self.plan, process, operation, path)
        if fault is None:
            result = effect(*arguments)
            if self.disk.changed:
                self.watch(process, operation, path)
            return result
        if fault.mode is Mode.PARTIAL and partial is not None:
            effect = partial
        if fault.mode is Mode.LATE:
            put_off = Late(process, operation, path, lambda: (late or effect)(*arguments))
            self.late.put_off(put_off, after=number, delay=fault.delay)
        return self._strike(process, fault, operation, path, lambda: effect(*arguments))

    def _is_an_actors_own(self) -> bool:
        """Whether an actor calls by itself: Arrow reads columns in threads of its own, which cannot wait."""
        return self._current is not None and self._current.thread is greenlet.getcurrent()

    def _fault(self, plan: Plan, process: Process, operation: str, path: str) -> Fault | None:
        if self.late.waiting:
            for late in self.late.due(self.operations):
                self.carry_out(late)
        return process.sticky.get(operation) or plan.fault(operation, path, self.operations)

    def carry_out(self, late: Late) -> None:
        """Do what was put off; nobody hears of its error."""
        if self.trace is not None:
            self.trace(f"      late: {late.operation} {late.path}")
        with suppress(OSError):
            late.effect()
        if self.disk.changed:
            self.watch(late.process, late.operation, late.path)

    def _strike(
        self, process: Process, fault: Fault, operation: str, path: str, effect: Callable[[], R]
    ) -> R:
        self.fired[operation, place(path), fault.mode.value] += 1
        if self.trace is not None:
            self.trace(f"      {process.name:12} ^^^ {fault}")
        if fault.mode is Mode.CRASH_BEFORE:
            self.kill(process)
            raise Killed
        if fault.mode in {Mode.ERROR, Mode.LATE, Mode.FULL}:
            if fault.refuses or (
                fault.mode is Mode.ERROR and self.plan is not None and self.plan.is_sticky()
            ):
                process.sticky[operation] = Fault(Mode.ERROR, fault.code)
            raise OSError(fault.code, "simulated")
        result = effect()
        if fault.mode is Mode.TWICE and not fault.code:
            result = effect()
        if self.disk.changed:
            self.watch(process, operation, path)
        if fault.mode in {Mode.LOST_REPLY, Mode.TWICE, Mode.PARTIAL}:
            if fault.code:
                raise OSError(fault.code, "simulated")
            return result
        if fault.mode is Mode.CRASH_AFTER:
            self.kill(process)
        else:
            self.cut_power(Cut.ORDERED if fault.mode is Mode.POWER_ORDERED else Cut.WEAK)
        raise Killed

    # --- death

    def fail(self, finding: str) -> None:
        """Report that an invariant does not hold; ends the history."""
        self.violation = self.violation or Violation(finding)
        raise self.violation

    def kill(self, process: Process) -> None:
        """SIGKILL: descriptors are gone, bytes that were written stay."""
        process.dead = self._deaths = True
        for handle in [handle for handle, file in self.disk.handles.items() if file.owner is process]:
            self.disk.close(handle)
        if self.trace is not None:
            self.trace(f"      {process.name} is dead")

    def cut_power(self, policy: Cut) -> None:
        """Every process dies, and what was not synced may be lost."""
        for actor in self._actors:
            actor.process.dead = True
        if self._current is not None:
            self._current.process.dead = True
        self._deaths = True
        self.power_cuts += 1
        self.late.clear()
        self.disk.cut(policy, self.random)
        if self.trace is not None:
            self.trace(f"      power failed, {policy.value}")
        self.on_cut()

    def _turn_after(self) -> int:
        if not self._pace:
            return 1 << 62
        return self.operations + 1 + self.random.randrange(2 * self._pace)
