"""The mailbox: letters of many threads, called in one; and waits that end, whatever does not come."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from functools import partial

import pytest

from filesink.api import Mailbox
from filesink.errors import LetterError, TaskCancelledError
from filesink.system import SystemClock
from tests.fakes import SettableClock

THREADS = 8
BOUND = 60.0  # seconds; of a wait that is over at once if all is well


def mailbox(**options) -> Mailbox:
    """A mailbox whose clock stands still."""
    return Mailbox(SettableClock(), **options)


def soon(action: Callable[[], object]) -> threading.Thread:
    """Another thread, which begins now."""
    thread = threading.Thread(target=action)
    thread.start()
    return thread


def test_letters_are_called_one_at_a_time_in_their_order() -> None:
    """A writer that waits for room goes on as soon as there is some."""
    sut, called = mailbox(), []
    for number in range(3):
        sut.execute(lambda number=number: called.append(number), "a letter")
    assert sut.yield_()
    assert called == [0]
    assert sut.try_yield()
    assert sut.yield_(timeout=BOUND)
    assert called == [0, 1, 2]
    assert not sut.try_yield()


def test_a_letter_is_called_in_the_thread_that_yields() -> None:
    """Though another one has sent it, while this one waited."""
    sut, threads = mailbox(), []
    sender = soon(lambda: sut.execute(lambda: threads.append(threading.get_ident()), "who am I"))
    assert sut.yield_()
    sender.join()
    assert threads == [threading.get_ident()]


@pytest.mark.parametrize(
    "each", [2_000, pytest.param(125_000, marks=pytest.mark.nightly)], ids=["change", "nightly"]
)
def test_letters_of_one_thread_keep_their_order(each: int) -> None:
    """Eight threads write at once; none of their letters is lost, doubled or overtaken by a later one."""
    sut = Mailbox(SystemClock())
    start = threading.Barrier(THREADS)
    seen: defaultdict[int, list[int]] = defaultdict(list)

    def write(thread: int) -> None:
        start.wait()
        for number in range(each):
            sut.execute(partial(seen[thread].append, number), "a letter")

    threads = [soon(lambda thread=thread: write(thread)) for thread in range(THREADS)]
    for _ in range(THREADS * each):
        assert sut.yield_(timeout=BOUND)
    for thread in threads:
        thread.join()
    assert not sut.try_yield()
    assert sorted(seen) == list(range(THREADS))
    assert all(numbers == list(range(each)) for numbers in seen.values())


def test_a_letter_that_fails_is_told_by_its_description() -> None:
    """At the next yield, once; the letters behind it are there still."""
    sut, called = mailbox(), []
    sut.execute(lambda: 1 // 0, "the answer to request 7")
    sut.execute(lambda: called.append("next"), "the answer to request 8")
    with pytest.raises(LetterError) as raised:
        sut.yield_()
    assert raised.value.code == "LETTER"
    assert "'the answer to request 7'" in str(raised.value)
    assert "ZeroDivisionError" in str(raised.value)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    assert sut.try_yield()
    assert called == ["next"]


def test_a_letter_may_yield_itself() -> None:
    """It gets the letters behind it; the one that waits on the outside gets what is left."""
    sut, called = mailbox(), []
    sut.execute(lambda: called.append(("first", sut.try_yield())), "outer")
    sut.execute(lambda: called.append("second"), "inner")
    assert sut.yield_()
    assert called == ["second", ("first", True)]
    assert not sut.try_yield()


@pytest.mark.parametrize("timeout", [0, -1, 0.01, 0.3])
def test_a_timeout_ends_a_wait(timeout: float) -> None:
    """No error: whoever gave it has something else to do."""
    assert mailbox().yield_(timeout) is False


def test_a_wait_for_nothing_is_an_error() -> None:
    """Without a timeout, and with nothing in flight, nobody would ever end it."""
    with pytest.raises(
        LetterError, match=r"\[NO_LETTER\] a writer has waited 0.3 s .* nothing seems"
    ) as raised:
        mailbox(patience=0.3).yield_()
    assert raised.value.code == "NO_LETTER"


def test_a_writer_that_waits_is_told_that_its_task_was_cancelled() -> None:
    """The pulse is asked while nothing comes, and what it raises ends the wait."""
    beats = []

    def pulse() -> None:
        beats.append(1)
        if len(beats) == 2:
            raise TaskCancelledError("over", code="CANCELLED")

    with pytest.raises(TaskCancelledError):
        mailbox(pulse=pulse).yield_()
    assert len(beats) == 2


def test_so_is_one_whose_letters_come_all_the_time() -> None:
    """It waits as well, one letter after the other, and the pulse follows the clock."""
    clock, beats = SettableClock(now=1_000), []
    sut = Mailbox(clock, pulse=lambda: beats.append(clock.now))
    for moment in (1_000, 1_100, 1_199, 1_200, 1_300, 5_000):
        clock.now = moment
        sut.execute(int, "a letter")
        assert sut.yield_()
    assert beats == [1_000, 1_200, 5_000]


@pytest.mark.parametrize("timeout", [0, 0.001])
def test_so_is_one_that_asks_again_and_again(timeout: float) -> None:
    """It looks at something else as well, and so never waits for long."""
    clock, beats = SettableClock(now=1_000), []
    sut = Mailbox(clock, pulse=lambda: beats.append(clock.now))
    for moment in (1_000, 1_300, 5_000):
        clock.now = moment
        assert sut.yield_(timeout) is False
    assert beats == [1_000, 1_300, 5_000]


def test_a_writer_that_waits_asks_five_times_a_second() -> None:
    """So it ends in time, however long it meant to wait: a wait of one second has five pieces."""
    beats: list[int] = []
    assert mailbox(pulse=lambda: beats.append(1)).yield_(timeout=1.0) is False
    assert len(beats) >= 5


@pytest.mark.parametrize("timeout", [None, 3_600.0])
@pytest.mark.parametrize("timer_ms", [None, 3_600_000])
def test_a_cancel_ends_a_wait_of_an_hour(timeout: float | None, timer_ms: int | None) -> None:
    """For a letter, a timer or a timeout: none of them comes, and none has to."""
    waits, cancelled, ended = threading.Event(), threading.Event(), threading.Event()

    def pulse() -> None:
        waits.set()
        if cancelled.is_set():
            raise TaskCancelledError("over", code="CANCELLED")

    sut = mailbox(pulse=pulse)
    if timer_ms is not None:
        sut.timers.register(timer_ms, lambda _: None)

    def wait() -> None:
        with pytest.raises(TaskCancelledError):
            sut.yield_(timeout)
        ended.set()

    thread = threading.Thread(target=wait, daemon=True)  # if it hangs, the tests are not to hang with it
    thread.start()
    assert waits.wait(BOUND)
    assert not ended.is_set()
    cancelled.set()
    assert ended.wait(BOUND)


def test_a_cancelled_task_is_no_failure_of_a_letter() -> None:
    """A letter that yields itself lets the news pass."""

    def cancelled() -> None:
        raise TaskCancelledError("over", code="CANCELLED")

    sut = mailbox()
    sut.execute(cancelled, "a letter")
    with pytest.raises(TaskCancelledError):
        sut.yield_()
