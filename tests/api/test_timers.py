"""Timers of a writer, by a clock that a test sets: none of these tests waits for its time."""

from __future__ import annotations

import pytest

from filesink.api import Mailbox
from tests.fakes import SettableClock


class Ticking(SettableClock):
    """Goes on by a second with each look."""

    def now_ms(self) -> int:
        self.now += 1_000
        return self.now


def test_a_timer_is_called_once_when_its_time_has_come() -> None:
    """Not before; with the time that it was registered for, however late it is."""
    clock, called = SettableClock(), []
    sut = Mailbox(clock)
    sut.timers.register(1_000, called.append)
    clock.now = 999
    assert not sut.try_yield()
    clock.now = 5_000
    assert sut.try_yield()
    assert not sut.try_yield()
    assert called == [1_000]


def test_timers_are_called_in_the_order_of_their_times() -> None:
    """Those of one moment in that in which they were registered."""
    clock, called = SettableClock(now=3_000), []
    sut = Mailbox(clock)
    for at_ms, name in ((2_000, "c"), (1_000, "a"), (2_000, "d"), (1_500, "b")):
        sut.timers.register(at_ms, lambda _, name=name: called.append(name))
    assert sut.try_yield()
    assert called == ["a", "b", "c", "d"]


def test_a_timer_may_register_itself_again() -> None:
    """Even for a time that has passed: it is called at the next yield, and this one comes to its end."""
    clock, called = SettableClock(now=100), []
    sut = Mailbox(clock)

    def again(at_ms: int) -> None:
        called.append(at_ms)
        sut.timers.register(at_ms + 10, again)

    sut.timers.register(0, again)
    assert sut.try_yield()
    assert called == [0]
    assert sut.try_yield()
    assert called == [0, 10]


def test_a_wait_ends_with_a_timer() -> None:
    """Though no letter comes, and though it is later than patience would allow."""
    clock, called = Ticking(), []
    sut = Mailbox(clock, patience=0.1)
    sut.timers.register(6_000, called.append)
    assert sut.yield_()
    assert called == [6_000]


def test_a_timeout_is_not_stretched_by_a_timer() -> None:
    """Who gave one gets control back."""
    sut = Mailbox(SettableClock())
    sut.timers.register(10**12, lambda _: None)
    assert sut.yield_(timeout=0.05) is False


def test_an_error_of_a_timer_is_raised_where_it_is_called() -> None:
    """As it is; those that are not due stay."""
    clock, called = SettableClock(now=5), []
    sut = Mailbox(clock)
    sut.timers.register(5, lambda at_ms: 1 // (at_ms - 5))
    sut.timers.register(6, called.append)
    with pytest.raises(ZeroDivisionError):
        sut.yield_()
    clock.now = 6
    assert sut.try_yield()
    assert called == [6]
