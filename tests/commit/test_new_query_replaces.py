"""``on_new_query="replace"``: a full refresh takes the place of all that the path shows, and is one epoch."""

from __future__ import annotations

import pyarrow as pa
import pytest

from compaction import FileCompactor, FileCompactStrategy
from filesink import BucketAssigner, Encoder, FileSink
from filesink.commit.external_epochs import CollectedEpochs, slot_for
from filesink.commit.replay import EpochOptions
from filesink.commit.task import WriteTask
from filesink.errors import ConcurrentDriverError, ConfigError, IdentityError, SchemaError
from filesink.ledger.identity import OnNewQuery, append_sink_id
from filesink.ledger.record import BatchWrite
from filesink.operations.replacing.refresh import Refresh
from filesink.parts.stages.closed_parts import Compaction
from filesink.ports import Ports, SerialRunner
from filesink.sink_directory.directory import SinkDirectory
from filesink.sink_directory.site import Site
from filesink.sinks.doors import engine_options
from filesink.storage.faulty import Fault, Moment
from tests.fakes import World, keep_open, micro_batch, plan_of, records

OLD, NEW = "old", "new"


class Killed(BaseException):
    """The driver dies here."""


def refreshing(world):
    """How epochs of a sink are run that a new query may take over."""
    make_way = Refresh(tiers=world.tiers(), base_path="/base")
    return {"on_new_query": OnNewQuery.REPLACE, "make_way": make_way}


def run(world, batch_id, query, *batches):
    """One epoch by a driver that has just started."""
    loop = world.driver(**refreshing(world))
    return loop.run(micro_batch(batch_id, query_id=query), world.job(*batches))


def after_old(world):
    """What an earlier query and a batch write have left."""
    run(world, 0, OLD, records("1", "2"))
    run(world, 1, OLD, records("3"))
    world.driver(append_sink_id(None)).run(BatchWrite(writer="batch-1"), world.job(records("by hand")))
    assert len(world.rows()) == 4
    return world


def listed(world):
    """Paths of the newest version, by the ledger."""
    site = Site(base_path="/base", store=world.store(), clock=world.clock)
    return {file.path for file in SinkDirectory(_site=site).snapshot().files}


def test_a_new_query_takes_the_place_of_all_that_is_there():
    """Rows of the earlier query and of batch writes go, and the ledger says what a listing does."""
    world = after_old(World())
    assert not run(world, 0, NEW, records("1", "2"), records("3")).replayed
    assert world.rows() == ["1", "2", "3"]
    assert listed(world) == world.visible().keys()
    assert run(world, 0, NEW, records("1", "2"), records("3")).replayed
    run(world, 1, NEW, records("4"))
    assert world.rows() == ["1", "2", "3", "4"]


def test_the_first_query_of_a_sink_replaces_nothing():
    """What others wrote before a sink was there is not its own to refresh."""
    world = World()
    world.driver(append_sink_id(None)).run(BatchWrite(writer="batch-1"), world.job(records("by hand")))
    run(world, 0, NEW, records("1"))
    assert world.rows() == ["1", "by hand"]


@pytest.mark.parametrize("batch_id", [0, 1, 2])
def test_a_query_that_was_replaced_is_refused(batch_id):
    """Its checkpoint says that its rows are there, and they are not: whether it goes on or comes again."""
    world = after_old(World())
    run(world, 0, NEW, records("1"))
    with pytest.raises(IdentityError) as raised:
        run(world, batch_id, OLD, records("3"))
    assert raised.value.code == "NEW_QUERY_OLD_DATA"
    assert world.rows() == ["1"]


def test_a_new_query_in_the_midst_of_its_source_is_refused():
    """A checkpoint of another path would replace all rows by some."""
    world = after_old(World())
    with pytest.raises(IdentityError) as raised:
        run(world, 5, NEW, records("6"))
    assert raised.value.code == "NEW_QUERY_OLD_DATA"
    assert len(world.rows()) == 4


def test_rows_of_another_stream_are_never_replaced():
    """That stream would not write them again."""
    world = World()
    run(world, 0, OLD, records("1"))
    world.driver("uid-neighbour").run(micro_batch(0, query_id="n"), world.job(records("n")))
    before = world.visible()
    with pytest.raises(IdentityError, match="'uid-neighbour', another stream") as raised:
        run(world, 0, NEW, records("1"))
    assert raised.value.code == "OTHER_STREAM"
    assert world.visible() == before
    assert world.hidden() == []


def test_open_parts_of_the_earlier_query_never_appear():
    """They are neither continued nor published, and nothing of them is left."""
    world = World(plan=plan_of(policy=keep_open()))
    run(world, 0, OLD, records("1", "2"))
    assert world.rows() == []
    assert world.hidden()
    run(world, 0, NEW, records("3"))
    world.driver(**refreshing(world)).finish()
    assert world.rows() == ["3"]
    assert world.hidden() == []


def test_files_that_wait_for_compaction_never_appear():
    """A merge would bring rows of the earlier query into files of the new one."""
    strategy = FileCompactStrategy(size_threshold="1 MiB")
    world = World(compaction=Compaction(strategy=strategy, compactor=FileCompactor.concat_file_compactor()))
    run(world, 0, OLD, records("1"))
    assert world.rows() == []
    run(world, 0, NEW, records("2"))
    run(world, 1, NEW, records("3"))
    world.driver(**refreshing(world)).finish()
    assert [row for row in world.rows() if row] == ["2", "3"]
    assert world.hidden() == []


def test_the_new_query_may_have_other_columns():
    """A refresh is how a table gets another type; without it the type is refused."""
    world = after_old(World())
    other = records("9").append_column("more", pa.array([1]))
    run(world, 0, NEW, other)
    assert world.rows() == ["9"]


def test_the_new_query_may_have_another_layout():
    """Files of two formats beside each other are refused, and here none of the old ones stays."""
    world = after_old(World())
    other = World(plan=plan_of(Encoder.json_lines()))
    other.files = world.files
    with pytest.raises(SchemaError) as raised:
        other.driver().run(micro_batch(2, query_id=OLD), other.job(records("x")))
    assert raised.value.code == "OTHER_LAYOUT"
    run(other, 0, NEW, records("x"))
    assert [path.rpartition(".")[2] for path in other.visible()] == ["json"]


class TestWhoeverDies:
    """The driver dies at each call of the first epoch in turn; the next one ends it."""

    @pytest.mark.parametrize("moment", [Moment.BEFORE, Moment.AFTER])
    def test_at_any_call(self, moment):
        """At the end the new rows are there once, and nothing else; old rows never come back."""
        number, deaths = 0, 0
        while True:
            world = after_old(World())
            calls = [0]

            def dies(_operation, _path, calls=calls, number=number):
                calls[0] += 1
                return Fault(moment=moment, error=Killed()) if calls[0] == number + 1 else None

            world.fault = dies
            try:
                run(world, 0, NEW, records("1", "2"), records("3"))
            except Killed:
                deaths += 1
            world.fault = lambda _operation, _path: None
            run(world, 0, NEW, records("1", "2"), records("3"))
            run(world, 1, NEW, records("4"))
            assert world.rows() == ["1", "2", "3", "4"], f"after a death at call {number}"
            assert listed(world) == world.visible().keys()
            if calls[0] <= number:
                break
            number += 1
        assert deaths > 40

    def test_after_decide(self):
        """The rows are decided: whoever comes next publishes them, and removes nothing any more."""
        world = after_old(World())

        def dies(operation, _path):
            return Fault(moment=Moment.BEFORE, error=Killed()) if operation == "publish" else None

        world.fault = dies
        with pytest.raises(Killed):
            run(world, 0, NEW, records("1"))
        world.fault = lambda _operation, _path: None
        assert world.rows() == []
        assert run(world, 0, NEW, records("1")).replayed
        assert world.rows() == ["1"]


def test_the_earlier_query_is_still_at_work():
    """Its next epoch takes the slot: nothing of it is removed unseen, and the new query is told."""
    world = after_old(World())
    job = world.job(records("1"))
    late = world.driver(**refreshing(world))
    write = job.write

    def meanwhile(task):
        done = write(task)
        world.driver().run(micro_batch(2, query_id=OLD), world.job(records("late")))
        return done

    job.write = meanwhile
    with pytest.raises(ConcurrentDriverError):
        late.run(micro_batch(0, query_id=NEW), job)
    assert "late" in world.rows()
    assert len(world.rows()) == 5
    run(world, 0, NEW, records("1"))
    assert world.rows() == ["1"]


def test_two_new_queries_at_once():
    """The second lists what is to go, then finds the chain gone on: it removes no row of the first."""
    world = after_old(World())
    first, second = world.job(records("1")), world.job(records("2"))
    write = second.write

    def meanwhile(task):
        done = write(task)
        world.driver(**refreshing(world)).run(micro_batch(0, query_id=NEW), first)
        return done

    second.write = meanwhile
    with pytest.raises(ConcurrentDriverError):
        world.driver(**refreshing(world)).run(micro_batch(0, query_id="newer"), second)
    assert world.rows() == ["1"]


def test_an_engine_that_runs_the_tasks_by_itself():
    """Tasks are told the slot before anything goes, also with a type that the earlier query did not have."""
    world = after_old(World())
    cause, schema = micro_batch(0, query_id=NEW), records("1").schema
    options = EpochOptions(**refreshing(world))
    slot = slot_for(cause, world.ledger(), sink=world.tiers(), schema=schema, options=options)
    assert slot == 2
    assert len(world.rows()) == 4
    task = WriteTask(sink=world.tiers(), sink_id=world.sink_id, slot=slot, driver_ms=0, time_zone="UTC")
    results = [task.run_with(0, 0, [records("1")], clock=world.clock, ids=world.ids)]
    ports = Ports(clock=world.clock, ids=world.ids, runner=SerialRunner())

    def commit():
        loop = CollectedEpochs(world.tiers(), world.ledger(), ports=ports, options=options)
        return loop.commit(cause, results, slot=slot, schema=schema)

    assert not commit().replayed
    assert world.rows() == ["1"]
    assert commit().replayed
    assert world.rows() == ["1"]


def test_a_sink_without_a_name_cannot_be_refreshed(tmp_path):
    """Without a uid each query is another sink."""
    builder = FileSink.for_row_format(tmp_path, Encoder.simple_string_encoder()).on_new_query("replace")
    with pytest.raises(ConfigError, match="with_uid") as raised:
        builder.build()
    assert raised.value.code == "CONFLICT"
    assigner = BucketAssigner.base_path_bucket_assigner()
    assert builder.with_uid("u").with_bucket_assigner(assigner).build()


def test_other_sinks_have_no_files_to_replace():
    """What PostgreSQL or Kafka were sent stays there."""
    with pytest.raises(ConfigError) as raised:
        engine_options("orders", on_new_query="replace")  # type: ignore[arg-type]
    assert raised.value.code == "BAD_VALUE"
