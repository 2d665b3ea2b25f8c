"""What a base path looks like when everybody who has worked there was killed, and nobody has come since."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from property_tests.simulate import scenario_of
from property_tests.simulation import history as histories
from property_tests.simulation.history import History
from property_tests.simulation.world.nodes import Directory


def end_state(seed: int, base: Path) -> bool:
    """Make ``base`` as the history of ``seed`` leaves its disk when power goes; false if it has no disk.

    Spark and drivers were started up to three times before. Files keep their times, by which they are known.
    """
    scenario = scenario_of(seed)
    if scenario.shape.server is not None:
        return False
    history = History(seed, scenario)
    with _starts(seed % 3):
        try:
            with histories._writers_forgotten():
                history._trouble()
        finally:
            history._end()
    _copy(history.world.disk.root, base)
    return True


@contextmanager
def _starts(again: int) -> Iterator[None]:
    before = histories._MAX_RESTARTS
    histories._MAX_RESTARTS = 1 + again
    try:
        yield
    finally:
        histories._MAX_RESTARTS = before


def _copy(found: Directory, path: Path) -> None:
    path.mkdir()
    for name, node in found.entries.items():
        if isinstance(node, Directory):
            _copy(node, path / name)
        else:
            (path / name).write_bytes(node.data)
            os.utime(path / name, ns=(node.mtime_ns, node.mtime_ns))
