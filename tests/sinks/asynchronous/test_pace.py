"""How many requests a service gets at once."""

from __future__ import annotations

from filesink.sinks.asynchronous.pace import Pace

MOST = 16


def test_it_begins_with_all_and_never_exceeds_them() -> None:
    """However much is delivered."""
    pace = Pace(MOST)
    for _ in range(100):
        pace.delivered()
    assert pace.allowed == MOST


def test_overload_halves_it_down_to_one() -> None:
    """One request is always allowed, since it alone can find out that the service is well again."""
    pace, seen = Pace(MOST), []
    for moment in range(6):
        pace.failed(moment * 10 + 5, moment * 10 + 9, after_ms=0)
        seen.append(pace.allowed)
    assert seen == [8, 4, 2, 1, 1, 1]


def test_requests_that_were_sent_together_are_one_sign_of_overload() -> None:
    """Sixteen failures of one moment would else leave one sixty-five-thousandth."""
    pace = Pace(MOST)
    for _ in range(MOST):
        pace.failed(100, 200, after_ms=0)
    assert pace.allowed == 8
    pace.failed(200, 300, after_ms=0)
    assert pace.allowed == 8, "sent before the cut was known"
    pace.failed(201, 300, after_ms=0)
    assert pace.allowed == 4


def test_it_grows_by_one_for_as_many_as_are_allowed() -> None:
    """Slowly, and so back to where the service keeps up."""
    pace, rounds = Pace(4), 0
    for moment in (1, 3, 5):
        pace.failed(moment, moment + 1, after_ms=0)
    while pace.allowed < 4:
        rounds += 1
        for _ in range(pace.allowed):
            pace.delivered()
    assert 3 <= rounds <= 6


def test_the_service_may_ask_for_a_pause() -> None:
    """The longest that it has asked for counts, from when it did."""
    pace = Pace(MOST)
    pace.failed(0, 1_000, after_ms=5_000)
    pace.failed(0, 2_000, after_ms=1_000)
    assert pace.held_until_ms == 6_000
    pace.failed(0, 3_000, after_ms=0)
    assert pace.held_until_ms == 6_000
