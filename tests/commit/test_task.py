"""One task of an epoch: what it reports, what it leaves behind, and what its bytes may be."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filesink.api import Sink, SinkWriter
from filesink.commit.task import TaskResult, WriteTask, decode_states, encode_states
from filesink.errors import InternalError, StateCorruptError, StateError, StateVersionError
from filesink.framing import frame, to_json
from filesink.ledger.record import EMPTY, Section
from filesink.system import TaskClock
from tests.fakes import CountingIds, SettableClock, World, records

GOLDEN = Path(__file__).parents[1] / "golden"
EXAMPLE = TaskResult(
    subtask=3,
    attempt=1,
    rows=5,
    committables=Section(1, b"[]"),
    state=Section(2, b"\n\x00"),
    metrics={"parts_rolled": 2},
)
numbers = st.integers(0, 2**63 - 1)
sections = st.builds(Section, st.integers(0, 9), st.binary(max_size=20))
results = st.builds(
    TaskResult,
    subtask=numbers,
    attempt=numbers,
    rows=numbers,
    committables=sections,
    state=sections,
    metrics=st.dictionaries(st.text(max_size=5), numbers, max_size=3),
)


def task_of(world, **options):
    """The task that a driver would send for slot 0."""
    return WriteTask(sink=world.tiers(), sink_id="uid-u", slot=0, driver_ms=0, time_zone="UTC", **options)


@given(results)
def test_results_come_back(result):
    """What a task reports is what the driver reads."""
    assert TaskResult.from_bytes(result.to_bytes()) == result


def test_a_result_of_version_1_is_read_and_written():
    """Executors and drivers of one release agree on these bytes."""
    golden = (GOLDEN / "task-result-1").read_bytes()
    assert TaskResult.from_bytes(golden) == EXAMPLE
    assert EXAMPLE.to_bytes() == golden


def test_every_flipped_byte_is_noticed():
    """A result is never misread."""
    data = EXAMPLE.to_bytes()
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x01
        with pytest.raises(StateError):
            TaskResult.from_bytes(bytes(damaged))


def test_a_newer_result_is_refused():
    """An executor with a newer release than the driver's is named."""
    with pytest.raises(StateVersionError, match="the result of a task has version 2"):
        TaskResult.from_bytes(frame("task-result", 2, b""))


def mutations():
    """Each field of the head missing or of another type, with a right checksum."""
    head = json.loads(EXAMPLE.to_bytes().splitlines()[1])
    for name in head:
        yield pytest.param({key: value for key, value in head.items() if key != name}, id=f"no-{name}")
        for wrong in (None, 1.5, True, "x", -1, [1, -1], [1, 2, 3], {"a": "b"}):
            yield pytest.param({**head, name: wrong}, id=f"{name}-{wrong!r}")
    yield pytest.param({**head, "committables": [1, -1], "state": [2, 5]}, id="negative-length")
    yield pytest.param({**head, "more": 1}, id="more")
    yield pytest.param([], id="list")


@pytest.mark.parametrize("head", list(mutations()))
def test_wrong_heads_are_damage(head):
    """A field that is missing, unknown or of another type is damage."""
    with pytest.raises(StateCorruptError):
        TaskResult.from_bytes(frame("task-result", 1, to_json(head) + b"\n[]\n\x00"))


def test_rows_are_counted_and_empty_batches_skipped():
    """A result counts the records that came in, and an empty batch makes no file."""
    world = World()
    data = task_of(world).run_with(
        4, 0, [records(), records("a", "b"), records("c")], clock=SettableClock(), ids=CountingIds()
    )
    result = TaskResult.from_bytes(data)
    assert (result.subtask, result.rows) == (4, 3)
    assert len(world.hidden()) == 1


def test_a_failing_input_leaves_nothing():
    """If the input raises, what the task had written is removed and the error passes through."""

    def batches():
        yield records("a", bucket="x")
        yield records("b", bucket="y")
        raise RuntimeError("the source broke")

    world = World()
    with pytest.raises(RuntimeError, match="the source broke"):
        task_of(world).run_with(0, 0, batches(), clock=SettableClock(), ids=CountingIds())
    assert world.contents() == {}


def test_a_stopped_task_leaves_nothing():
    """A worker that is told to stop cleans up as well."""

    def batches():
        yield records("a")
        raise KeyboardInterrupt

    world = World()
    with pytest.raises(KeyboardInterrupt):
        task_of(world).run_with(0, 0, batches(), clock=SettableClock(), ids=CountingIds())
    assert world.contents() == {}


class Stateful(Sink):
    """A sink whose writers have state and which forgot the codec."""

    def create_writer(self, context):
        raise NotImplementedError

    def create_committer(self):
        raise NotImplementedError

    def open_ledger(self, sink_id):
        raise NotImplementedError

    committable_codec = None


def test_state_without_a_codec_is_named():
    """Who returns state must say how it becomes bytes; without state none is needed."""
    assert encode_states(Stateful(), []) == EMPTY
    assert decode_states(Stateful(), EMPTY) == []
    with pytest.raises(InternalError, match="Stateful has writer state but no state_codec"):
        encode_states(Stateful(), ["x"])
    with pytest.raises(InternalError, match="the ledger holds state but Stateful has no codec"):
        decode_states(Stateful(), Section(1, b"x"))


class Watched(SinkWriter):
    """Notes the order of its calls."""

    def __init__(self, calls, context):
        self.calls = calls
        context.mailbox.execute(lambda: calls.append("letter"), "a letter")

    def write(self, batch, context):
        self.calls.append(f"write {batch.num_rows}")
        for letter in ("first", "second"):
            context.mailbox.execute(partial(self.calls.append, letter), letter)

    def prepare_commit(self, epoch):
        self.calls.append(f"prepare_commit {epoch}")
        return []

    def snapshot_state(self, epoch):
        self.calls.append(f"snapshot_state {epoch}")
        return []

    def close(self):
        self.calls.append("close")


def test_the_order_of_calls():
    """Letters as they came, before what is next; then prepare_commit, snapshot_state and close, once each."""
    calls = []

    class Noted(Stateful):
        def create_writer(self, context):
            return Watched(calls, context)

        committable_codec = World().tiers().committable_codec

    task = WriteTask(sink=Noted(), sink_id="s", slot=9, driver_ms=0, time_zone="UTC")
    task.run(0, 0, [records("a"), records("b", "c")])
    assert calls == [
        *("letter", "write 1", "first", "second", "write 2", "first", "second"),
        *("prepare_commit 9", "snapshot_state 9", "close"),
    ]


class Timed(Watched):
    """Has timers for two moments."""

    def __init__(self, calls, context):
        super().__init__(calls, context)
        for at_ms in (20, 30):
            context.timers.register(at_ms, lambda at_ms: calls.append(f"timer {at_ms}"))


def test_timers_are_called_between_batches_and_before_the_commit():
    """By the clock of the task; a writer that never yields is called all the same."""
    calls, clock = [], SettableClock(now=10)

    class Noted(Stateful):
        def create_writer(self, context):
            return Timed(calls, context)

        committable_codec = World().tiers().committable_codec

    def batches():
        yield records("a")
        clock.now = 20
        yield records("b")
        clock.now = 30

    task = WriteTask(sink=Noted(), sink_id="s", slot=0, driver_ms=0, time_zone="UTC")
    task.run_with(0, 0, batches(), clock=clock, ids=CountingIds())
    timers = [call for call in calls if call.startswith(("timer", "write", "prepare"))]
    assert timers == ["write 1", "timer 20", "write 1", "timer 30", "prepare_commit 0"]


def test_a_task_clock_runs_on_in_milliseconds(monkeypatch):
    """From the driver's time, by what has passed in the task."""
    monkeypatch.setattr("time.monotonic", lambda: 70.0)
    clock = TaskClock(driver_ms=1_700_000_000_000, _started=67.5)
    assert clock.now_ms() == 1_700_000_002_500


def test_a_task_goes_on_from_the_clock_of_its_driver():
    """The ages of parts are not those by the clock of whatever machine it runs on."""
    seen = []

    class Noted(Stateful):
        def create_writer(self, context):
            seen.append(context.clock.now_ms())
            return Watched([], context)

        committable_codec = World().tiers().committable_codec

    WriteTask(sink=Noted(), sink_id="s", slot=0, driver_ms=5, time_zone="UTC").run(0, 0, [])
    assert 5 <= seen[0] < 86_400_000, "a day after 1970 began at most"
