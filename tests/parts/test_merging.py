"""Closing parts on the driver and putting them together: which are due, how, what is removed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from filesink.api import OF_STAGES, EpochContext, Input, Prepared
from filesink.errors import CompactionError, StagedDataLost, StateError, StorageError
from filesink.naming import OutputFileConfig, parse_hidden
from filesink.parts.committables import DiscardFile, HeldFile, PendingFile
from filesink.parts.file_format import RowFormat
from filesink.parts.rolling import RollingPolicy
from filesink.parts.stages import merging
from filesink.parts.stages import open_parts as closing
from filesink.parts.stages.closed_parts import MergeParts, Waiting
from filesink.parts.stages.merger import Combined, Merger, MergeRequest, SinkFiles
from filesink.parts.stages.open_parts import CloseParts, part_info
from filesink.ports import SerialRunner
from filesink.storage.open import open_store
from filesink.storage.staged import HiddenFile
from formats.encoders import Encoder
from tests.fakes import CountingIds, World, held, keep_open


class NotedRunner(SerialRunner):
    """Counts the jobs it is given."""

    jobs = 0

    def run(self, function, items):
        self.jobs += 1
        return super().run(function, items)


def segment(world, content, *, group="g", bucket="", created_ms=0):
    """A held file that is there."""
    output = world.store().create(f"{bucket}/.{world.ids.uuid()}".lstrip("/"), target=None)
    output.write(content)
    file = output.close()
    made = held(file.path, group=group, bucket=bucket, size=len(content), created_ms=created_ms)
    return HeldFile(**{name: getattr(made, name) for name in HeldFile.__slots__} | {"staged": file})


class Stages:
    """Both stages of a sink without compaction, one after the other."""

    def __init__(self, world, policy, waiting):
        files = SinkFiles(
            open_store=world.store,
            format=RowFormat(Encoder.simple_string_encoder()),
            names=OutputFileConfig(),
        )
        self.stages = (CloseParts(policy), MergeParts(files, waiting))

    def prepare(self, epoch, prepared):
        for stage in self.stages:
            prepared = stage.prepare(epoch, prepared)
        return prepared

    def is_due(self, epoch, prepared):
        return any(stage.is_due(epoch, prepared) for stage in self.stages)


def stage_of(world, policy=None, waiting=Waiting.REFUSED):
    """What a sink without compaction does with parts."""
    return Stages(world, policy or keep_open(), waiting)


def epoch_of(now_ms=0, source=Input.GOES_ON, runner=None):
    """An epoch in slot 5."""
    return EpochContext(
        sink_id="uid-u",
        slot=5,
        now_ms=now_ms,
        input=source,
        ids=CountingIds(),
        runner=runner or SerialRunner(),
    )


def request_of(parts):
    """To be made in slot 5."""
    return MergeRequest(parts=tuple(parts), target="part-x", prefix="part", tag="0" * 8, slot=5)


@pytest.fixture
def world():
    """An empty base."""
    return World()


def test_nothing_due_changes_nothing(world):
    """Young parts stay as they are."""
    prepared = Prepared([DiscardFile(path="x")], {3: [segment(world, b"a")]})
    assert stage_of(world).prepare(epoch_of(999), prepared) is prepared
    assert not stage_of(world).is_due(epoch_of(999), prepared)


def test_a_closed_part_is_put_together(world):
    """Segments become one file in their order; the inputs are named for removal and still there."""
    segments = [segment(world, b"a\n", bucket="b"), segment(world, b"b\n", bucket="b")]
    other = DiscardFile(path="x")
    result = stage_of(world).prepare(epoch_of(), Prepared([*segments, other], {}))
    first, pending, *discards = result.committables
    assert first == other
    assert world.files.files[pending.staged.path].content == b"a\nb\n"
    assert (pending.rows, pending.size, pending.bucket) == (2, 4, "b")
    assert pending.target.startswith("b/part-")
    assert pending.target.endswith("-0.txt")
    assert {file.path for file in discards} == {file.staged.path for file in segments}
    assert all(file.staged.path in world.files.files for file in segments)
    name = parse_hidden(pending.staged.path.removeprefix("b/"))
    assert (name.slot, name.tag) == (5, pending.target.removeprefix("b/part-")[:8])


def test_a_lone_segment_is_promoted_without_a_copy(world):
    """One segment is published as it lies, and not named for removal."""
    lone = segment(world, b"a\n")
    before = dict(world.files.files)
    (pending,) = stage_of(world).prepare(epoch_of(), Prepared([lone], {})).committables
    assert pending.staged == lone.staged
    assert world.files.files == before


@pytest.mark.parametrize(("now", "due"), [(999, False), (1000, True)])
def test_age_by_the_driver_s_clock(world, now, due):
    """Lanes without a task are closed once they are old enough, and others stay in the state."""
    states = {0: [segment(world, b"a", group="old")], 7: [segment(world, b"b", group="new", created_ms=500)]}
    stage = stage_of(world)
    assert stage.is_due(epoch_of(now), Prepared((), states)) is due
    result = stage.prepare(epoch_of(now), Prepared((), states))
    assert len(result.committables) == due
    assert result.states[7] == states[7]
    assert bool(result.states[0]) is not due


def test_the_end_of_input_closes_all(world):
    """Nothing stays open, however young."""
    states = {lane: [segment(world, b"a", group=str(lane))] for lane in range(3)}
    result = stage_of(world).prepare(epoch_of(source=Input.ENDED), Prepared((), states))
    assert len(result.committables) == 3
    assert not any(result.states.values())


def test_a_policy_of_closed_epochs_closes_what_another_left_open(world):
    """After a change to a checkpoint policy, lanes without a task are closed as well."""
    stage = stage_of(world, RollingPolicy.on_checkpoint_rolling_policy())
    prepared = Prepared((), {4: [segment(world, b"a")]})
    assert stage.is_due(epoch_of(), prepared)
    assert len(stage.prepare(epoch_of(), prepared).committables) == 1


def test_ten_thousand_open_parts_at_most():
    """Beyond the bound the oldest parts are closed first."""
    world = World()
    files = {}
    for number in range(closing.MAX_OPEN_PARTS + 3):
        created = (number * 7919) % 100_003
        files[created] = segment(world, b"a", group=str(number), created_ms=created)
    states = {lane: list(files.values())[lane::8] for lane in range(8)}
    result = stage_of(world, keep_open(rollover_interval=10**9, inactivity_interval=10**9)).prepare(
        epoch_of(), Prepared((), states)
    )
    oldest = sorted(files)[:3]
    assert {file.staged for file in result.committables} == {files[created].staged for created in oldest}
    assert sum(map(len, result.states.values())) == closing.MAX_OPEN_PARTS == 10_000


def test_groups_of_one_bucket_are_not_mixed(world):
    """Two lanes of one bucket become two files, each with its own segments."""
    mixed = [
        segment(world, b"1", group="g"),
        segment(world, b"2", group="h"),
        segment(world, b"3", group="g"),
    ]
    result = stage_of(world).prepare(epoch_of(), Prepared(mixed, {}))
    contents = [
        world.files.files[file.staged.path].content
        for file in result.committables
        if isinstance(file, PendingFile)
    ]
    assert contents == [b"13", b"2"]


def test_much_data_is_merged_by_a_job(world, monkeypatch):
    """More than 256 MiB of copies go to the runner; promotions cost nothing and stay on the driver."""
    assert merging._ON_DRIVER == 256 << 20
    monkeypatch.setattr(merging, "_ON_DRIVER", 3)
    runner = NotedRunner()
    stage_of(world).prepare(epoch_of(runner=runner), Prepared([segment(world, b"12345")], {}))
    assert runner.jobs == 0
    pair = [segment(world, b"12"), segment(world, b"34")]
    stage_of(world).prepare(epoch_of(runner=runner), Prepared(pair, {}))
    assert runner.jobs == 1


def test_a_segment_that_is_gone_stops_the_epoch(world):
    """Nothing is decided when bytes of an open part are missing."""
    pair = [segment(world, b"12"), segment(world, b"34")]
    del world.files.files[pair[1].staged.path]
    with pytest.raises(StagedDataLost):
        stage_of(world).prepare(epoch_of(), Prepared(pair, {}))


def test_small_files_that_wait_for_compaction_are_not_lost(world):
    """A sink without compaction does not pass over what one with compaction has kept."""
    waiting = Prepared((), {OF_STAGES: [segment(world, b"a")]})
    for step in (stage_of(world).prepare, stage_of(world).is_due):
        with pytest.raises(StateError, match=r"without it") as raised:
            step(epoch_of(), waiting)
        assert raised.value.code == "COMPACTION_OFF"


def test_small_files_that_wait_are_published_when_compaction_is_turned_off(world):
    """Each as it is; a lone file without a copy, and nothing waits any more."""
    lone, pair = segment(world, b"a", group="1"), [segment(world, b"b", group="2") for _ in range(2)]
    stage = stage_of(world, waiting=Waiting.PUBLISHED)
    prepared = Prepared((), {OF_STAGES: [lone, *pair]})
    assert stage.is_due(epoch_of(), prepared)
    result = stage.prepare(epoch_of(), prepared)
    published = [file for file in result.committables if isinstance(file, PendingFile)]
    assert [file.staged == lone.staged for file in published] == [True, False]
    assert world.files.files[published[1].staged.path].content == b"bb"
    assert not result.states
    assert not stage.is_due(epoch_of(), result)


def test_records_are_counted_before_anything_is_decided(world):
    """A combine that loses a record fails the epoch; its file is removed and the inputs stay."""

    def lossy(store, request, path):
        output = store.create(path, target=request.target)
        output.write(b"x")
        return Combined(staged=output.close(), rows=1)

    parts = tuple((segment(world, b"a", group=group),) for group in "gh")
    before = dict(world.files.files)
    with pytest.raises(CompactionError, match="1 records of 2") as raised:
        Merger(world.store, lossy)(request_of(parts))
    assert raised.value.code == "ROWS"
    assert world.files.files == before


def test_what_a_policy_sees_of_a_part():
    """Sizes and rows add up; a part is as old as its first segment and as idle as its last."""
    info = part_info([held("a", size=3, created_ms=5), held("b", size=4, created_ms=2)])
    assert (info.size, info.rows, info.creation_time, info.last_update_time) == (7, 2, 2, 5)


def test_on_a_disk(tmp_path):
    """The same on a local disk: one new file, inputs untouched."""
    world = World(open_store=lambda: open_store(tmp_path, {}))
    pair = [segment(world, b"a\n"), segment(world, b"b\n")]
    pending = stage_of(world).prepare(epoch_of(), Prepared(pair, {})).committables[0]
    assert (tmp_path / pending.staged.path).read_bytes() == b"a\nb\n"
    assert isinstance(pending.staged, HiddenFile)
    assert [(tmp_path / file.staged.path).read_bytes() for file in pair] == [b"a\n", b"b\n"]


def test_two_attempts_at_one_merge_do_not_stand_in_each_others_way(world):
    """A merge that runs as a job may be retried, or have a twin: each attempt makes its own file.

    Also after one that has failed: a file server may remove what that has made when another has succeeded.
    """
    request = request_of([(segment(world, b"one"), segment(world, b"two"))])
    tried = []

    def fails(_store, _request, path):
        tried.append(path)
        raise StorageError("the server does not answer", code="UNAVAILABLE")

    with pytest.raises(StorageError):
        Merger(world.store, ids=world.ids, combine=fails)(replace(request, parts=request.parts * 2))
    first, second = (Merger(world.store, ids=world.ids)(request) for _ in range(2))
    assert len({*tried, first.staged.path, second.staged.path}) == 3
    assert world.store().read(first.staged.path) == world.store().read(second.staged.path) == b"onetwo"
