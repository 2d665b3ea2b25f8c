"""What commit does with the messages that Spark hands it. Needs no Spark that runs."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from filesink.commit.replay import EpochOptions
from filesink.commit.task import WriteTask
from filesink.data_source.save_modes import ModeOf
from filesink.data_source.task_message import Report
from filesink.data_source.task_properties import micro_batch_of
from filesink.data_source.write import DataSourceWrite
from filesink.data_source.writers import BatchWriter, StreamWriter
from filesink.errors import ConcurrentDriverError, ConfigError, InternalError
from filesink.ledger.record import BatchWrite
from filesink.save_mode import SaveMode
from filesink.spark.query_internals import BATCH_ID, QUERY_ID
from tests.fakes import QUERY, SCHEMA, World, records


@pytest.fixture
def world():
    """A base path with nothing in it."""
    return World()


def write_of(world):
    """What both writers do, for the sink of the world."""
    epochs = EpochOptions()
    return DataSourceWrite(
        sink=world.tiers(),
        table=None,
        schema=SCHEMA,
        epochs=epochs,
        time_zone="UTC",
        by_clock=False,
        made_ms=world.clock.now,
        base_path="/base",
    )


def report(world, value, *, subtask=0, slot=0, query_id="", batch_id=-1):
    """That of a task which has written one row for a slot."""
    task = WriteTask(sink=world.tiers(), sink_id=world.sink_id, slot=slot, driver_ms=0, time_zone="UTC")
    result = task.run_with(subtask, 0, [records(value)], clock=world.clock, ids=world.ids)
    return Report(query_id=query_id, batch_id=batch_id, slot=slot, result=result)


def commit_batch(world, messages):
    """As Spark does it for a batch write."""
    writer = BatchWriter(write_of(world), cause=BatchWrite(), sink_id=world.sink_id)
    writer.commit(messages)


def commit_stream(world, messages):
    """As Spark does it for the first micro-batch of a stream."""
    StreamWriter(write_of(world)).commit(messages, 0)


DOORS = {"batch": (commit_batch, {}), "stream": (commit_stream, {"query_id": QUERY, "batch_id": 0})}


@pytest.mark.parametrize(("commit", "named"), DOORS.values(), ids=DOORS)
def test_what_all_tasks_have_reported_is_committed(world, commit, named):
    """The rows of every message, once."""
    commit(world, [report(world, value, subtask=int(value), **named).to_message() for value in "01"])
    assert world.rows() == ["0", "1"]


@pytest.mark.parametrize("tasks", ["", "-", "0-", "-1", "--"])
@pytest.mark.parametrize(("commit", "named"), DOORS.values(), ids=DOORS)
def test_a_commit_that_a_task_is_missing_from_is_refused(world, commit, named, tasks):
    """Its rows would be missing for ever; nothing is decided and nothing visible."""
    messages = [
        None if task == "-" else report(world, task, subtask=int(task), **named).to_message()
        for task in tasks
    ]
    with pytest.raises(ConfigError) as raised:
        commit(world, messages)
    assert raised.value.code == "TRIGGER"
    assert world.ledger().head() is None
    assert world.rows() == []


@pytest.mark.parametrize("modes", [[], ["overwrite", "overwrite_partitions"]])
def test_an_overwrite_whose_tasks_do_not_say_what_it_replaces_is_refused(world, modes):
    """Only tasks see the setting of the session; without them nobody knows, and nothing is replaced."""
    world.driver().run(BatchWrite(), world.job(records("old")))
    reports = [
        replace(report(world, "new", subtask=place, slot=1), mode=mode) for place, mode in enumerate(modes)
    ]
    cause = BatchWrite(mode=SaveMode.OVERWRITE)
    writer = BatchWriter(write_of(world), cause=cause, sink_id=world.sink_id, chosen=ModeOf.SESSION)
    with pytest.raises(ConfigError):
        writer.commit([one.to_message() for one in reports])
    assert world.rows() == ["old"]


@pytest.mark.parametrize("slots", [(0, 1), (1, 0)])
def test_tasks_that_wrote_for_two_slots_are_refused(world, slots):
    """Whoever took the first slot meanwhile may be sweeping what was made for it."""
    world.driver().run(BatchWrite(), world.job(records("other")))
    reports = [report(world, f"{slot}", subtask=number, slot=slot) for number, slot in enumerate(slots)]
    with pytest.raises(ConcurrentDriverError):
        write_of(world).commit(BatchWrite(), world.sink_id, reports)
    assert world.rows() == ["other"]
    assert world.hidden() == []
    assert world.ledger().head().record.slot == 0


@pytest.mark.parametrize(("first", "second"), [((QUERY, 1), (QUERY, 1)), ((QUERY, 0), (QUERY, 1))])
def test_messages_of_another_batch_are_no_epoch(world, first, second):
    """Whatever Spark has mixed up: rows of one batch are never committed under the number of another."""
    messages = [
        report(world, str(number), subtask=number, query_id=query_id, batch_id=batch_id).to_message()
        for number, (query_id, batch_id) in enumerate((first, second))
    ]
    with pytest.raises(InternalError) as raised:
        commit_stream(world, messages)
    assert raised.value.code == "BATCH_ID"
    assert world.ledger().head() is None


def test_messages_of_two_queries_are_no_epoch(world):
    """The batch of the same number of another query is another batch."""
    messages = [
        report(world, str(number), subtask=number, query_id=query_id, batch_id=0).to_message()
        for number, query_id in enumerate((QUERY, "another"))
    ]
    with pytest.raises(InternalError) as raised:
        commit_stream(world, messages)
    assert raised.value.code == "BATCH_ID"


@pytest.mark.parametrize(
    ("properties", "code"),
    [
        ({QUERY_ID: QUERY, BATCH_ID: "0", "__is_continuous_processing": "true"}, "TRIGGER"),
        ({BATCH_ID: "0"}, "NO_BATCH_ID"),
        ({QUERY_ID: QUERY}, "NO_BATCH_ID"),
    ],
)
def test_a_task_without_a_batch_of_its_own_writes_nothing(properties, code):
    """In continuous processing nobody would hear of its rows; without ids a replay looks like new data."""
    with pytest.raises((ConfigError, InternalError)) as raised:
        micro_batch_of(SimpleNamespace(getLocalProperty=properties.get))
    assert raised.value.code == code


@pytest.mark.parametrize(("commit", "named"), DOORS.values(), ids=DOORS)
def test_the_first_epoch_of_a_run_sweeps_what_earlier_runs_have_left(world, commit, named):
    """Also in buckets that it does not write to itself: nobody else will look there."""
    task = WriteTask(sink=world.tiers(), sink_id=world.sink_id, slot=0, driver_ms=0, time_zone="UTC")
    task.run_with(0, 0, [records("dead", bucket="elsewhere")], clock=world.clock, ids=world.ids)
    assert len(world.hidden()) == 1
    commit(world, [report(world, "1", **named).to_message()])
    assert (world.rows(), world.hidden()) == (["1"], [])
