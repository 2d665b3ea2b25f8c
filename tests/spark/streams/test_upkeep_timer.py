"""The thread that closes parts when no data comes. Needs no Spark that runs."""

from __future__ import annotations

import threading

import pytest

from filesink.errors import StorageError
from filesink.spark.query import UpkeepTimer


@pytest.mark.parametrize(
    "error",
    [StorageError("the store is busy", code="BUSY"), ValueError("a policy of mine")],
    ids=["ours", "not"],
)
def test_upkeep_that_has_failed_is_tried_again(caplog, error):
    """A store that is busy once, or a policy that raises, does not leave parts open while the query runs."""
    failed, again = [], threading.Event()

    def upkeep():
        if not failed:
            failed.append(True)
            raise error
        again.set()

    timer = UpkeepTimer(upkeep=upkeep, is_active=lambda: True, interval=0.001)
    try:
        assert again.wait(30)
        assert timer.alive
    finally:
        timer.stop()
    assert not timer.alive
    assert sum(str(error) in record.getMessage() for record in caplog.records) == 1
