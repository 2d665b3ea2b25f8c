"""When partitions are announced, and that nothing is announced before its files or never."""

from __future__ import annotations

import pickle
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from compaction import FileCompactor, FileCompactStrategy
from filesink.buckets.assigner import BucketAssigner
from filesink.commit.epoch import EpochLoop
from filesink.errors import (
    CommitFailedError,
    ConfigError,
    FilesinkError,
    InternalError,
    MetastoreConflictError,
    MetastoreError,
    SchemaError,
    SecurityError,
    StateCorruptError,
    StorageError,
)
from filesink.ledger.record import EMPTY
from filesink.metastore.announcements import Announcement, AnnouncementCodec, gathered
from filesink.metastore.partition_commit import PartitionCommit
from filesink.metastore.partition_committer import PartitionCommitter
from filesink.metastore.policies import (
    CommittedPartition,
    ListenerPolicy,
    PartitionPolicy,
    SuccessFilePolicy,
)
from filesink.metastore.triggers import PartitionTime, Trigger, TriggerView
from filesink.parts.committables import Watermark
from filesink.parts.file_format import RowFormat
from filesink.parts.stages.closed_parts import Compaction
from filesink.sink import FileSink, FileSinkBuilder
from filesink.storage.faulty import Fault, Moment
from formats.encoders import Encoder
from tests.fakes import SCHEMA, World, keep_open, micro_batch, plan_of, records

GOLDEN = Path(__file__).parents[2] / "golden"
HOUR = 3_600_000
DAY = 24 * HOUR


JSON = RowFormat(Encoder.json_lines())
BASE_PATH = BucketAssigner.base_path_bucket_assigner()


def at(text: str) -> int:
    """Milliseconds of an ISO time in UTC."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


class Told:
    """A listener that keeps what it was told."""

    def __init__(self) -> None:
        self.events: list[CommittedPartition] = []

    def __call__(self, event: CommittedPartition) -> None:
        self.events.append(event)

    def take(self) -> list[str]:
        """The buckets since the last call, in order."""
        buckets = [event.bucket for event in self.events]
        self.events.clear()
        return buckets


@pytest.fixture
def told() -> Told:
    """What the listener has heard."""
    return Told()


def world_of(told: Told, *, plan=None, **options) -> World:
    """A world whose sink announces to ``told``."""
    return World(
        plan=plan or plan_of(), partition_commit=PartitionCommit(policies=[ListenerPolicy(told)], **options)
    )


def write(world: World, driver: EpochLoop, batch_id: int, *buckets: str) -> None:
    """One micro-batch with a record for each bucket."""
    batches = [records(f"{batch_id}-{bucket}", bucket=bucket) for bucket in buckets]
    driver.run(micro_batch(batch_id), world.job(batches))


# --- process time


def test_without_a_delay_partitions_are_announced_with_their_epoch(told: Told) -> None:
    """Each epoch announces the partitions that got files, once, and again when they get more."""
    world = world_of(told)
    driver = world.driver()
    write(world, driver, 0, "p=1", "p=2", "p=2")
    assert told.take() == ["p=1", "p=2"]
    write(world, driver, 1, "p=1", "p=3")
    assert told.take() == ["p=1", "p=3"]


def test_an_event_says_what_is_new(told: Told) -> None:
    """Values, location, files of the epoch, and counts since the last announcement."""
    world = world_of(told)
    write(world, world.driver(), 0, "day=2024-01-01/k=a%2Fb")
    [event] = told.events
    assert event.values == {"day": "2024-01-01", "k": "a/b"}
    assert event.location == "file:/base/day=2024-01-01/k=a%2Fb"
    assert list(event.files) == list(world.visible())
    assert (event.epoch, event.file_count, event.rows) == (0, 1, 1)
    assert event.bytes == len(next(iter(world.visible().values())))
    assert not event.may_be_repeated


def test_a_delay_is_strict(told: Told) -> None:
    """Due strictly after the delay since the first new file, by the driver's clock; upkeep does it."""
    world = world_of(told, delay=1000)
    driver = world.driver()
    write(world, driver, 0, "p=1")
    world.clock.now = 1000
    assert driver.upkeep() is None
    assert told.take() == []
    world.clock.now = 1001
    assert driver.upkeep() is not None
    assert told.take() == ["p=1"]
    assert driver.upkeep() is None


def test_what_waits_survives_a_restart(told: Told) -> None:
    """Waiting partitions are in the ledger; counts go on, first seen stays, the epoch is the last."""
    world = world_of(told, delay=1000)
    write(world, world.driver(), 0, "p=1")
    world.clock.now = 900
    write(world, world.driver(), 1, "p=1", "p=2")
    world.clock.now = 1001
    write(world, world.driver(), 2, "p=3")
    [event] = told.events
    assert (event.bucket, event.epoch, event.files) == ("p=1", 2, ())
    assert (event.file_count, event.rows, event.bytes) == (2, 2, len("0-p=1\n1-p=1\n"))


def test_the_end_announces_everything(told: Told) -> None:
    """A finished stream and a batch write leave nothing waiting."""
    world = world_of(told, delay=DAY)
    driver = world.driver()
    write(world, driver, 0, "p=1", "p=2")
    assert told.take() == []
    driver.finish()
    assert told.take() == ["p=1", "p=2"]
    assert driver.finish() is None


@pytest.mark.parametrize("latest", ["2024-01-01T10:00", "2024-01-05T00:00"], ids=["waits", "announced"])
def test_the_end_leaves_no_watermark(told: Told, latest: str) -> None:
    """Nothing waits for it any more; what is left in a chain keeps its query from changing its uid."""
    world = timed(told)
    driver = world.driver()
    write_times(world, driver, 0, d01=latest)
    assert driver.finish() is not None
    assert world.ledger().head().record.waiting == EMPTY
    assert driver.finish() is None


def test_files_are_announced_while_others_of_their_partition_are_open(told: Told) -> None:
    """By the clock nothing is said of a whole: rows that are held back come with a later announcement."""
    world = world_of(told, plan=plan_of(policy=keep_open(part_size=2)))
    world.driver().run(micro_batch(0), world.job(records("long", bucket="p=1"), records("1", bucket="p=1")))
    assert (told.take(), world.rows()) == (["p=1"], ["long"])


def test_only_visible_files_count(told: Told) -> None:
    """A part that stays open is announced when it is closed."""
    world = world_of(told, plan=plan_of(policy=keep_open()))
    driver = world.driver()
    write(world, driver, 0, "p=1")
    assert told.take() == []
    world.clock.now = 2000
    driver.upkeep()
    assert told.take() == ["p=1"]


# --- partition time


def timed(told: Told, **options) -> World:
    """Announces days when the times in the column ``ts`` have passed them."""
    trigger = PartitionCommit.partition_time(extractor="$day", watermark_column="ts", **options)
    world = world_of(told, trigger=trigger, delay="1 d", plan=timed_plan())
    world.clock.now = at("2024-01-10")
    return world


def timed_plan(policy=None):
    """The plan of a sink that reports the latest time of ``ts``."""
    return replace(plan_of(policy=policy), watermark_column="ts")


def write_times(
    world: World, driver: EpochLoop, batch_id: int, *, session: str = "UTC", **times: str | None
) -> None:
    """One record a bucket (``d01`` is the first of January), each with a time; ``session`` is its zone."""
    batches = [
        pa.RecordBatch.from_pydict(
            {
                "bucket": [f"day=2024-01-{name[1:]}"],
                "value": [name],
                "ts": pa.array([None if text is None else at(text) * 1000], pa.timestamp("us", tz="UTC")),
            }
        )
        for name, text in times.items()
    ]
    driver.run(micro_batch(batch_id), world.job(batches, time_zone=session))


def test_a_watermark_column_without_times_is_refused(told: Told) -> None:
    """Before tasks fail of it."""
    world = world_of(told, plan=replace(timed_plan(), format=JSON))
    with pytest.raises(SchemaError) as caught:
        world.tiers().check_schema(SCHEMA.append(pa.field("ts", pa.int64())))
    assert caught.value.code == "WATERMARK_COLUMN"


def test_a_partition_is_due_when_the_watermark_has_passed_it(told: Told) -> None:
    """Strictly: the end of the day plus the delay is not enough, a millisecond more is."""
    world = timed(told)
    driver = world.driver()
    write_times(world, driver, 0, d01="2024-01-01T10:00", d02="2024-01-02T00:00")
    assert told.take() == []
    write_times(world, driver, 1, d02="2024-01-02T00:00:00.001")
    assert told.take() == ["day=2024-01-01"]


def test_a_late_record_is_announced_again(told: Told) -> None:
    """A partition that was announced and gets a file is announced in that epoch."""
    world = timed(told)
    driver = world.driver()
    write_times(world, driver, 0, d01="2024-01-01T10:00", d05="2024-01-05T00:00")
    assert told.take() == ["day=2024-01-01"]
    write_times(world, driver, 1, d01="2024-01-01T11:00")
    assert told.take() == ["day=2024-01-01"]


def test_lateness_holds_the_watermark_back(told: Told) -> None:
    """Allowed lateness is taken from the latest time."""
    world = timed(told, allowed_lateness="1 h")
    driver = world.driver()
    write_times(world, driver, 0, d01="2024-01-01T10:00", d02="2024-01-02T01:00")
    assert told.take() == []
    write_times(world, driver, 1, d02="2024-01-02T01:00:00.001")
    assert told.take() == ["day=2024-01-01"]


def test_the_watermark_never_goes_back(told: Told) -> None:
    """It is the maximum over all epochs, tasks and restarts."""
    world = timed(told)
    write_times(world, world.driver(), 0, d05="2024-01-05T00:00")
    write_times(world, world.driver(), 1, d03="2024-01-03T10:00")
    assert told.take() == ["day=2024-01-03"]


def test_the_watermark_of_a_task_is_that_of_all_its_batches(told: Told) -> None:
    """Not that of the last one."""
    world = timed(told)
    write_times(world, world.driver(), 0, d01="2024-01-03T00:00", d02="2024-01-01T10:00")
    assert told.take() == ["day=2024-01-01"]


def test_the_zone_of_the_watermark_is_the_newest() -> None:
    """Of a report that is not later, too: the session's zone may have been changed."""
    old, new = Watermark(latest_ms=5, time_zone="UTC"), Watermark(latest_ms=3, time_zone=BERLIN)
    assert gathered([old], [new], slot=1, now_ms=0)[1] == Watermark(latest_ms=5, time_zone=BERLIN)


def test_times_far_ahead_of_the_clock_do_not_count(told: Told) -> None:
    """One broken record must not announce every partition; a day ahead is still believed."""
    world = timed(told)
    driver = world.driver()
    write_times(world, driver, 0, d09="2124-01-01T00:00", d10="2024-01-10T00:00:00")
    assert told.take() == []
    write_times(world, driver, 1, d10="2024-01-11T00:00:00")
    assert told.take() == ["day=2024-01-09"]


def test_null_times_do_not_count(told: Told) -> None:
    """A record without a time moves nothing."""
    world = timed(told)
    driver = world.driver()
    write_times(world, driver, 0, d01=None)
    assert told.take() == []
    driver.finish()
    assert told.take() == ["day=2024-01-01"]


def test_values_show_the_wall_clock_of_a_zone(told: Told) -> None:
    """A day in Shanghai is over eight hours before it is in London."""
    world = timed(told, time_zone="Asia/Shanghai")
    driver = world.driver()
    write_times(world, driver, 0, d01="2024-01-01T10:00", d02="2024-01-01T16:00")
    assert told.take() == []
    write_times(world, driver, 1, d02="2024-01-01T16:00:00.001")
    assert told.take() == ["day=2024-01-01"]


def test_values_show_the_wall_clock_of_the_session(told: Told) -> None:
    """Where the trigger names no zone: a day in New York is over five hours after it is in London."""
    world = timed(told)
    driver = world.driver()
    write_times(world, driver, 0, session=NEW_YORK, d01="2024-01-01T10:00", d02="2024-01-02T05:00")
    assert told.take() == []
    write_times(world, driver, 1, session=NEW_YORK, d02="2024-01-02T05:00:00.001")
    assert told.take() == ["day=2024-01-01"]


BERLIN = "Europe/Berlin"
NEW_YORK = "America/New_York"


@pytest.mark.parametrize(
    ("extractor", "bucket", "delay", "due"),
    [
        ("$day", "day=2024-10-27", DAY, "2024-10-27T23:00"),  # 25 hours
        ("$day", "day=2024-03-31", DAY, "2024-03-31T22:00"),  # 23 hours
        ("$day $h:00", "day=2024-10-27/h=2", HOUR, "2024-10-27T02:00"),  # it came twice
        ("$day $h:00", "day=2024-10-27/h=2", HOUR // 2, "2024-10-27T01:30"),
        ("$day $h:00", "day=2024-10-27/h=1", HOUR, "2024-10-27T01:00"),  # over at 2, which came twice
        ("$day $h:00", "day=2024-03-31/h=1", HOUR, "2024-03-31T01:00"),  # 2 did not come
    ],
)
def test_a_partition_is_over_when_its_wall_clock_says_so(extractor, bucket, delay, due) -> None:
    """Where clocks are changed, a partition is due neither before its last hour nor long after it."""
    trigger = PartitionTime(extractor=extractor, watermark_column="ts")
    one = Announcement(bucket=bucket, first_seen_ms=0, slot=0)

    def is_due(latest_ms: int) -> bool:
        mark = Watermark(latest_ms=latest_ms, time_zone=BERLIN)
        return trigger.is_due(one, TriggerView(now_ms=0, watermark=mark), delay)

    assert not is_due(at(due))
    assert is_due(at(due) + 1)


def test_a_value_that_stands_for_never_is_never_due() -> None:
    """Its delay would end beyond the last year that there is."""
    trigger = PartitionTime(extractor="$day", watermark_column="ts")
    one = Announcement(bucket="day=9999-12-31", first_seen_ms=0, slot=0)
    mark = Watermark(latest_ms=at("2024-01-01"), time_zone="America/Los_Angeles")
    assert not trigger.is_due(one, TriggerView(now_ms=0, watermark=mark), DAY)


@pytest.mark.parametrize(("columns", "fits"), [(("Day", "k"), True), (("k",), False), ((), False)])
def test_an_extractor_that_names_other_columns_is_refused(told: Told, columns, fits) -> None:
    """Else none would ever be due."""
    trigger = PartitionCommit.partition_time(extractor="$day", watermark_column="ts")
    if fits:
        trigger.check_partitions(columns)
        return
    with pytest.raises(ConfigError, match="'day'"):
        trigger.check_partitions(columns)
    assigner = BucketAssigner.partition_bucket_assigner(*columns) if columns else BASE_PATH
    world = world_of(told, trigger=trigger, plan=replace(timed_plan(), assigner=assigner, format=JSON))
    with pytest.raises(ConfigError, match="ever be due"):
        world.tiers().prepare(pa.schema([("k", "string"), ("ts", pa.timestamp("us")), ("value", "string")]))


def test_a_whole_partition_holds_nothing_back(told: Told) -> None:
    """Parts of a partition that is due are closed, so that its announcement is true."""
    trigger = PartitionCommit.partition_time(extractor="$day", watermark_column="ts")
    plan = timed_plan(keep_open(rollover_interval=10 * DAY, inactivity_interval=10 * DAY))
    world = world_of(told, trigger=trigger, plan=plan)
    world.clock.now = at("2024-01-10")
    driver = world.driver()
    write_times(world, driver, 0, d01="2024-01-01T00:00")
    assert (told.take(), world.rows()) == ([], [])
    write_times(world, driver, 1, d02="2024-01-01T10:00")
    assert told.take() == ["day=2024-01-01"]
    assert [path.split("/")[0] for path in world.visible()] == ["day=2024-01-01"]


def test_a_delay_that_was_made_shorter_needs_no_data(told: Told) -> None:
    """Upkeep closes the open parts of a partition that is due now, and announces it."""
    trigger = PartitionCommit.partition_time(extractor="$day", watermark_column="ts")
    plan = timed_plan(keep_open(rollover_interval=10 * DAY, inactivity_interval=10 * DAY))
    world = world_of(told, trigger=trigger, plan=plan, delay="1 d")
    world.clock.now = at("2024-01-10")
    write_times(world, world.driver(), 0, d01="2024-01-01T00:00", d02="2024-01-01T10:00")
    world.partition_commit = PartitionCommit(policies=[ListenerPolicy(told)], trigger=trigger)
    assert world.driver().upkeep() is not None
    assert (told.take(), world.rows()) == (["day=2024-01-01"], ["d01"])


def test_a_partition_is_not_whole_while_a_file_of_it_waits_for_company(told: Told) -> None:
    """It is due, and some of its files are visible; it is announced when the last of them is."""
    world = timed(told)
    world.compaction = Compaction(
        strategy=FileCompactStrategy(size_threshold=len("d01\nd01\n")),
        compactor=FileCompactor.concat_file_compactor(),
    )
    driver = world.driver()
    for batch_id in range(3):  # two are merged, the third waits
        write_times(world, driver, batch_id, d01="2024-01-01T10:00")
    write_times(world, driver, 3, d02="2024-01-02T10:00")
    assert (told.take(), world.rows()) == ([], ["d01", "d01"])
    driver.finish()
    assert told.take() == ["day=2024-01-01", "day=2024-01-02"]


def test_a_whole_partition_does_not_wait_for_company(told: Told) -> None:
    """Its parts, closed to be announced, are merged in the same epoch, however small the file becomes."""
    trigger = PartitionCommit.partition_time(extractor="$day", watermark_column="ts")
    plan = timed_plan(keep_open(rollover_interval=10 * DAY, inactivity_interval=10 * DAY))
    world = world_of(told, trigger=trigger, plan=plan)
    world.compaction = Compaction(
        strategy=FileCompactStrategy(size_threshold="1MiB"),
        compactor=FileCompactor.concat_file_compactor(),
    )
    world.clock.now = at("2024-01-10")
    driver = world.driver()
    write_times(world, driver, 0, d01="2024-01-01T00:00")
    write_times(world, driver, 1, d02="2024-01-01T10:00")
    assert told.take() == ["day=2024-01-01"]
    assert [path.split("/")[0] for path in world.visible()] == ["day=2024-01-01"]


@pytest.mark.parametrize(
    ("extractor", "bucket", "expected"),
    [
        ("$day $hour:00:00", "day=2024-02-03/hour=7", "2024-02-03T07:00:00"),
        ("$dt", "d=1999-01-01/dt=2024-02-03", "2024-02-03T00:00:00"),
        ("${d}T$h:30", "d=2024-2-3/h=4", "2024-02-03T04:30:00"),
        ("$y-$m-1", "y=2024/m=12", "2024-12-01T00:00:00"),
        ("$Day", "day=2024-02-03 04:05:06.7", "2024-02-03T04:05:06"),
        ("$day", "day=__HIVE_DEFAULT_PARTITION__", None),
        ("$day", "day=2024-02-30", None),
        ("$day", "day=today", None),
        ("$day", "2024-02-03", None),
        ("$day $hour:00:00", "day=2024-02-03", None),
        (" $day ", "day=2024-02-03", "2024-02-03T00:00:00"),
    ],
)
def test_times_of_values(extractor: str, bucket: str, expected: str | None) -> None:
    """Whole names only: ``$d`` is not replaced inside ``$dt``."""
    time = PartitionTime(extractor=extractor, watermark_column="ts").time_of(bucket)
    assert (time and time.isoformat()) == expected


def test_the_partition_of_null_is_due_at_once() -> None:
    """Nobody could ever say that it is complete, and nothing is held back for ever."""
    trigger = PartitionTime(extractor="$day $hour:00", watermark_column="ts")
    one = Announcement(bucket="day=__HIVE_DEFAULT_PARTITION__/hour=3", first_seen_ms=0, slot=0)
    assert trigger.is_due(one, TriggerView(now_ms=0, watermark=None), 0)
    assert not trigger.waits_for_end(one.bucket)


UNREAD = [
    "day=20240101",
    "day=05-03-2020",
    "day=today",
    "2024-01-01--07",
    "day=2024-02-30",
    "k=2024-01-01",
    "",
]


@pytest.mark.parametrize("bucket", UNREAD)
def test_a_partition_whose_name_is_no_time_is_announced_at_the_end(
    told: Told, bucket: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Never too early, as with its first record; the log says so once, and each report counts it."""
    world = timed(told)
    driver = world.driver()
    batch = pa.RecordBatch.from_pydict(
        {
            "bucket": [bucket],
            "value": ["v"],
            "ts": pa.array([at("2024-01-09") * 1000], pa.timestamp("us", tz="UTC")),
        }
    )
    for batch_id in range(2):
        outcome = driver.run(micro_batch(batch_id), world.job(batch))
        assert outcome.metrics["partitions_without_time"] == 1
    assert told.take() == []
    [said] = [
        record.getMessage() for record in caplog.records if "only when the input ends" in record.message
    ]
    assert f"'{bucket}'" in said
    assert "$day" in said
    driver.finish()
    assert told.take() == [bucket]


@pytest.mark.parametrize(
    ("formatter", "extractor", "bucket", "expected"),
    [
        ("yyyyMMdd", "$day", "day=20260921", "2026-09-21T00:00:00"),
        ("yyyyMMdd", "$day", "day=2026-09-21", None),
        ("MM-dd-yyyy HH:mm:ss", "$day $hour:00:00", "day=05-03-2020/hour=07", "2020-05-03T07:00:00"),
        ("yyyyMMddHH", "$day$hour", "day=20260921/hour=23", "2026-09-21T23:00:00"),
        ("dd.MM.yyyy", "$d.$m.$y", "y=2024/m=02/d=29", "2024-02-29T00:00:00"),
    ],
)
def test_a_formatter_says_how_times_are_written(formatter, extractor, bucket, expected) -> None:
    """As Flink's ``partition.time-extractor.timestamp-formatter``."""
    trigger = PartitionCommit.partition_time(extractor=extractor, watermark_column="ts", formatter=formatter)
    found = trigger.time_of(bucket)
    assert (found and found.isoformat()) == expected


def sink_of(assigner: BucketAssigner, trigger: Trigger) -> FileSinkBuilder:
    """A builder with partition commit."""
    commit = PartitionCommit(policies=[SuccessFilePolicy()], trigger=trigger)
    builder = FileSink.for_row_format("/data/never", Encoder.json_lines())
    return builder.with_bucket_assigner(assigner).with_partition_commit(commit)


@pytest.mark.parametrize(
    ("assigner", "formatter", "fits"),
    [
        (BucketAssigner.date_time_bucket_assigner(), None, False),
        (BucketAssigner.date_time_bucket_assigner("yyyy/MM/dd"), None, False),
        (BucketAssigner.date_time_bucket_assigner("'day='yyyy-MM-dd"), None, True),
        (BucketAssigner.date_time_bucket_assigner("'day='yyyyMMdd"), None, False),
        (BucketAssigner.date_time_bucket_assigner("'day='yyyyMMdd"), "yyyyMMdd", True),
        (BucketAssigner.date_time_bucket_assigner("'day='yyyy-dd-MM"), None, False),
        (BASE_PATH, None, False),
        (BucketAssigner.partition_bucket_assigner("k"), None, False),
        (BucketAssigner.partition_bucket_assigner("day", "k"), None, True),
        (BucketAssigner.expression_bucket_assigner("concat('day=', d)"), None, True),  # only data can tell
    ],
)
def test_directories_that_tell_no_time_are_refused_at_the_build(assigner, formatter, fits) -> None:
    """Where they are known then; a trigger by the clock looks at none."""
    trigger = PartitionCommit.partition_time(extractor="$day", watermark_column="ts", formatter=formatter)
    sink_of(assigner, PartitionCommit.process_time()).build()
    if fits:
        sink_of(assigner, trigger).build()
        return
    with pytest.raises(ConfigError) as caught:
        sink_of(assigner, trigger).build()
    assert caught.value.code == "BAD_VALUE"


@pytest.mark.parametrize(
    ("kind", "formatter", "extractor", "fits"),
    [
        (pa.date32(), None, "$day", True),
        (pa.timestamp("us"), None, "$day", True),
        (pa.date32(), "yyyyMMdd", "$day", False),
        (pa.date32(), "yyyy-MM-dd", "$day", True),
        (pa.date32(), None, "$day 07:00", True),
        (pa.timestamp("us"), None, "$day 07:00", False),
        (pa.int32(), None, "$day", False),
        (pa.int32(), None, "2024-11-$day", True),
        (pa.int32(), "yyyyMMdd", "$day", True),
        (pa.bool_(), None, "$day", False),
        (pa.string(), None, "$day", True),
        (pa.dictionary(pa.int8(), pa.date32()), "yyyyMMdd", "$day", False),
    ],
)
def test_columns_no_value_of_which_is_a_time_are_refused_before_a_write(
    kind, formatter, extractor, fits
) -> None:
    """A whole number is no ISO date, and a date is written in one way only. Text may be anything."""
    trigger = PartitionCommit.partition_time(extractor=extractor, watermark_column="t", formatter=formatter)
    if fits:
        trigger.check_types({"day": kind})
        return
    with pytest.raises(ConfigError, match="formatter"):
        trigger.check_types({"day": kind})


@pytest.mark.parametrize(
    "make",
    [
        lambda: PartitionCommit(policies=[]),
        lambda: PartitionCommit(policies=[print]),  # type: ignore[list-item]
        lambda: PartitionCommit(policies=[SuccessFilePolicy()], delay="-1 s"),
        lambda: PartitionCommit(policies=[SuccessFilePolicy()], trigger="process-time"),  # type: ignore[arg-type]
        lambda: PartitionCommit.partition_time(extractor="day", watermark_column="ts"),
        lambda: PartitionCommit.partition_time(extractor="$day", watermark_column=""),
        lambda: PartitionCommit.partition_time(extractor="$d", watermark_column="t", time_zone="Mars"),
        lambda: PartitionCommit.partition_time(extractor="$d", watermark_column="t", formatter="yyyy-mm-dd"),
        lambda: SuccessFilePolicy("SUCCESS"),
        lambda: SuccessFilePolicy("_a/b"),
        lambda: ListenerPolicy("print"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_work_is_refused(make) -> None:
    """When it is built, before anything is written."""
    with pytest.raises(ConfigError):
        make()


# --- policies


def test_success_files_come_after_the_files_and_stay() -> None:
    """One in each partition, not taken for data, left alone by the next announcement."""
    world = World(partition_commit=PartitionCommit(policies=[SuccessFilePolicy("_DONE")]))
    driver = world.driver()
    write(world, driver, 0, "p=1", "")
    assert {"p=1/_DONE", "_DONE"} <= set(world.contents())
    before = world.files.files["p=1/_DONE"]
    write(world, driver, 1, "p=1")
    assert world.files.files["p=1/_DONE"] == before
    assert len(world.visible()) == 3


@pytest.mark.parametrize("moment", Moment)
def test_a_success_file_that_fails_is_tried_again(told: Told, moment: Moment) -> None:
    """Before or after its effect; policies behind it wait, other partitions do not."""
    commit = PartitionCommit(policies=[SuccessFilePolicy(), ListenerPolicy(told)])
    world = World(partition_commit=commit)
    faults = [Fault(moment=moment, error=StorageError("no", code="IO"))]
    world.fault = lambda name, path: (
        faults.pop() if (name, path) == ("put_if_absent", "p=1/_SUCCESS") and faults else None
    )
    write(world, world.driver(), 0, "p=1", "p=2")
    assert told.take() == ["p=2", "p=1"]
    assert "p=1/_SUCCESS" in world.contents()


def test_policies_run_in_their_order(told: Told) -> None:
    """A policy sees what those before it did."""
    seen = []

    class Look(PartitionPolicy):
        def commit(self, partition: CommittedPartition) -> None:
            del partition
            seen.append(sorted(path for path in world.contents() if path.endswith("_SUCCESS")))

    policies = [Look(), SuccessFilePolicy(), Look(), ListenerPolicy(told)]
    world = World(partition_commit=PartitionCommit(policies=policies))
    write(world, world.driver(), 0, "p=1")
    assert seen == [[], ["p=1/_SUCCESS"]]
    assert told.take() == ["p=1"]


def test_a_listener_that_asks_for_a_retry_is_called_again(told: Told) -> None:
    """It is told that this may be a repetition."""
    failures = [MetastoreError("not now", code="X")]

    def listen(event: CommittedPartition) -> None:
        told(event)
        if failures:
            raise failures.pop()

    world = World(partition_commit=PartitionCommit(policies=[ListenerPolicy(listen)]))
    write(world, world.driver(), 0, "p=1")
    assert [event.may_be_repeated for event in told.events] == [False, True]


def test_a_listener_that_fails_stops_the_epoch_and_nothing_is_lost(told: Told) -> None:
    """Files stay visible, the epoch stays decided, and the next start announces again."""
    broken = [True]

    def listen(event: CommittedPartition) -> None:
        if broken:
            raise ValueError("a bug")
        told(event)

    world = World(partition_commit=PartitionCommit(policies=[ListenerPolicy(listen)]))
    with pytest.raises(CommitFailedError) as caught:
        write(world, world.driver(), 0, "p=1")
    assert caught.value.code == "COMMIT_POLICY"
    assert "ListenerPolicy failed with ValueError: a bug" in str(caught.value)
    assert len(world.rows()) == 1
    broken.clear()
    assert world.driver().recover() is not None
    assert [(event.bucket, event.may_be_repeated) for event in told.events] == [("p=1", True)]


@pytest.mark.parametrize("error", [MetastoreConflictError("no", code="X"), SchemaError("no", code="X")])
def test_a_listener_that_refuses_is_called_once(told: Told, error: FilesinkError) -> None:
    """What it raises is what the query fails with."""

    def listen(event: CommittedPartition) -> None:
        told(event)
        raise error

    world = World(partition_commit=PartitionCommit(policies=[ListenerPolicy(listen)]))
    with pytest.raises(type(error)):
        write(world, world.driver(), 0, "p=1")
    assert told.take() == ["p=1"]


def test_retries_come_to_an_end(told: Told) -> None:
    """A metastore that stays away fails the query after ten retries with growing pauses."""

    def listen(event: CommittedPartition) -> None:
        told(event)
        raise MetastoreError("away", code="METASTORE_DOWN")

    world = World(partition_commit=PartitionCommit(policies=[ListenerPolicy(listen)]))
    with pytest.raises(CommitFailedError) as caught:
        write(world, world.driver(), 0, "p=1")
    assert caught.value.code == "RETRIES"
    assert len(world.clock.slept) == 10
    assert sum(world.clock.slept) > 20
    assert told.take() == ["p=1"] * 11


def test_a_replay_announces_nothing(told: Told) -> None:
    """A micro-batch that comes back after its epoch is complete is silent."""
    world = world_of(told)
    write(world, world.driver(), 0, "p=1")
    told.take()
    write(world, world.driver(), 0, "p=1")
    assert told.take() == []


def test_announcing_may_be_turned_off_and_on(told: Told) -> None:
    """What waits is carried on by a sink that announces nothing."""
    world = world_of(told, delay=1000)
    commit = world.partition_commit
    write(world, world.driver(), 0, "p=1")
    world.partition_commit = None
    world.clock.now = 5000
    write(world, world.driver(), 1, "p=2")
    world.partition_commit = commit
    write(world, world.driver(), 2, "p=3")
    assert told.take() == ["p=1"]


def test_tasks_get_the_sink_without_its_policies(told: Told) -> None:
    """A listener may hold a session or a lock: it never travels."""
    world = world_of(told)
    tiers = world.tiers()
    assert tiers.publishing is not None
    assert tiers.__getstate__()["publishing"] is None


def test_policies_are_closed_with_the_driver(told: Told) -> None:
    """Connections are let go of."""
    closed = []

    class Closes(PartitionPolicy):
        def commit(self, partition: CommittedPartition) -> None:
            told(partition)

        def close(self) -> None:
            closed.append(1)

    world = World(partition_commit=PartitionCommit(policies=[Closes()]))
    driver = world.driver()
    write(world, driver, 0, "p=1")
    driver.close()
    assert closed == [1]


# --- durable bytes


def test_announcements_come_back() -> None:
    """Every field, for both kinds."""
    values = [
        Announcement(bucket="p=1", first_seen_ms=5, slot=3, files=2, rows=7, size=9, paths=("p=1/a.txt",)),
        Announcement(bucket="", first_seen_ms=5, slot=3),
        Watermark(latest_ms=12, time_zone="UTC"),
    ]
    codec = AnnouncementCodec()
    assert codec.decode(codec.version, codec.encode(values)) == values


def test_old_bytes_can_be_read() -> None:
    """What version 1 wrote is read for ever."""
    values = [
        Announcement(
            bucket="day=2024-01-01/k=a%2Fb",
            first_seen_ms=1_700_000_000_000,
            slot=7,
            files=2,
            rows=10,
            size=1234,
            paths=("day=2024-01-01/k=a%2Fb/part-0123abcd-0000-4000-8000-000000000001-0.parquet",),
        ),
        Watermark(latest_ms=1_700_000_000_001, time_zone="Europe/Berlin"),
    ]
    golden = (GOLDEN / "announcements-1.json").read_bytes()
    assert AnnouncementCodec().decode(1, golden) == values
    assert AnnouncementCodec().encode(values) == golden


@pytest.mark.parametrize(
    "data",
    [
        b"{}",
        b"[1]",
        b'[{"kind":"other"}]',
        b'[{"kind":"watermark","latest_ms":-1,"time_zone":"UTC"}]',
        b'[{"kind":"watermark","latest_ms":"1","time_zone":"UTC"}]',
        b'[{"kind":"partition","bucket":"p","first_seen_ms":1,"slot":1,"files":1,"rows":1,"size":1,"paths":"x"}]',
        b'[{"kind":"partition","bucket":"p","first_seen_ms":1,"slot":1,"files":1,"rows":1,"size":1}]',
    ],
)
def test_broken_bytes_are_refused(data: bytes) -> None:
    """Never a guess."""
    with pytest.raises(StateCorruptError):
        AnnouncementCodec().decode(1, data)


def test_bytes_of_another_version_are_not_read() -> None:
    """Whoever calls must have refused them before."""
    with pytest.raises(InternalError):
        AnnouncementCodec().decode(2, b"[]")


@pytest.mark.parametrize("where", [{"bucket": "../x"}, {"bucket": "x", "paths": ("../x",)}])
def test_paths_that_leave_the_base_are_refused(where) -> None:
    """Directories of partitions and their files alike."""
    values = [Announcement(first_seen_ms=1, slot=1, **where)]
    with pytest.raises(SecurityError):
        AnnouncementCodec().decode(1, AnnouncementCodec().encode(values))


def test_records_without_waiting_partitions_are_as_they_were() -> None:
    """A sink that announces nothing writes the bytes that it always wrote."""
    world = World()
    write(world, world.driver(), 0, "p=1")
    record = world.ledger().read(0)
    assert b"waiting" not in record.to_bytes()
    assert pickle.loads(pickle.dumps(world.plan)).watermark_column is None  # noqa: S301 - ours


def test_what_a_restart_announces_for_an_earlier_driver_may_be_a_repetition(told: Told) -> None:
    """Nobody knows how far that driver came; the partitions of the new epoch are new."""
    world = world_of(told)
    world.fault = lambda operation, path: (
        Fault(moment=Moment.BEFORE, error=KeyboardInterrupt())
        if operation == "put_if_absent" and path.endswith(".complete")
        else None
    )
    with pytest.raises(KeyboardInterrupt):
        write(world, world.driver(), 0, "p=1")
    world.fault = lambda _operation, _path: None
    told.events.clear()
    write(world, world.driver(), 1, "p=2")
    assert [(event.bucket, event.may_be_repeated) for event in told.events] == [("p=1", True), ("p=2", False)]


def test_what_would_have_been_announced_is_given_back_with_its_epoch(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A committer that has reserved something for an epoch that was not decided can let go of it."""
    given_back: list[str] = []
    monkeypatch.setattr(
        PartitionCommitter, "abort", lambda _self, values: given_back.extend(one.bucket for one in values)
    )
    world = world_of(told)
    world.fault = lambda operation, path: (
        Fault(moment=Moment.BEFORE, error=StorageError("full", code="NO_SPACE"))
        if operation == "put_if_absent" and path.endswith(".record")
        else None
    )
    with pytest.raises(StorageError):
        write(world, world.driver(), 0, "p=1", "p=2")
    assert given_back == ["p=1", "p=2"]
    assert told.take() == []
