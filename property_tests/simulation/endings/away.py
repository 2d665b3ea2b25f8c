"""The base path is another, empty place for a while: unmounted under a running query, and mounted again.

Nothing that the query does meanwhile may count, and nobody may believe that it did: whatever Spark has
noted as done is there when the place is back.
"""

from __future__ import annotations

from filesink.errors import FilesinkError
from property_tests.simulation.endings.lost_files import rows_shown
from property_tests.simulation.spark.jobs import SparkError
from property_tests.simulation.stage import Stage
from property_tests.simulation.world.faults import Fault
from property_tests.simulation.world.nodes import Directory
from property_tests.simulation.world.world import Plan

_BATCHES = 4
_CALLS = 250  # of so many micro-batches, about


class Unmounted(Plan):
    """At the n-th call from now on the place goes."""

    def __init__(self, stage: Stage) -> None:
        self._left = stage.random.randint(1, _CALLS)
        self._disk = stage.world.disk
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


def goes(stage: Stage) -> None:
    """Run into it, start again when it is back, and count."""
    expected = set(stage.observer.rows)
    stage.observer.look_away()
    stage.machine.spoiled = True
    for number in range(_BATCHES):
        stage.one_more_batch(f"{60 + number}")
        expected |= set(stage.source.batches[-1])
    plan = Unmounted(stage)
    stage.world.plan = plan
    error = stage.run_query()
    stage.world.plan = None
    plan.back()
    if error is not None and not isinstance(error, FilesinkError | SparkError):
        stage.world.fail(f"I8: the base path went away and the driver says {type(error).__name__}: {error}")
    error = stage.run_query()
    if error is not None:
        stage.world.fail(f"I7: the base path is back, and the query fails: {error}")
    shown = rows_shown(stage)
    if missing := expected - shown.keys():
        stage.world.fail(f"I1: the base path went and came back, and {len(missing)} rows are missing")
    doubled = [row for row, times in shown.items() if times > 1]
    if doubled:
        stage.world.fail(f"I2: the base path went and came back, and row {doubled[0]} is there twice")
