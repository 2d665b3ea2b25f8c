"""What answers of HTTP mean."""

from __future__ import annotations

from http import HTTPStatus

import pytest

from filesink.sinks.asynchronous import Again, Delivered, Refused, Unusable
from filesink.sinks.http.service import HttpAnswer
from filesink.sinks.http.statuses import judged

AGAIN = {408, 425, 429, 500, 502, 503, 504, 506, 507, 508, 510}
REFUSED = {400, 413, 422}


def answer(status: int, **headers: str) -> HttpAnswer:
    """An answer without a body."""
    return HttpAnswer(status, {name.replace("_", "-"): value for name, value in headers.items()}, b"")


@pytest.mark.parametrize(
    "status", [one.value for one in HTTPStatus if one.value >= 200] + [299, 420, 599, 999]
)
def test_each_status_means_one_thing(status: int) -> None:
    """What is no success is never taken for one; what says nothing of the entries leaves none of them out."""
    kind = (
        Delivered
        if 200 <= status < 300
        else Again
        if status in AGAIN | {599}
        else Refused
        if status in REFUSED
        else Unusable
    )
    assert type(judged(answer(status))) is kind


def test_the_reason_is_the_status() -> None:
    """In words that are not the server's, which may repeat what it was sent."""
    assert judged(answer(503)).why == "HTTP 503 Service Unavailable"
    assert judged(answer(599)).why == "HTTP 599"


@pytest.mark.parametrize(
    ("headers", "pause_ms"),
    [
        ({"retry_after": "7"}, 7_000),
        ({"retry_after": " 0 "}, 0),
        ({"retry_after": "99999999999999"}, 600_000),
        ({"retry_after": "-5"}, 0),
        ({"retry_after": "soon"}, 0),
        ({"retry_after": "٣"}, 0),
        ({}, 0),
        ({"retry_after": "Thu, 01 Jan 2026 00:00:09 GMT", "date": "Thu, 01 Jan 2026 00:00:01 GMT"}, 8_000),
        ({"retry_after": "Thu, 01 Jan 2026 00:00:01 GMT", "date": "Thu, 01 Jan 2026 00:00:09 GMT"}, 0),
        ({"retry_after": "Thu, 01 Jan 2026 00:00:09 GMT"}, 0),
        ({"retry_after": "Thu, 01 Jan 2026 00:00:09", "date": "Thu, 01 Jan 2026 00:00:01 GMT"}, 0),
    ],
)
def test_the_pause_that_a_service_asks_for(headers: dict[str, str], pause_ms: int) -> None:
    """In seconds, or until a time by the server's own clock; not for longer than ten minutes."""
    found = judged(answer(429, **headers))
    assert isinstance(found, Again)
    assert found.after_ms == pause_ms
