"""What is sent when: whatever a service answers, everything arrives, and nobody waits for nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filesink.errors import DeliveryError
from filesink.sinks.asynchronous.answers import Again, Answer, Delivered, Refused, Unusable
from filesink.sinks.asynchronous.entries import Entry, EntryCodec, Request
from filesink.sinks.asynchronous.outbox import Outbox
from filesink.sinks.asynchronous.sending import Sending

TIMEOUT = 10_000
IN_FLIGHT = 3


def sending(**options) -> Sending:
    """Two records a request, unless said otherwise."""
    return Sending(**{"records": 2, "in_flight": IN_FLIGHT, "timeout": TIMEOUT, "retries": 1000, **options})


def filled(count: int, **options) -> Outbox:
    """An outbox with as many entries, which came at 0, and no more to come."""
    outbox = Outbox(sending(**options))
    for number in range(count):
        outbox.add(Entry("o", number, b"x"), 0)
    outbox.end()
    return outbox


def sent(outbox: Outbox, now_ms: int = 0) -> list[Request]:
    """All that may be sent now."""
    found = []
    while (request := outbox.next(now_ms)) is not None:
        found.append(request)
    return found


def numbers(requests: list[Request]) -> list[list[int]]:
    """Numbers of the entries of each request."""
    return [[entry.number for entry in request.entries] for request in requests]


def deliver(outbox: Outbox, delivered: list[int], *, bad: set[int]) -> None:
    """Send until nothing is left, to a service that refuses requests with any of the numbers ``bad``."""
    while not outbox.is_empty:
        for request in sent(outbox):
            found = [entry.number for entry in request.entries]
            if bad.isdisjoint(found):
                delivered += found
                outbox.answered(request, Delivered(), 0)
            else:
                outbox.answered(request, Refused(why="HTTP 422"), 0)


def test_as_many_requests_are_in_flight_as_may_be() -> None:
    """The next one goes when an answer has come."""
    outbox = filled(10)
    first = sent(outbox)
    assert numbers(first) == [[0, 1], [2, 3], [4, 5]]
    outbox.answered(first[1], Delivered(), 5)
    assert numbers(sent(outbox, 5)) == [[6, 7]]


def test_a_request_waits_to_be_full_until_its_delay_is_over() -> None:
    """Or until no more entries come; without a delay, until then alone."""
    for delay, wakes in (("1 s", 1_000), (None, None)):
        outbox = Outbox(sending(delay=delay))
        outbox.add(Entry("o", 0, b"x"), 0)
        assert outbox.wakes_ms() == wakes
        assert sent(outbox, 999) == []
        assert numbers(sent(outbox, 1_000)) == ([] if delay is None else [[0]])
        outbox.end()
        assert numbers(sent(outbox, 1_000)) == ([[0]] if delay is None else [])


def test_what_goes_again_comes_before_what_is_new() -> None:
    """After a pause, and under its key; it keeps its place among those in flight while it waits."""
    outbox = filled(8)
    first = sent(outbox)
    outbox.answered(first[0], Again(why="busy"), 10)
    assert sent(outbox, 10) == [], "half of three may be in flight, and two are"
    for request in first[1:]:
        outbox.answered(request, Delivered(), 20)
    assert numbers(sent(outbox, 20)) == [[6, 7]]
    wakes = outbox.wakes_ms()
    assert wakes is not None
    assert 60 <= wakes <= 110
    again = sent(outbox, wakes)
    assert again[0].key == first[0].key
    assert again[0].tries == 1


def test_a_part_of_a_request_goes_again_by_itself() -> None:
    """The rest is delivered; nothing is added to it, so that its key stands for the same entries."""
    outbox = filled(5, records=5)
    (request,) = sent(outbox)
    outbox.answered(request, Again(why="two of five", numbers=[1, 3]), 0)
    assert outbox.counts["delivered"] == 3
    (again,) = sent(outbox, 1_000)
    assert numbers([again]) == [[1, 3]]
    assert again.key.startswith("o/1-3-")
    outbox.answered(again, Delivered(), 1_000)
    assert outbox.is_empty


def test_numbers_are_places_in_the_request() -> None:
    """A service knows no others: in what goes again in part as well, and wherever a request begins."""
    outbox = filled(8, records=4)
    first, request = sent(outbox)
    outbox.answered(first, Delivered(), 0)
    outbox.answered(request, Again(why="two", numbers=[1, 3, 3]), 0)
    (again,) = sent(outbox, 1_000)
    assert numbers([again]) == [[5, 7]]
    outbox.answered(again, Again(why="one", numbers={1}), 1_000)
    assert outbox.counts["delivered"] == 7
    assert numbers(sent(outbox, 60_000)) == [[7]]


def test_no_numbers_are_a_delivery() -> None:
    """As of a service that lists what it has not taken, and lists nothing."""
    outbox = filled(2)
    (request,) = sent(outbox)
    outbox.answered(request, Again(why="none of them", numbers=[]), 0)
    assert outbox.is_empty
    assert outbox.counts["delivered"] == 2


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        *[(Again(why="x", numbers=[one]), f"numbers has {one}, and the places") for one in (-1, 6, 99)],
        (Again(why="x", numbers=[0, 6]), "are 0 to 5"),
        *[
            (Again(why="x", numbers=[one]), "numbers has")  # type: ignore[list-item]
            for one in ("3", 3.0, True, None)
        ],
        *[
            (Again(why="x", numbers=one), "no list of places")  # type: ignore[arg-type]
            for one in ("12", b"12", 3)
        ],
        pytest.param(Again(why="x", numbers=iter([1])), "no list of places", id="an iterator"),  # type: ignore[arg-type]
        *[(Again(why="x", after_ms=one), "after_ms") for one in (-1, "5", None, 0.5)],  # type: ignore[arg-type]
        *[(one, "none of Delivered, Again") for one in ("ok", None, 200, False, Delivered)],
    ],
    ids=repr,
)
def test_an_answer_without_sense_is_no_delivery(answer, told: str) -> None:
    """It is told in a sentence, whatever a user's own code says; all of the request is there still."""
    outbox = filled(6, records=6)
    (request,) = sent(outbox)
    with pytest.raises(DeliveryError, match=told) as raised:
        outbox.answered(request, answer, 0)
    assert (raised.value.code, raised.value.is_permanent) == ("ANSWER", True)
    assert "'o/0-5'" in str(raised.value)
    assert outbox.counts["delivered"] == 0
    assert len(list(outbox.unsent())) == 6


def test_a_pause_that_the_service_asks_for_is_kept_by_all() -> None:
    """New requests as well; and somebody looks when it is over."""
    outbox = filled(8)
    for request in sent(outbox):
        outbox.answered(request, Again(why="429", after_ms=7_000), 100)
    assert outbox.wakes_ms() == 7_100
    assert sent(outbox, 7_099) == []
    assert len(sent(outbox, 7_100)) == 1, "half of three"


def test_a_request_without_an_answer_goes_again_at_its_timeout() -> None:
    """And its answer, if it comes after all, counts for nothing: it may be known already, or tried again."""
    outbox = filled(2)
    (request,) = sent(outbox)
    assert outbox.wakes_ms() == TIMEOUT
    assert sent(outbox, TIMEOUT) == []
    assert not outbox.awaits_answers
    outbox.answered(request, Delivered(), TIMEOUT)
    assert not outbox.is_empty
    (again,) = sent(outbox, TIMEOUT + 1_000)
    outbox.answered(request, Unusable(why="late"), TIMEOUT + 1_000)
    outbox.answered(again, Delivered(), TIMEOUT + 1_000)
    assert outbox.is_empty


def test_the_entry_that_is_refused_is_found_by_halves() -> None:
    """All others are delivered, and the error names its key and no value."""
    delivered: list[int] = []
    with pytest.raises(DeliveryError) as raised:
        deliver(filled(8, records=8), delivered, bad={5})
    assert raised.value.code == "REFUSED"
    assert raised.value.is_permanent
    assert "'o/5': HTTP 422" in str(raised.value)
    assert sorted(delivered) == [0, 1, 2, 3, 4, 6, 7]


def test_a_refused_entry_may_be_left_out(caplog) -> None:
    """With a warning; all others arrive once."""
    outbox = filled(8, records=8, on_refused="drop")
    delivered: list[int] = []
    deliver(outbox, delivered, bad={2, 5})
    assert sorted(delivered) == [0, 1, 3, 4, 6, 7]
    assert outbox.counts["refused"] == 2
    assert "entry 'o/2' is left out" in caplog.text


def test_retries_come_to_an_end() -> None:
    """The error says how often it was tried and why it failed last; the entries are there still."""
    outbox = filled(2, retries=2)
    now = 0
    for _ in range(2):
        (request,) = sent(outbox, now)
        outbox.answered(request, Again(why="HTTP 500"), now)
        now += 60_000
    (request,) = sent(outbox, now)
    with pytest.raises(DeliveryError, match="was sent 3 times and is not delivered: HTTP 500") as raised:
        outbox.answered(request, Again(why="HTTP 500"), now)
    assert (raised.value.code, raised.value.is_permanent) == ("RETRIES", False)
    assert "a batch that is written again sends all of it, under new" in str(raised.value), "no false promise"
    assert [entry.number for entry in outbox.unsent()] == [0, 1]


def test_a_service_that_takes_nothing_ends_it_at_once() -> None:
    """Though entries that are refused are left out: a wrong password must not throw everything away."""
    outbox = filled(2, on_refused="drop")
    (request,) = sent(outbox)
    with pytest.raises(DeliveryError) as raised:
        outbox.answered(request, Unusable(why="HTTP 401"), 0)
    assert (raised.value.code, raised.value.is_permanent) == ("UNUSABLE", True)
    assert len(list(outbox.unsent())) == 2


def test_the_next_epoch_repeats_requests_as_they_were() -> None:
    """Also one that is not full and went before others; else what has arrived would come under other keys."""
    outbox = filled(5)
    first = sent(outbox)
    for request in first:
        outbox.answered(request, Again(why="503"), 0)
    again, now_ms = sent(outbox, 1_000), 1_000
    assert numbers(first) == [[0, 1], [2, 3], [4]]
    for request in again:
        if 4 not in [entry.number for entry in request.entries]:
            outbox.answered(request, Again(why="503"), now_ms)
    codec = EntryCodec()
    kept = codec.decode(codec.version, codec.encode(list(outbox.unsent())))
    restored = sent(Outbox(sending(in_flight=9, records=3), unsent=kept))
    assert {request.key for request in restored} == {request.key for request in first}


def test_what_is_left_of_requests_is_never_joined() -> None:
    """Of two from which the service has taken some."""
    outbox = filled(4)
    for request in sent(outbox):
        outbox.answered(request, Again(why="207", numbers=[0]), 0)
    restored = sent(Outbox(sending(), unsent=list(outbox.unsent())))
    assert sorted(numbers(restored)) == [[0], [2]]


def test_entries_of_earlier_epochs_go_first_and_by_themselves() -> None:
    """Under the keys that they have had."""
    outbox = Outbox(sending(records=10), unsent=[Entry("old", 7, b"x"), Entry("old", 8, b"x")])
    outbox.add(Entry("new", 0, b"x"), 0)
    outbox.end()
    assert [request.key for request in sent(outbox)] == ["old/7-8", "new/0"]


answers = st.one_of(
    st.just(Delivered()),
    st.builds(Again, why=st.just("busy"), after_ms=st.sampled_from([0, 0, 500])),
    st.builds(Again, why=st.just("in part"), numbers=st.sets(st.integers(0, 3))),
    st.just(None),  # none before the timeout
)


class Service:
    """Time, and a service whose answers are drawn."""

    def __init__(self, data, outbox: Outbox) -> None:
        self._data = data
        self._outbox = outbox
        self.now = 0
        self.waiting: list[Request] = []
        self.arrived: set[int] = set()
        self._keys: dict[str, tuple[Entry, ...]] = {}

    def take(self) -> None:
        """All that may be sent now."""
        for request in sent(self._outbox, self.now):
            assert self._keys.setdefault(request.key, request.entries) == request.entries
            self.waiting.append(request)
        assert len(self.waiting) <= IN_FLIGHT

    def go_on(self) -> None:
        """An answer to one of the requests, or none, and then the time comes at which somebody looks."""
        wakes = self._outbox.wakes_ms()
        assert self.waiting or wakes is not None, "it would wait for ever"
        answer: Answer | None = None
        if self.waiting:
            request = self.waiting.pop(self._data.draw(st.integers(0, len(self.waiting) - 1)))
            answer = self._data.draw(answers)
            if isinstance(answer, Again) and answer.numbers:
                there = range(len(request.entries))
                answer = Again(why=answer.why, numbers=[one for one in answer.numbers if one in there])
            self._answer(request, answer)
        if answer is None:
            assert wakes is not None
            self.now = max(self.now, wakes)

    def _answer(self, request: Request, answer: Answer | None) -> None:
        found = [entry.number for entry in request.entries]
        match answer:
            case Delivered():
                self.arrived |= set(found)
            case Again(numbers=left) if left is not None:
                self.arrived |= {number for place, number in enumerate(found) if place not in left}
        if answer is not None:
            self._outbox.answered(request, answer, self.now)


@given(st.data(), st.integers(0, 25), st.integers(1, 4), st.sampled_from([None, 50]))
def test_everything_arrives_and_nobody_waits_for_nothing(data, count, records, delay) -> None:
    """Whatever is answered, late or never: in bounds, each request under the key of its entries."""
    outbox = Outbox(sending(records=records, delay=delay))
    service = Service(data, outbox)
    for number in range(count):
        outbox.add(Entry("o", number, b"x"), service.now)
        service.take()
        while outbox.is_full:
            service.go_on()
            service.take()
    outbox.end()
    service.take()
    while not outbox.is_empty:
        service.go_on()
        service.take()
    assert service.arrived == set(range(count))
    assert outbox.counts["delivered"] == count
