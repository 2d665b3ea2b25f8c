"""A million letters of eight threads, called in the thread of a writer: the mailbox against a bare queue.

Both halves check that each thread's letters were called in its order.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from threading import Thread

from filesink.api import Mailbox
from filesink.system import SystemClock
from paired import Contender, compare, seconds

THREADS, EACH = 8, 125_000

Letter = Callable[[], object]


def compare_letters(rounds: int) -> None:
    """Measure both."""
    compare(
        f"{THREADS * EACH:,} letters of {THREADS} threads",
        baseline=Contender(name="queue.SimpleQueue", measure=_through_a_queue),
        ours=Contender(name="Mailbox", measure=_through_a_mailbox),
        unit="seconds",
        rounds=rounds,
    )


def _through_a_queue() -> float:
    queue: SimpleQueue[Letter] = SimpleQueue()

    def call_one() -> object:
        return queue.get()()

    return seconds(lambda: _exchange(queue.put, call_one))


def _through_a_mailbox() -> float:
    mailbox = Mailbox(SystemClock())
    return seconds(lambda: _exchange(lambda letter: mailbox.execute(letter, "a letter"), mailbox.yield_))


def _exchange(post: Callable[[Letter], None], call_one: Callable[[], object]) -> None:
    called: list[list[int]] = [[] for _ in range(THREADS)]

    def send(thread: int) -> None:
        for number in range(EACH):
            post(partial(called[thread].append, number))

    threads = [Thread(target=send, args=(one,)) for one in range(THREADS)]
    for thread in threads:
        thread.start()
    for _ in range(THREADS * EACH):
        call_one()
    for thread in threads:
        thread.join()
    if called != [list(range(EACH))] * THREADS:
        raise SystemExit("letters came out of order, or did not come: nothing was measured")
