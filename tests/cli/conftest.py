"""What all tests of the command line share."""

from __future__ import annotations

import pytest

from filesink.system import SystemClock


@pytest.fixture(autouse=True)
def nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is damaged is looked at again for three seconds, in case a writer is at work: here none is."""
    monkeypatch.setattr(SystemClock, "sleep", lambda _self, _seconds: None)
