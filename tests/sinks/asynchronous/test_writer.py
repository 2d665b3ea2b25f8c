"""The writer of a sink that sends, with a service that answers from other threads."""

from __future__ import annotations

import random
import threading

import pytest

from filesink.api import WriterContext
from filesink.errors import DeliveryError, TaskCancelledError
from filesink.sinks.asynchronous import Again, Delivered, Refused, Sending, Unusable
from tests.fakes import CountingIds, SettableClock, records
from tests.sinks.asynchronous.service import Service, ServiceWriter

VALUES = [f"{number:03}" for number in range(200)]


class Ticking(SettableClock):
    """Goes on by a second with each look, so that no pause of a retry is waited for."""

    def now_ms(self) -> int:
        self.now += 1_000
        return self.now


def context_of(**options) -> WriterContext:
    """The fourth task of slot 7."""
    return WriterContext(
        **{
            "sink_id": "uid-s",
            "epoch": 7,
            "subtask_index": 3,
            "number_of_parallel_subtasks": None,
            "attempt": 0,
            "time_zone": "UTC",
            "clock": Ticking(),
            "ids": CountingIds(),
            **options,
        }
    )


def sending(**options) -> Sending:
    """Seven entries a request, four requests at once, and all the time that there is for an answer."""
    return Sending(**{"records": 7, "in_flight": 4, "timeout": "100 days", **options})


def run(service: Service, context: WriterContext | None = None, **options) -> ServiceWriter:
    """One epoch of ``VALUES``, ten to a batch; the writer, which is closed."""
    context = context or context_of()
    writer = ServiceWriter(service, context, sending=sending(**options))
    try:
        for start in range(0, len(VALUES), 10):
            writer.write(records(*VALUES[start : start + 10]), context)
        assert writer.prepare_commit(7) == []
    finally:
        writer.close()
    return writer


def test_everything_is_delivered_once_and_in_bounds() -> None:
    """By a service that keeps up: in as few requests as there must be, and few at a time."""
    service, context = Service(), context_of()
    writer = run(service, context)
    assert service.payloads() == VALUES
    assert len(service.requests) == 29
    assert service.most <= 4
    assert writer.snapshot_state(7) == []
    assert context.metrics.values == {"delivered": 200, "refused": 0, "requests": 29, "retries": 0}


def test_the_keys_are_those_of_the_records() -> None:
    """Sink, slot, task and the number in the task: who has one entry of a key needs no other."""
    service = Service()
    run(service)
    assert sorted(service.taken) == [
        (key, payload)
        for key, payload in sorted(
            (f"uid-s/7/3/{number}", value.encode()) for number, value in enumerate(VALUES)
        )
    ]


@pytest.mark.parametrize("seed", range(5))
def test_a_service_that_fails_half_of_the_time(seed: int) -> None:
    """Nothing is lost, and nothing is sent twice that the service has said to have."""
    chance = random.Random(seed)  # noqa: S311 - to be repeated
    service = Service(lambda _: Delivered() if chance.random() < 0.5 else Again(why="HTTP 503"))
    run(service, retries=100)
    assert service.payloads() == VALUES


def test_two_attempts_of_a_task_send_the_same_requests() -> None:
    """The second one, which knows nothing of the first, sends every request under its old key."""
    first, second = Service(), Service()
    run(first)
    run(second, context_of(attempt=1))
    assert sorted(first.requests) == sorted(second.requests)
    assert sorted(first.taken) == sorted(second.taken)


def test_a_refusal_fails_the_task_as_it_is() -> None:
    """Not as a letter that failed: programs go by the class."""
    service = Service(lambda request: Refused(why="HTTP 422") if b"150" in _all(request) else Delivered())
    with pytest.raises(DeliveryError, match="'uid-s/7/3/150': HTTP 422"):
        run(service)


def _all(request) -> list[bytes]:
    return [entry.payload for entry in request.entries]


def test_a_wrong_password_fails_it_at_once() -> None:
    """Though it would be tried a thousand times otherwise."""
    service = Service(lambda _: Unusable(why="HTTP 401"))
    with pytest.raises(DeliveryError, match="HTTP 401"):
        run(service, retries=1_000)
    assert len(service.requests) <= 4


def test_a_service_that_never_answers_is_given_up() -> None:
    """By the timeout of each try, and the number of them; nobody waits for ever."""
    service = Service(lambda _: None)
    with pytest.raises(DeliveryError, match=r"sent 3 times and is not delivered: no answer within 1 s"):
        run(service, retries=2, timeout="1 s")


def test_a_client_that_cannot_send_fails_the_task() -> None:
    """Whatever it raises is raised."""

    class Broken(ServiceWriter):
        def submit(self, request, answer):
            del request, answer
            raise ConnectionError("no route")

    context = context_of()
    writer = Broken(Service(), context, sending=Sending(records=1))
    with pytest.raises(ConnectionError, match="no route"):
        writer.write(records("a"), context)
    writer.close()


def test_a_request_that_is_not_full_waits_for_its_delay() -> None:
    """A later batch, or a timer, sends it; without a delay only the end of the epoch."""
    sent = {}
    for delay in ("1 s", None):
        service, clock = Service(), SettableClock()
        context = context_of(clock=clock)
        writer = ServiceWriter(service, context, sending=Sending(records=100, delay=delay))
        writer.write(records("a"), context)
        clock.now = 1_000
        while context.mailbox.yield_(timeout=0.3):
            pass
        sent[delay] = list(service.requests)
        writer.prepare_commit(7)
        writer.close()
        assert service.payloads() == ["a"]
    assert sent == {"1 s": ["uid-s/7/3/0"], None: []}


def test_what_is_kept_is_sent_by_the_next_epoch() -> None:
    """Under its old keys, before anything else; what was in flight has been waited for."""
    service = Service(lambda request: Again(why="HTTP 503") if request.tries == 0 else Delivered())
    context = context_of(clock=SettableClock())
    writer = ServiceWriter(service, context, sending=Sending(records=2, in_flight=2, at_commit="keep"))
    writer.write(records("a", "b", "c"), context)
    assert writer.prepare_commit(7) == []
    kept = writer.snapshot_state(7)
    writer.close()
    assert [(entry.key, entry.payload) for entry in kept] == [
        ("uid-s/7/3/0", b"a"),
        ("uid-s/7/3/1", b"b"),
        ("uid-s/7/3/2", b"c"),
    ]
    assert service.taken == []
    well, later = Service(), context_of(epoch=8)
    after = ServiceWriter(well, later, sending=Sending(records=2), unsent=kept)
    after.write(records("d"), later)
    after.prepare_commit(8)
    after.close()
    assert max(well.taken) == ("uid-s/8/3/0", b"d")
    assert well.payloads() == ["a", "b", "c", "d"]
    assert set(well.requests) == {"uid-s/7/3/0-1", "uid-s/7/3/2", "uid-s/8/3/0"}


def test_a_cancelled_task_ends_while_it_waits_for_room() -> None:
    """And no thread is left when its writer is closed, though a thousand requests had no answer."""
    before = threading.active_count()
    over = threading.Event()

    def pulse() -> None:
        raise TaskCancelledError("over", code="CANCELLED")

    service = Service(lambda _: over.wait() and None)
    context = context_of(clock=SettableClock(), pulse=pulse)
    writer = ServiceWriter(service, context, sending=Sending(records=1, in_flight=1_000))
    with pytest.raises(TaskCancelledError):
        writer.write(records(*map(str, range(1_001))), context)
    over.set()
    writer.close()
    assert threading.active_count() == before
