"""What tasks hand to the driver through Spark. Needs no Spark that runs."""

from __future__ import annotations

import pytest

from filesink.data_source.task_message import Report, TaskMessage
from filesink.errors import StateCorruptError
from filesink.framing import frame


@pytest.mark.parametrize(
    "report",
    [
        Report(query_id="q", batch_id=0, slot=3, result=b"\n"),
        Report(query_id="", batch_id=-1, slot=None, result=b""),
    ],
)
def test_reports_come_back(report):
    """As they were sent."""
    assert Report.from_message(report.to_message()) == report


@pytest.mark.parametrize(
    "head",
    [
        b"[]",
        b"{}",
        b'{"query_id":1,"batch_id":0,"slot":0}',
        b'{"query_id":"\\ud800","batch_id":0,"slot":0}',
        b'{"query_id":"q","batch_id":"0","slot":0}',
        b'{"query_id":"q","batch_id":-2,"slot":0}',
        b'{"query_id":"q","batch_id":0,"slot":[]}',
        b'{"query_id":"q","batch_id":0,"slot":""}',
        b'{"query_id":"q","batch_id":0,"slot":0,"more":1}',
        b"[" * 100_000,
    ],
)
def test_other_messages_are_damage(head):
    """Anything else is refused with a typed error, whatever it is."""
    with pytest.raises(StateCorruptError):
        Report.from_message(TaskMessage(frame("task-message", 1, head + b"\n")))
