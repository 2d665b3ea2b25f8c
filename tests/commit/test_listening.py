"""What listeners are told of epochs, and that no epoch depends on them."""

from __future__ import annotations

import logging
from dataclasses import fields

import pytest

from compaction import FileCompactor, FileCompactStrategy
from filesink.api.events import (
    EpochBegan,
    EpochComplete,
    EpochDecided,
    EpochFailed,
    EpochVisible,
    HiddenFilesSwept,
    Listeners,
    PartsMerged,
    PartsRolled,
)
from filesink.errors import CommitFailedError
from filesink.file_sink.report import changes_of, report_of
from filesink.ledger.record import BatchWrite
from filesink.metastore.partition_commit import PartitionCommit
from filesink.metastore.policies import ListenerPolicy
from filesink.parts.stages.closed_parts import Compaction
from filesink.save_mode import SaveMode
from tests.fakes import World, keep_open, micro_batch, plan_of, records

WHOLE = [EpochBegan, PartsRolled, EpochDecided, EpochVisible, EpochComplete]


class Heard(list):
    """Keeps what it is told."""

    def __call__(self, event):
        self.append(event)

    @property
    def kinds(self):
        return [type(event) for event in self]

    def only(self, kind):
        (found,) = (event for event in self if isinstance(event, kind))
        return found


def heard_in(world, *others):
    """A listener of everything that drivers of ``world`` do from now on."""
    heard = Heard()
    world.audience = Listeners("/base", [*others, heard], changes_of)
    return heard


def test_an_epoch_is_told_step_by_step():
    """Each event once, in the order of the steps, all of one run, with the figures of the report."""
    world = World()
    heard = heard_in(world)
    world.clock.now = 1_700_000_000_000
    outcome = world.driver().run(micro_batch(0), world.job([records("1", "2")], records("3", bucket="b")))
    assert heard.kinds == WHOLE
    assert len({event.run for event in heard}) == 1
    assert {(event.sink, event.epoch, event.kind, event.batch_id, event.at_ms) for event in heard} == {
        ("uid-u", 0, "micro-batch", 0, 1_700_000_000_000)
    }
    report, told = report_of(outcome), heard.only(EpochComplete)
    assert (told.rows, told.changes.files, told.changes.removed) == (3, report.files, ())
    assert {name: told.metrics[name] for name in report.metrics} == report.metrics
    assert told.schema.names == ["bucket", "value"]
    assert heard.only(PartsRolled).files == 2


def test_a_batch_write_has_no_epoch_until_it_is_decided():
    """Its slot is chosen by the decision; the run tells that it is the same."""
    world = World()
    heard = heard_in(world)
    cause = BatchWrite(writer="w-1")
    world.driver("appends").run(cause, world.job(records("1")))
    assert [event.epoch for event in heard if not isinstance(event, HiddenFilesSwept)] == [None, 0, 0, 0, 0]


def test_upkeep_that_does_nothing_is_not_told():
    """A timer that looks every minute is no event."""
    world = World(plan=plan_of(policy=keep_open()))
    driver = world.driver()
    driver.run(micro_batch(0), world.job(records("1")))
    heard = heard_in(world)
    assert world.driver().upkeep() is None
    assert heard == []
    assert world.driver().finish() is not None
    assert [kind for kind in heard.kinds if kind is not PartsRolled] == [
        EpochBegan, EpochDecided, EpochVisible, EpochComplete,
    ]  # fmt: skip
    assert {event.kind for event in heard} == {"finish"}


def test_a_merge_is_told():
    """How many small files became how many, in which epoch."""
    strategy = FileCompactStrategy(checkpoints=1)
    world = World(compaction=Compaction(strategy=strategy, compactor=FileCompactor.concat_file_compactor()))
    heard = heard_in(world)
    world.driver().run(micro_batch(0), world.job([records("1")], [records("2")]))
    merged = heard.only(PartsMerged)
    assert (merged.files_in, merged.files_out) == (2, 1)
    assert merged.bytes_in == merged.bytes_out


def test_a_replay_is_no_second_epoch():
    """A micro-batch that comes back writes nothing, and nobody is told of it twice."""
    world = World()
    world.driver().run(micro_batch(0), world.job(records("1")))
    heard = heard_in(world)
    assert world.driver().run(micro_batch(0), world.job(records("1"))).replayed
    assert heard == []


def test_an_epoch_that_fails_before_the_decision():
    """The error goes to the caller, and is told by type and code; its text is not."""
    world = World()
    heard = heard_in(world)
    job = world.job(records("1"))

    def write(_task):
        raise ValueError("a value of a record")

    job.write = write
    with pytest.raises(ValueError, match="a value"):
        world.driver().run(micro_batch(0), job)
    assert heard.kinds == [EpochBegan, EpochFailed]
    told = heard.only(EpochFailed)
    assert (told.error, told.code, told.decided) == ("ValueError", "", False)
    assert all("a value" not in str(getattr(told, field.name)) for field in fields(told))


def test_what_one_driver_decides_another_completes():
    """The first tells that it failed after the decision, the second that it recovered the epoch."""
    broken = [True]

    def announce(_partition):
        if broken:
            raise ValueError("a bug")

    world = World(partition_commit=PartitionCommit(policies=[ListenerPolicy(announce)]))
    heard = heard_in(world)
    with pytest.raises(CommitFailedError):
        world.driver().run(micro_batch(0), world.job(records("1", bucket="p=1")))
    assert heard.kinds == [EpochBegan, PartsRolled, EpochDecided, EpochVisible, EpochFailed]
    assert heard.only(EpochFailed).decided
    heard.clear()
    broken.clear()
    world.driver().run(micro_batch(1), world.job(records("2", bucket="p=1")))
    recovered = [event for event in heard if event.recovered]
    assert [type(event) for event in recovered] == [EpochVisible, EpochComplete]
    assert (recovered[1].epoch, recovered[1].rows, recovered[1].began_ms) == (0, 1, None)
    rest = [type(event) for event in heard if not event.recovered and not isinstance(event, HiddenFilesSwept)]
    assert rest == WHOLE
    assert {event.epoch for event in heard if not event.recovered} == {1}


def test_a_listener_that_fails_fails_nothing(caplog):
    """Its error is logged once with the reason, whatever it was; the others are told all the same."""

    def broken(_event):
        raise ZeroDivisionError("a bug")

    world = World()
    heard = heard_in(world, broken)
    driver = world.driver()
    with caplog.at_level(logging.WARNING, "filesink"):
        for batch in range(3):
            driver.run(micro_batch(batch), world.job(records(str(batch))))
    assert heard.kinds == WHOLE * 3
    assert world.rows() == ["0", "1", "2"]
    (line,) = (record.getMessage() for record in caplog.records)
    assert "broken" in line
    assert "ZeroDivisionError: a bug" in line


def test_listeners_cost_the_store_nothing():
    """The calls of an epoch are the same with a listener and without one: no metric comes of a listing."""

    def calls(audience):
        world, seen = World(audience=audience), []
        world.fault = lambda operation, _path: seen.append(operation)
        world.driver().run(micro_batch(0), world.job(records("1")))
        return seen

    assert calls(Listeners("/base", [Heard()], changes_of)) == calls(None)


def test_ids_and_clock_are_not_asked_where_nobody_listens():
    """Without a listener an epoch is what it was before there were any."""
    alone, told = World(), World()
    heard_in(told)
    for world in (alone, told):
        world.driver().run(micro_batch(0), world.job(records("1")))
    assert told.ids.made == alone.ids.made + 1


def test_a_file_that_is_kept_for_readers_is_told_when_it_goes():
    """Once, with the epoch that removes it, and not with each that carries it on."""
    world = World(reader_grace_ms=5000)
    driver = world.driver()
    driver.run(micro_batch(0), world.job(records("old")))
    (old,) = world.visible()
    heard = heard_in(world)
    cause = BatchWrite(mode=SaveMode.OVERWRITE)
    world.driver("exclusive").run(cause, world.job(records("new")))
    for _ in range(2):
        world.driver("exclusive").run(BatchWrite(mode=SaveMode.OVERWRITE_PARTITIONS), world.job())
    world.clock.now += 60_000
    world.driver("exclusive").run(BatchWrite(mode=SaveMode.OVERWRITE_PARTITIONS), world.job())
    removed = [event.changes.removed for event in heard if isinstance(event, EpochComplete)]
    assert [old in paths for paths in removed].count(True) == 1
    assert old not in removed[0]
