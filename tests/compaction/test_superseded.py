"""Inputs of offline compaction that stay for readers, and who else may be at work meanwhile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import compaction
from compaction.offline import superseded, swap
from compaction.offline.finished import FinishedTiers
from compaction.offline.superseded import current, outstanding
from compaction.offline.swap import Swap
from filesink.commit.committer import FileCommitter
from filesink.commit.publisher import Publisher
from filesink.errors import CompactionError, ConcurrentDriverError, ConfigError, StagedDataLost, StorageError
from filesink.inventory.reading import Reader
from filesink.inventory.snapshots import Snapshots
from filesink.ledger import folding
from filesink.ledger.folding import Folding
from filesink.ledger.identity import EXCLUSIVE, batch_write
from filesink.ledger.ledger import Ledger
from filesink.ledger.sweep import visible
from filesink.operations.maintenance import Lost
from filesink.parts.committables import ReplacedFile
from filesink.parts.file_format import BulkFormat
from filesink.ports import Ports, SerialRunner
from filesink.save_mode import SaveMode
from filesink.storage.address import StoreAddress
from filesink.storage.faulty import Fault, Moment
from formats import Encoder, ParquetWriterFactory
from tests.fakes import World, micro_batch, plan_of, records

GRACE = 1000


@pytest.fixture
def world():
    """Four small files in bucket x, written by a stream."""
    world = World()
    for number in range(4):
        stream(world, number)
    return world


def stream(world, number):
    """One micro-batch of one row, which is its number."""
    world.driver().run(micro_batch(number), world.job(records(str(number), bucket="x")))


def overwrite(world, *values, mode=SaveMode.OVERWRITE):
    """A batch write that replaces all."""
    sink_id, cause = batch_write(mode, world.uid, "", world.ids)
    return world.driver(sink_id).run(cause, world.job(records(*values, bucket="x")))


def compact(world, grace_ms=GRACE):
    """Offline compaction by the clock of the test."""
    tiers = FinishedTiers(
        address=world.store, plan=world.plan, bucket=None, target_size=1 << 20, grace_ms=grace_ms
    )
    return tiers.compact(Ports(clock=world.clock, ids=world.ids, runner=SerialRunner()))


def rows_once(world):
    """What a reader finds who asks for the names of files."""
    data = world.visible()
    return sorted(line for path in current(world.store(), None) for line in data[path].decode().splitlines())


def live(world):
    """Paths of the newest version, for readers of versions."""
    rows = Snapshots(Reader(world.store(), world.clock), "").files_at(None).rows
    return rows["path"].to_pylist()


def test_inputs_stay_for_the_grace(world):
    """Who asks sees each row once at any time; the call after the grace removes the inputs."""
    outcome = compact(world)
    metrics = {name: value for name, value in outcome.metrics.items() if name.startswith("merged_")}
    sizes = {"merged_bytes_in": 8, "merged_bytes_out": 8}
    assert metrics == {"merged_files_in": 4, "merged_files_out": 1, **sizes}
    assert len(world.visible()) == 5
    assert rows_once(world) == ["0", "1", "2", "3"]
    world.clock.now += GRACE - 1
    assert compact(world) is None
    world.clock.now += 1
    outcome = compact(world)
    assert sum(isinstance(file, ReplacedFile) for file in outcome.committables) == 4
    assert (len(world.visible()), world.rows()) == (1, ["0", "1", "2", "3"])
    assert rows_once(world) == world.rows()
    assert compact(world) is None
    assert outstanding(world.store()) == []


def test_the_grace_begins_when_the_merge_is_done(world, monkeypatch):
    """However long it takes, who asks just before its end can read the inputs for the whole grace."""
    merge = swap.merge

    def slow(*args, **options):
        world.clock.now += 5 * GRACE
        return merge(*args, **options)

    monkeypatch.setattr(swap, "merge", slow)
    assert compact(world).metrics["merge_ms"] == 5 * GRACE
    world.clock.now += GRACE - 1
    assert compact(world) is None
    assert len(world.visible()) == 5


@pytest.mark.parametrize("how", ["next call", "recover"])
def test_the_grace_begins_when_a_crashed_call_is_carried_through(world, how, monkeypatch):
    """Until then readers are given the inputs, so they keep them for the whole grace."""
    crash_in(monkeypatch, FileCommitter, "commit", lambda: compact(world))
    world.clock.now += 100 * GRACE
    asked = current(world.store(), None)
    if how == "recover":
        world.maintenance().recover(Lost.RAISE, None)
    assert compact(world) is None
    world.clock.now += GRACE - 1
    assert compact(world) is None
    assert set(asked) <= set(world.visible())
    world.clock.now += 1
    compact(world, 0)
    assert (len(world.visible()), world.rows()) == (1, ["0", "1", "2", "3"])


def test_who_asks_while_several_calls_go_by_reads_what_was_listed_once(world, monkeypatch):
    """What the newest record names no more was named when the listing began."""
    compact(world)
    data = world.visible()

    def slowly(store, directories):
        found = list(visible(store, directories))
        world.clock.now += GRACE
        compact(world)
        stream(world, 4)
        compact(world)
        return found

    monkeypatch.setattr(superseded, "visible", slowly)
    read = [line for path in current(world.store(), None) for line in data[path].decode().splitlines()]
    assert sorted(read) == ["0", "1", "2", "3"]


def test_an_overwrite_that_died_hides_nothing_from_who_asks(world, monkeypatch):
    """Its record is the newest of those that exclude each other, and names nothing that is superseded."""
    compact(world)
    crash_in(monkeypatch, FileCommitter, "commit", lambda: overwrite(world, "new"))
    assert rows_once(world) == ["0", "1", "2", "3"]


def test_by_default_inputs_go_at_once(world):
    """So that readers of a plain directory see rows twice for as short as can be."""
    compact(world, 0)
    assert (len(world.visible()), world.rows()) == (1, ["0", "1", "2", "3"])


def test_what_stands_for_others_may_be_merged_itself(world):
    """Then the last file stands for all of them, whatever graces they have."""
    compact(world, 10 * GRACE)
    for number in range(4, 6):
        stream(world, number)
    compact(world, 0)
    assert rows_once(world) == [str(number) for number in range(6)]
    assert len(world.visible()) == 5  # the four first ones have been promised to readers
    world.clock.now += 10 * GRACE
    compact(world, 0)
    assert (len(world.visible()), world.rows()) == (1, [str(number) for number in range(6)])


def test_without_what_stands_for_it_a_file_is_data_again(world):
    """Somebody has removed the merged file: its inputs are not removed, and are read."""
    compact(world)
    for path in set(world.visible()) & set(current(world.store(), None)):
        del world.files.files[path]
    assert rows_once(world) == ["0", "1", "2", "3"]
    world.clock.now += GRACE
    compact(world, 0)
    assert world.rows() == ["0", "1", "2", "3"]


def change(world, paths):
    """Give files another version, as a copy of the directory does, and another moment of change."""
    for path in paths:
        file = world.files.files[path]
        world.files.files[path] = replace(file, inode=file.inode + 1_000_000)


@pytest.mark.parametrize("share", ["all", "one"])
def test_a_changed_input_is_neither_removed_nor_data_again(world, share, caplog):
    """In a copy of the directory, say, no row is read twice, however often it is compacted since."""
    inputs = sorted(world.visible())
    changed = inputs if share == "all" else inputs[:1]
    compact(world)
    change(world, changed)
    for number in range(4, 7):
        world.clock.now += 10 * GRACE
        stream(world, number)
        compact(world, 0)
        assert rows_once(world) == [str(row) for row in range(number + 1)]
    assert changed == [path for path in inputs if path in world.visible()]
    assert len(world.visible()) == len(changed) + 1
    assert f"'{changed[0]}' and {len(changed) - 1} other" in caplog.text
    for path in changed:
        del world.files.files[path]
    caplog.clear()
    compact(world, 0)
    assert (outstanding(world.store()), caplog.text) == ([], "")


def test_an_input_that_changes_before_its_removal(world, monkeypatch):
    """It stays, and is no data, without a grace as well."""
    meanwhile(monkeypatch, lambda: change(world, sorted(world.visible())[:1]))
    compact(world, 0)
    assert (len(world.visible()), rows_once(world)) == (2, ["0", "1", "2", "3"])
    assert compact(world, 0) is None
    assert (len(world.visible()), rows_once(world)) == (2, ["0", "1", "2", "3"])


@pytest.mark.parametrize("step", ["announce", "commit"])
def test_a_crash_leaves_nothing_to_be_read_twice(world, step, monkeypatch):
    """Between decision and end: who asks sees each row once, and recover() carries the rest through."""

    def crash(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        name = "announce" if step == "announce" else "_until_done"
        patched.setattr(Publisher, name, crash)
        with pytest.raises(KeyboardInterrupt):
            compact(world)
    assert rows_once(world) == ["0", "1", "2", "3"]
    assert len(world.visible()) == (5 if step == "announce" else 4)
    world.maintenance().recover(Lost.RAISE, None)
    assert rows_once(world) == ["0", "1", "2", "3"]
    assert len(world.visible()) == 5
    world.clock.now += GRACE
    compact(world)
    assert (len(world.visible()), world.rows()) == (1, ["0", "1", "2", "3"])


def meanwhile(monkeypatch, work):
    """``work`` is done between the plan of a compaction and its decision."""
    prepare = Swap.prepare

    def interrupted(stage, epoch, prepared):
        done = prepare(stage, epoch, prepared)
        monkeypatch.setattr(Swap, "prepare", prepare)
        work()
        return done

    monkeypatch.setattr(Swap, "prepare", interrupted)


@pytest.mark.parametrize("mode", [SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS])
def test_an_overwrite_comes_first(world, mode, monkeypatch):
    """Compaction gives up, and does not bring back what was replaced."""
    meanwhile(monkeypatch, lambda: overwrite(world, "new", mode=mode))
    with pytest.raises(ConcurrentDriverError):
        compact(world)
    assert (world.rows(), rows_once(world)) == (["new"], ["new"])
    assert compact(world) is None
    overwrite(world, "newer")
    world.maintenance().recover(Lost.RAISE, None)
    assert world.hidden() == []


@pytest.mark.parametrize("grace_ms", [0, GRACE])
def test_compaction_comes_before_an_overwrite(world, grace_ms):
    """The overwrite gives up; repeated, it replaces merged files and those that stay for readers."""
    sink_id, cause = batch_write(SaveMode.OVERWRITE, world.uid, "", world.ids)

    def batches():
        compact(world, grace_ms)
        yield records("new", bucket="x")

    with pytest.raises(ConcurrentDriverError):
        world.driver(sink_id).run(cause, world.job(batches()))
    assert rows_once(world) == ["0", "1", "2", "3"]
    overwrite(world, "new")
    assert (world.rows(), rows_once(world)) == (["new"], ["new"])
    assert outstanding(world.store()) == []


def test_a_stream_goes_on(world, monkeypatch):
    """Its epochs of meanwhile are neither merged nor disturbed; the next call takes them."""
    meanwhile(monkeypatch, lambda: stream(world, 4))
    compact(world, 0)
    assert (len(world.visible()), world.rows()) == (2, ["0", "1", "2", "3", "4"])
    stream(world, 5)
    compact(world, 0)
    assert (len(world.visible()), world.rows()) == (1, ["0", "1", "2", "3", "4", "5"])


def test_another_call_at_the_same_time_gives_up(world, monkeypatch):
    """Two compactions never merge the same files."""
    meanwhile(monkeypatch, lambda: compact(world, 0))
    with pytest.raises(ConcurrentDriverError):
        compact(world, 0)
    assert world.rows() == ["0", "1", "2", "3"]


def test_many_compactions_leave_a_short_ledger(world, monkeypatch):
    """Copies of records are folded away, but for the last ones."""
    monkeypatch.setattr(folding, "_FOLD_EVERY", 5)
    for number in range(4, 25):
        stream(world, number)
        compact(world, 10 * GRACE)
    copies = [path for path in world.files.files if path.startswith("_filesink/compaction/")]
    assert len(copies) < 25
    assert rows_once(world) == sorted(str(number) for number in range(25))


def test_the_public_names(tmp_path):
    """plan, compact and files by their paths; a grace is a duration."""
    world = World(open_store=StoreAddress(base_path=str(tmp_path)))
    for number in range(3):
        stream(world, number)
    text = Encoder.simple_string_encoder()
    compaction.compact(tmp_path, text, reader_grace="1 h")
    assert len(list(tmp_path.rglob("part-*"))) == 4
    (path,) = compaction.files(tmp_path)
    assert sorted(Path(path).read_text().split()) == ["0", "1", "2"]
    planned = compaction.plan(tmp_path)
    assert (planned.files, len(planned.expired), len(planned.waiting)) == (0, 0, 3)
    with pytest.raises(ConfigError, match="reader_grace"):
        compaction.compact(tmp_path, text, reader_grace="soon")


def test_the_wrong_format_changes_nothing(tmp_path):
    """Lines are no Parquet: the error says so, and the files are what they were."""
    world = World(open_store=StoreAddress(base_path=str(tmp_path)))
    for number in range(3):
        stream(world, number)
    before = sorted(tmp_path.rglob("part-*"))
    with pytest.raises(CompactionError, match="the format that it was written with"):
        compaction.compact(tmp_path, ParquetWriterFactory())
    assert sorted(tmp_path.rglob("part-*")) == before


def test_a_merge_that_fails_leaves_nothing_behind(world, monkeypatch):
    """What other merges of the same call have finished goes, however often it is called; then all is well."""
    for number in range(4, 6):
        world.driver().run(micro_batch(number), world.job(records(str(number), bucket="y")))
    merge = swap.merge

    def fails(store, form, *, group, output):
        rows = merge(store, form, group=group, output=output)
        if group.bucket == "y":
            assert world.hidden() != []
            raise CompactionError("damaged", code="SIZE")
        return rows

    with monkeypatch.context() as patched:
        patched.setattr(swap, "merge", fails)
        for _ in range(3):
            with pytest.raises(CompactionError, match="damaged"):
                compact(world, 0)
            assert world.hidden() == []
        away = Fault(moment=Moment.BEFORE, error=StorageError("the store is away", code="IO"))
        world.fault = lambda operation, _path: away if operation == "discard" else None
        with pytest.raises(CompactionError, match="damaged"):  # which is why, whatever comes then
            compact(world, 0)
        world.fault = lambda _operation, _path: None
    compact(world, 0)
    assert (len(world.visible()), world.rows()) == (2, [str(number) for number in range(6)])
    assert world.hidden() == []


def crash_in(monkeypatch, owner, name, work):
    """The process dies when it comes to a step."""

    def crash(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(owner, name, crash)
        with pytest.raises(KeyboardInterrupt):
            work()


@pytest.mark.parametrize("grace_ms", [0, GRACE])
def test_who_asks_sees_each_row_once_while_inputs_are_removed(world, grace_ms, monkeypatch):
    """Merged file and inputs stand side by side when the call dies, with and without a grace."""
    if grace_ms:
        compact(world, grace_ms)
        world.clock.now += grace_ms
    crash_in(monkeypatch, FileCommitter, "_remove", lambda: compact(world, grace_ms))
    assert len(world.visible()) == 5
    assert rows_once(world) == ["0", "1", "2", "3"]
    world.maintenance().recover(Lost.RAISE, None)
    assert (len(world.visible()), world.rows()) == (1, ["0", "1", "2", "3"])


def lose_merged(world, *, one_of=""):
    """Take away hidden merged files, all or one that has a row."""
    for path in world.hidden():
        if one_of.encode() in world.files.files[path].content:
            del world.files.files[path]


def test_a_merged_file_that_is_lost_before_the_decision(world, monkeypatch):
    """It is looked at once more: nothing is decided, and the next call merges the same inputs."""
    meanwhile(monkeypatch, lambda: lose_merged(world))
    with pytest.raises(StagedDataLost):
        compact(world, 0)
    assert (len(world.visible()), world.rows()) == (4, ["0", "1", "2", "3"])
    assert Ledger(world.store(), EXCLUSIVE).head() is None
    compact(world, 0)
    assert (len(world.visible()), world.rows()) == (1, ["0", "1", "2", "3"])


@pytest.mark.parametrize("grace_ms", [0, GRACE])
def test_inputs_of_a_merged_file_that_is_lost_stay(world, grace_ms, monkeypatch):
    """Accepting the loss loses nothing: what was not merged after all is merged by the next call."""
    crash_in(monkeypatch, FileCommitter, "commit", lambda: compact(world, grace_ms))
    lose_merged(world)
    report = world.maintenance().recover(Lost.ACCEPT, None)
    assert (report.lost_rows, world.rows(), rows_once(world)) == (0, ["0", "1", "2", "3"], world.rows())
    assert live(world) == sorted(world.visible())
    compact(world, 0)
    assert live(world) == sorted(world.visible())
    assert (len(world.visible()), world.rows()) == (1, ["0", "1", "2", "3"])


@pytest.mark.parametrize(("removed", "lost_rows"), [(0, 0), (1, 4)])
def test_a_lost_merged_file_is_a_loss_of_rows_if_an_input_is_gone(removed, lost_rows, monkeypatch):
    """While all inputs are there nothing is lost; if one of them is gone, all of its rows are counted."""
    world = World(plan=plan_of(BulkFormat(ParquetWriterFactory())))
    for number in range(4):
        stream(world, number)
    inputs = sorted(world.visible())
    crash_in(monkeypatch, FileCommitter, "_remove", lambda: compact(world, 0))
    for path in set(world.visible()) - set(inputs[removed:]):
        del world.files.files[path]
    assert world.maintenance().recover(Lost.ACCEPT, None).lost_rows == lost_rows


def test_a_compaction_that_is_taken_back_makes_room_for_the_next_one(world, monkeypatch):
    """The merged file is lost just before the end; what is merged then is what readers are given."""
    inputs = set(world.visible())
    crash_in(monkeypatch, Folding, "sweep", lambda: compact(world))
    for path in set(world.visible()) - inputs:
        del world.files.files[path]
    assert world.maintenance().recover(Lost.REWRITE, None).retracted == (0,)
    compact(world)
    assert (len(world.visible()), rows_once(world)) == (5, ["0", "1", "2", "3"])


def test_of_two_merged_files_one_is_lost(world, monkeypatch):
    """The inputs of the other one are removed all the same, so each row is there once."""
    for number in range(4, 6):
        world.driver().run(micro_batch(number), world.job(records(str(number), bucket="y")))
    crash_in(monkeypatch, FileCommitter, "commit", lambda: compact(world, 0))
    lose_merged(world, one_of="5")
    report = world.maintenance().recover(Lost.ACCEPT, None)
    assert (report.lost_rows, world.rows()) == (0, [str(number) for number in range(6)])
    assert sorted(path[0] for path in world.visible()) == ["x", "y", "y"]
    assert rows_once(world) == world.rows()


def test_an_overwrite_that_has_lost_files_keeps_the_old_ones(world, monkeypatch):
    """Old rows do not go for new ones that are gone; the write that is called again replaces them all."""
    write = lambda: overwrite(world, "new", "newer")  # noqa: E731
    crash_in(monkeypatch, FileCommitter, "commit", write)
    lose_merged(world)
    report = world.maintenance().recover(Lost.ACCEPT, None)
    assert (report.lost_rows, world.rows()) == (2, ["0", "1", "2", "3"])
    write()
    assert world.rows() == ["new", "newer"]
