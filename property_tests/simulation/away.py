"""The base path is another, empty place for a while: unmounted under a running query, and mounted again.

Nothing that the query does meanwhile may count, and nobody may believe that it did: whatever Spark has
noted as done is there when the place is back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from filesink.errors import FilesinkError
from property_tests.simulation.faults import Fault
from property_tests.simulation.jobs import SparkError
from property_tests.simulation.lost_files import rows_shown
from property_tests.simulation.nodes import Directory
from property_tests.simulation.world import Plan

if TYPE_CHECKING:
    from property_tests.simulation.history import History

_BATCHES = 4
_CALLS = 250  # of so many micro-batches, about


class Unmounted(Plan):
    """At the n-th call from now on the place goes."""

    def __init__(self, history: History) -> None:
        self._left = history.random.randint(1, _CALLS)
        self._disk = history.world.disk
        self.shown: Directory | None = None

    def fault(self, operation: str, path: str, number: int) -> Fault | None:
        """See ``Plan.fault``; nothing fails by itself."""
        del operation, path, number
        self._left -= 1
        if self._left == 0:
            self.shown = self._disk.mount(Directory(1))
        return None

    def back(self) -> None:
        """Mount it again."""
        if self.shown is not None:
            self._disk.mount(self.shown)


def goes(history: History) -> None:
    """Run into it, start again when it is back, and count."""
    expected = set(history.observer.rows)
    history.observer.look_away()
    history.machine.spoiled = True
    for number in range(_BATCHES):
        history.one_more_batch(f"{60 + number}")
        expected |= set(history.source.batches[-1])
    plan = Unmounted(history)
    history.world.plan = plan
    error = _run(history)
    history.world.plan = None
    plan.back()
    if error is not None and not isinstance(error, FilesinkError | SparkError):
        history.world.fail(f"I8: the base path went away and the driver says {type(error).__name__}: {error}")
    error = _run(history)
    if error is not None:
        history.world.fail(f"I7: the base path is back, and the query fails: {error}")
    shown = rows_shown(history)
    if missing := expected - shown.keys():
        history.world.fail(f"I1: the base path went and came back, and {len(missing)} rows are missing")
    doubled = [row for row, times in shown.items() if times > 1]
    if doubled:
        history.world.fail(f"I2: the base path went and came back, and row {doubled[0]} is there twice")


def _run(history: History) -> Exception | None:
    driver = history.start()
    history.until(lambda: driver.ended)
    history.end_process(driver, workers=True)
    return driver.error
