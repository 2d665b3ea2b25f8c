"""The simulator, steered by Hypothesis: it chooses what happens, and shrinks what it finds.

A night runs longer histories, and more of them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from property_tests.simulate import draw_trouble
from property_tests.simulation.history import History
from property_tests.simulation.scenario import Scenario
from property_tests.simulation.spark.fake_spark import Driver
from property_tests.simulation.spark.machine import Trouble
from property_tests.simulation.workload import draw_server, draw_shape
from property_tests.simulation.world.disk import Cut
from property_tests.simulation.world.faults import Mode
from property_tests.simulation.world.plans import NextFault
from property_tests.simulation.world.world import Violation


class HistoryMachine(RuleBasedStateMachine):
    """One history; each rule lets something happen, and the end asks whether all promises held."""

    def __init__(self) -> None:
        super().__init__()
        self.history: History | None = None
        self.driver: Driver | None = None
        self.plan = NextFault()

    @initialize(seed=st.integers(0, 2**16))
    def begin(self, seed: int) -> None:
        """Draw a workload, and how much trouble Spark makes by itself."""
        random = Random(seed)
        trouble = draw_trouble(random) if seed % 2 else Trouble()
        shape = replace(draw_shape(random), server=draw_server(seed))
        scenario = Scenario(shape=shape, trouble=trouble, plan=self.plan, pace=seed % 3 * 5)
        self.history = History(seed, scenario)
        if self.history.machine.bucket is not None:
            self.history.machine.bucket.life_days = 0  # ``time_passes`` may let a week go by

    @rule(calls=st.integers(1, 200))
    def run(self, calls: int) -> None:
        """Let the query run, and start it if it does not."""
        history = self._history()
        if self.driver is None or self.driver.process.dead:
            self.driver = history.start()
        elif self.driver.error is not None:
            self.driver.start()
        driver, end = self.driver, history.world.operations + calls
        self._until(lambda: driver.ended or history.world.operations >= end)

    @rule(rows=st.integers(0, 6))
    def add_batch(self, rows: int) -> None:
        """New data in the source; the running query ends before it, the next start takes it."""
        history = self._history()
        if len(history.source.batches) < 12:
            history.source.add_batch(f"{len(history.source.batches):02d}", rows, history.random)

    @rule(calls=st.integers(1, 120), mode=st.sampled_from([mode for mode in Mode if mode is not Mode.FULL]))
    def fault(self, calls: int, mode: Mode) -> None:
        """Something will go wrong soon."""
        self.plan.set(self._history().world.operations + calls, mode)

    @precondition(lambda self: self.driver is not None)
    @rule()
    def kill(self) -> None:
        """SIGKILL for the driver; some of its workers go on."""
        history = self._history()
        if self.driver is not None:
            history.end_process(self.driver)
            self._until(lambda: True)

    @precondition(lambda self: self.driver is not None)
    @rule()
    def orphan(self) -> None:
        """The JVM dies and the driver's Python goes on; the next run starts another driver."""
        if self.driver is not None:
            self.driver.jvm_alive = False
            self.driver = None

    @precondition(lambda self: self.history is not None and len(self.history.clones) < 3)
    @rule()
    def clone(self) -> None:
        """A second driver on a copy of the checkpoint."""
        self._history().clone()

    @precondition(lambda self: self.history is not None and len(self.history.overwrites.processes) < 4)
    @rule()
    def overwrite(self) -> None:
        """A batch job that replaces files begins beside whatever runs."""
        self._history().overwrites.start_one()

    @rule(policy=st.sampled_from(Cut))
    def power(self, policy: Cut) -> None:
        """Power fails."""
        history = self._history()
        history.world.cut_power(policy)
        self._until(lambda: True)

    @rule(what=st.sampled_from(["sweep", "recover"]))
    def operator(self, what: str) -> None:
        """Somebody sweeps, or recovers what no query works on."""
        history = self._history()
        if what == "recover" and self.driver is not None:
            history.end_process(self.driver)
        with suppress(Violation):
            history.operate(what)

    @rule(hours=st.integers(-1, 48))
    def time_passes(self, hours: int) -> None:
        """The clock goes on, or is set back."""
        self._history().world.now_ms += hours * 3_600_000

    def teardown(self) -> None:
        """Peace: everything must come to a good end."""
        if self.history is not None:
            self.history.conclude()
            violation = self.history.world.violation
            assert violation is None, str(violation)

    def _history(self) -> History:
        assert self.history is not None
        return self.history

    def _until(self, condition: Callable[[], bool]) -> None:
        """Let the history go on; what it violates is asked for in the end."""
        with suppress(Violation):
            self._history().until(condition)


UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


@pytest.mark.slow
def test_no_choice_of_steps_breaks_a_promise() -> None:
    """Forty histories of up to fifty steps; what breaks one comes as the shortest that does."""
    chosen = settings(UNHURRIED, max_examples=40, stateful_step_count=50)
    run_state_machine_as_test(HistoryMachine, settings=chosen)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_no_choice_of_many_steps_breaks_a_promise() -> None:
    """Two thousand histories of up to two hundred steps."""
    chosen = settings(UNHURRIED, max_examples=2_000, stateful_step_count=200)
    run_state_machine_as_test(HistoryMachine, settings=chosen)
