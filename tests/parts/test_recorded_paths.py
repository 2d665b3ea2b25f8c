"""Records that somebody has made by hand, checksums right: nothing is done for them but what a sink may do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from filesink.commit.external_epochs import CollectedEpochs
from filesink.commit.replay import EpochOptions
from filesink.commit.task import TaskResult, WriteTask
from filesink.commit.task_results import gather
from filesink.errors import ConfigError, SecurityError, StateCorruptError
from filesink.file_sink.tiers import check
from filesink.ledger.completion import Completion
from filesink.ledger.identity import EXCLUSIVE, check_uid
from filesink.ledger.record import BatchWrite, OfflineCompaction, Section, TakenBack, Upkeep
from filesink.metastore.announcements import Announcement, AnnouncementCodec
from filesink.naming import HiddenName, join, sink_tag
from filesink.operations.maintenance import Lost
from filesink.parts.committables import (
    Committable,
    CommittableCodec,
    DiscardFile,
    HeldFile,
    HeldFileCodec,
    PendingFile,
    ReplacedFile,
    SupersededFile,
    UndoneFile,
)
from filesink.ports import Losers, Ports, SerialRunner
from filesink.save_mode import SaveMode
from filesink.storage.staged import PendingUpload, UploadedPart
from tests.fakes import SCHEMA, World, held, keep_open, micro_batch, plan_of, records, staged

ATTEMPT = "00000000-0000-4000-8000-000000000001"


def hidden(*, sink_id: str = "uid-u", slot: int = 1, bucket: str = "", target: str = "part-0") -> str:
    """The path of a hidden file."""
    return join(bucket, str(HiddenName(target=target, tag=sink_tag(sink_id), slot=slot, attempt=ATTEMPT)))


def part(*, sink_id: str = "uid-u", slot: int = 1, bucket: str = "", prefix: str = "part") -> str:
    """The path of a finished file."""
    name = f"{prefix}-{sink_tag(sink_id)}-0000-8{slot:03x}-8000-000000000001-0.txt"
    return join(bucket, name)


def pending(target: str, path: str, *, bucket: str = "") -> PendingFile:
    """A file that becomes ``target``."""
    return PendingFile(bucket=bucket, target=target, staged=staged(path), rows=1, size=1)


def upload(target: str) -> PendingUpload:
    """An upload of one part."""
    one = UploadedPart(number=1, etag="e", size=1)
    return PendingUpload(target=target, upload_id="i", parts=(one,), size=1, token="t")


def superseded(path: str, by: str) -> SupersededFile:
    """A merged file."""
    return SupersededFile(path=path, size=1, version="1", by=by, until_ms=1)


def replaced(path: str) -> ReplacedFile:
    """A file that an overwrite has found."""
    return ReplacedFile(path=path, size=5, version="1")


def forged(world: World, *files: Committable, sink_id: str | None = None, **changes):
    """The record that would follow the newest one, as somebody makes it who knows the format."""
    ledger = world.ledger(sink_id)
    newest = ledger.head().record
    committables = Section.of(CommittableCodec(), files)
    return replace(newest, slot=newest.slot + 1, nonce="forged", committables=committables, **changes)


def put(world: World, record) -> str:
    """Lay ``record`` into its ledger; where it lies."""
    path = f"_filesink/{record.sink_id}/{record.slot:012d}.record"
    world.files.make(path, record.to_bytes())
    return path


@pytest.fixture
def world() -> World:
    """Two sinks with files that wait and files that are visible, beside files of others."""
    world = World(plan=plan_of(policy=keep_open()))
    for sink_id in ("uid-u", "uid-v"):
        world.driver(sink_id).run(micro_batch(0, query_id=sink_id), world.job(records(sink_id, bucket="b")))
    world.files.make("b/data.csv", b"12345")
    world.files.make("_delta_log/0.json", b"12345")
    world.files.make(".hidden/data.csv", b"12345")
    return world


def foreign(world: World) -> list[str]:
    """Paths of files that are none of the first sink's."""
    tag = sink_tag("uid-u")
    return sorted(path for path in world.files.files if f".{tag}." not in path)


def test_a_record_made_by_hand_discards_nothing_of_others(world):
    """Not one file that the sink has not written itself is removed, ledgers included."""
    before = foreign(world)
    for path in before:
        where = put(world, forged(world, DiscardFile(path=path), states={}))
        for call in (world.maintenance().recover, lambda *_: world.driver().recover()):
            with pytest.raises(SecurityError) as refused:
                call(Lost.RAISE, None)
            assert where in refused.value.message
            assert path in refused.value.message
        assert path in world.files.files
        del world.files.files[where]
    assert foreign(world) == before


def test_a_stream_replaces_nothing(world):
    """No file that readers see goes because the record of a micro-batch says so."""
    put(world, forged(world, replaced("b/data.csv")))
    with pytest.raises(SecurityError):
        world.driver().recover()
    assert "b/data.csv" in world.files.files


def test_a_write_goes_on_only_from_a_record_that_is_a_sinks(world):
    """A complete record made by hand is no state to start from; nothing is written into other places."""
    segment = held(hidden(bucket="_filesink/uid-v"), bucket="_filesink/uid-v")
    record = forged(world, states={0: Section.of(HeldFileCodec(), [segment])})
    world.files.make(put(world, record).replace(".record", ".complete"), b"")
    before = sorted(world.files.files)
    with pytest.raises(SecurityError):
        world.driver().run(micro_batch(1, query_id="uid-u"), world.job(records("x")))
    assert sorted(world.files.files) == before


def test_what_could_not_be_read_again_is_not_decided(world):
    """A record that the next driver would refuse is refused by the one that makes it."""
    record = forged(world, DiscardFile(path="b/data.csv"))
    with pytest.raises(SecurityError):
        world.ledger().decide(record)
    assert world.ledger().head().record.slot == record.slot - 1


# ruff: noqa: E501 - tables are read line by line
ALLOWED: list[tuple[str, Committable]] = [
    ("a file", pending(part(), hidden())),
    ("in a bucket", pending(part(bucket="a/b=c"), hidden(bucket="a/b=c"), bucket="a/b=c")),
    ("of dead letters", pending(part(bucket="_dead_letters/a"), hidden(bucket="_dead_letters/a"), bucket="_dead_letters/a")),
    ("held by an earlier epoch", pending(part(), hidden(slot=0))),
    ("whatever its prefix", pending(part(prefix="a-0123abcd"), hidden(target=".x.upload.y"))),
    ("without an ending", pending(part()[:-4], hidden())),
    ("an upload", replace(pending(part(), hidden()), staged=upload(part()))),
    ("of a bucket with a backslash", pending(part(bucket="a\\b"), hidden(bucket="a\\b"), bucket="a\\b")),
    ("to discard", DiscardFile(path=hidden(slot=0, bucket="a"))),
    ("an upload to discard", DiscardFile(path=upload(hidden()).path)),
    ("a segment", held(hidden(bucket="a"), bucket="a")),
]  # fmt: skip
REFUSED: list[tuple[str, Committable]] = [
    ("another's name", pending(part(sink_id="uid-v"), hidden())),
    ("no part file", pending("data.txt", hidden())),
    ("a later name", pending(part(slot=3), hidden())),
    ("a hidden target", pending(f".{part()}", hidden())),
    ("a skipped target", pending(f"_{part()}", hidden())),
    ("another's bytes", pending(part(), hidden(sink_id="uid-v"))),
    ("visible bytes", pending(part(), part(slot=0))),
    ("bytes of a later epoch", pending(part(), hidden(slot=3))),
    ("bytes of elsewhere", pending(part(), hidden(bucket="a"))),
    ("another bucket", pending(part(), hidden(), bucket="a")),
    ("a ledger", pending(part(bucket="_filesink/x"), hidden(bucket="_filesink/x"), bucket="_filesink/x")),
    ("a hidden bucket", pending(part(bucket="a/.b"), hidden(bucket="a/.b"), bucket="a/.b")),
    ("letters inside", pending(part(bucket="a/_dead_letters"), hidden(bucket="a/_dead_letters"), bucket="a/_dead_letters")),
    ("a ledger of letters", pending(part(bucket="_dead_letters/_filesink"), hidden(bucket="_dead_letters/_filesink"), bucket="_dead_letters/_filesink")),
    ("no UTF-8", pending(part(bucket="a\udc80"), hidden(bucket="a\udc80"), bucket="a\udc80")),
    ("an upload to elsewhere", replace(pending(part(), hidden()), staged=upload(part(bucket="a")))),
    ("undone by a batch", UndoneFile(target=part(), staged=staged(hidden()))),
    ("a visible file to discard", DiscardFile(path=part())),
    ("another's to discard", DiscardFile(path=hidden(sink_id="uid-v"))),
    ("another's upload to discard", DiscardFile(path=upload(part(sink_id="uid-v")).path)),
    ("one of the ledger to discard", DiscardFile(path=hidden(bucket="_filesink/uid-u"))),
    ("a replaced file", replaced("data.csv")),
    ("a superseded file", superseded(part(slot=0), part())),
    ("a segment of another", held(hidden(sink_id="uid-v"))),
    ("a segment of another bucket", held(hidden(bucket="a"))),
    ("a segment of a later epoch", held(hidden(slot=3))),
    ("a segment that is visible", held(part())),
    ("an ending that leads away", replace(held(hidden()), suffix="/../x")),
    ("a part that is no name", replace(held(hidden()), group="../x")),
    ("a header beyond the end", replace(held(hidden()), header_size=2)),
    ("a segment that is an upload", replace(held(hidden()), staged=upload(hidden()))),
]  # fmt: skip


def checked(world: World, file: Committable, **changes) -> None:
    """Check the record of a micro-batch, or of another epoch, that names ``file``."""
    if isinstance(file, HeldFile):
        record = forged(world, **changes, states={0: Section.of(HeldFileCodec(), [file])})
    else:
        record = forged(world, file, **changes)
    check(record, "here")


@pytest.mark.parametrize("file", [pytest.param(file, id=what) for what, file in ALLOWED])
def test_what_a_sink_writes_may_be_named(world, file):
    """The record of a micro-batch names such files."""
    checked(world, file)


@pytest.mark.parametrize("file", [pytest.param(file, id=what) for what, file in REFUSED])
def test_nothing_else_may_be_named(world, file):
    """The error says in which record, and what."""
    with pytest.raises(SecurityError, match="here") as refused:
        checked(world, file)
    assert refused.value.code == "FOREIGN_FILE"
    assert refused.value.message.isascii()


@pytest.mark.parametrize("path", ["data.csv", "a/b.parquet", "x\udcff", "a\udcff/b", part(sink_id="uid-v")])
def test_an_overwrite_replaces_what_readers_see(world, path):
    """Whoever wrote it, be its name UTF-8 or not."""
    checked(world, replaced(path), cause=BatchWrite(mode=SaveMode.OVERWRITE))


@pytest.mark.parametrize(
    "path",
    [".x", "_SUCCESS", "_filesink/uid-v/000000000000.record", ".x/a", "a/_b/c", "_dead_letters/a", hidden()],
)
def test_an_overwrite_leaves_what_readers_skip(world, path):
    """Neither ledgers nor dead letters nor the files of other programs are replaced."""
    with pytest.raises(SecurityError):
        checked(world, replaced(path), cause=BatchWrite(mode=SaveMode.OVERWRITE))


def test_offline_compaction_merges_part_files(world):
    """Of any sink, and nothing else."""
    mine, others = part(sink_id=EXCLUSIVE), part(sink_id="uid-v", slot=900)
    checked(world, superseded(others, mine), cause=OfflineCompaction())
    for path, by in [("data.csv", mine), (others, "data.csv"), (f".{others}", mine), (f"_x/{others}", mine)]:
        with pytest.raises(SecurityError):
            checked(world, superseded(path, by), cause=OfflineCompaction())


@pytest.mark.parametrize("sink_id", ["uid-_collected", "appends-_collected"])
def test_a_sink_whose_client_acknowledges_removes_part_files(world, sink_id):
    """Of its own directory; no other epoch that appends does, and no user can give a sink this uid."""
    taken, causes = replaced(part()), (micro_batch(1), BatchWrite())
    for cause in causes:
        check(replace(forged(world, taken), sink_id=sink_id, cause=cause, states={}), "here")
        for other in (replaced("data.csv"), replaced(part(bucket="b")), superseded(part(slot=0), part())):
            with pytest.raises(SecurityError):
                check(replace(forged(world, other), sink_id=sink_id, cause=cause, states={}), "here")
        with pytest.raises(SecurityError):
            checked(world, taken, cause=cause)
    with pytest.raises(ConfigError):
        check_uid("_collected")


def test_files_are_taken_back_by_an_epoch_after_theirs(world):
    """A chain that leads forwards again would lead round in circles."""
    undone = UndoneFile(target=part(), staged=staged(hidden()))
    slot = forged(world).slot
    for allowed in (slot, slot - 1):
        checked(world, undone, cause=TakenBack(slot=allowed))
    for refused in (slot + 1, slot + 7):
        with pytest.raises(StateCorruptError):
            checked(world, undone, cause=TakenBack(slot=refused))


def test_a_copy_names_files_of_the_chain_it_is_a_copy_of(world):
    """What was overwritten under a txn_id bears the tag and the slot of another chain."""
    cause = BatchWrite(txn_id="t", mode=SaveMode.OVERWRITE)
    copy = replace(forged(world), sink_id=f"txn-{'0' * 32}", cause=cause, states={})
    theirs = pending(part(sink_id=EXCLUSIVE, slot=9), hidden(sink_id=EXCLUSIVE, slot=9))
    check(replace(copy, committables=Section.of(CommittableCodec(), [theirs])), "here")
    with pytest.raises(SecurityError):
        check(replace(copy, committables=Section.of(CommittableCodec(), [pending(part(), hidden())])), "here")


@pytest.mark.parametrize("name", ["uid-v", "../x", "exclusive", "txn-1", "a/b"])
def test_a_txn_id_is_remembered_where_txn_ids_are(world, name):
    """No other chain gets a record because another record says so."""
    with pytest.raises(SecurityError):
        check(forged(world, cause=BatchWrite(txn_id="t", remembered_in=name)), "here")


@pytest.mark.parametrize("bucket", ["_filesink/uid-v", "a/.b", "_dead_letters", "../x"])
def test_only_what_readers_see_is_announced(world, bucket):
    """A success file is put into the directory that an announcement names, so it is one of data."""
    for section in ("announcement", "waiting"):
        told = Announcement(bucket=bucket, first_seen_ms=1, slot=1)
        with pytest.raises(SecurityError, match="here"):
            check(forged(world, **{section: Section.of(AnnouncementCodec(), [told])}), "here")


def test_a_malformed_record_says_where_and_which(world):
    """Who has to mend it finds it."""
    entries = b'[{"kind":"discard","path":"a"},{"kind":"discard","path":"b/\\u00e9\\n","rows":1}]'
    record = forged(world)
    with pytest.raises(StateCorruptError) as refused:
        check(replace(record, committables=Section(1, entries)), "_filesink/uid-u/1.record")
    assert "_filesink/uid-u/1.record: file entry 1" in refused.value.message
    assert "b/\\xe9\\n" in refused.value.message


def reported(*files: Committable, states: tuple[HeldFile, ...] = ()) -> bytes:
    """The result of a task."""
    return TaskResult(
        subtask=0,
        attempt=0,
        rows=1,
        committables=Section.of(CommittableCodec(), files),
        state=Section.of(HeldFileCodec(), states),
        metrics={},
    ).to_bytes()


@pytest.mark.parametrize(
    "file", [pytest.param(file, id=what) for what, file in REFUSED if "later" not in what]
)
def test_a_task_reports_what_it_can_have_written(world, file):
    """What a worker that was taken over reports is neither merged nor published, nor discarded."""
    result = reported(states=(file,)) if isinstance(file, HeldFile) else reported(file)
    with pytest.raises(SecurityError):
        gather(world.tiers(), {}, [result], Losers.NONE, sink_id="uid-u")


def test_nothing_is_discarded_for_a_task(world):
    """An epoch that is aborted removes nothing that its tasks cannot have written."""
    ports = Ports(clock=world.clock, ids=world.ids, runner=SerialRunner())
    loop = CollectedEpochs(world.tiers(), world.ledger(), ports=ports, options=EpochOptions())
    with pytest.raises(SecurityError):
        loop.abort([reported(pending(part(), "b/data.csv")), None], files_of="uid-u")
    assert "b/data.csv" in world.files.files


def test_an_upkeep_record_that_carries_a_file_to_replace_is_read(world):
    """What could not be removed may be tried again by any epoch that is not a stream's own."""
    checked(world, replaced("b/data.csv"), cause=Upkeep())


def test_what_could_not_be_removed_is_checked_as_well(world):
    """The mark of an epoch names files that the next one removes: by hand, it could name any."""
    ledger = world.ledger(EXCLUSIVE)
    write = BatchWrite(mode=SaveMode.OVERWRITE, writer="batch-1")
    world.driver(EXCLUSIVE).run(write, world.job(records("1", bucket="c")))
    record = ledger.head().record
    mark = f"_filesink/{EXCLUSIVE}/{record.slot:012d}.complete"
    for file in (DiscardFile(path=hidden(sink_id="uid-v")), replaced("_delta_log/0.json")):
        left = Section.of(CommittableCodec(), [file])
        world.files.files[mark].content = Completion(nonce=record.nonce, left=left).to_bytes()
        with pytest.raises(SecurityError, match=mark):
            ledger.head()


def test_a_batch_write_reports_files_of_its_own_tag(world):
    """Not of that of its chain; others are refused, in a commit and in an abort."""
    world = World()
    cause = BatchWrite(writer="batch-1")
    ports = Ports(clock=world.clock, ids=world.ids, runner=SerialRunner())
    loop = CollectedEpochs(world.tiers(), world.ledger("appends"), ports=ports, options=EpochOptions())
    task = WriteTask(sink=world.tiers(), sink_id="batch-1", slot=0, driver_ms=0, time_zone="UTC")
    results = [task.run_with(0, 0, [records("1")], clock=world.clock, ids=world.ids)]
    with pytest.raises(SecurityError):
        loop.abort([*results, None], files_of="appends")
    with pytest.raises(SecurityError):
        loop.commit(replace(cause, writer="batch-2"), results, slot=0, schema=SCHEMA)
    loop.commit(cause, results, slot=0, schema=SCHEMA)
    assert world.rows() == ["1"]
