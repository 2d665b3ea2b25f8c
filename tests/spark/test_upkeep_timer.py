"""The thread that closes parts when no data comes. Needs no Spark that runs."""

from __future__ import annotations

import threading

from filesink.errors import StorageError
from filesink.spark.query import UpkeepTimer


def test_upkeep_that_has_failed_is_tried_again(caplog):
    """A store that is busy once does not leave parts open for as long as the query runs."""
    failed, again = [], threading.Event()

    def upkeep():
        if not failed:
            failed.append(True)
            raise StorageError("the store is busy", code="BUSY")
        again.set()

    timer = UpkeepTimer("q", upkeep=upkeep, is_active=lambda: True, interval=0.001)
    try:
        assert again.wait(30)
        assert timer.alive
    finally:
        timer.stop()
    assert not timer.alive
    assert caplog.text.count("the store is busy") == 1
