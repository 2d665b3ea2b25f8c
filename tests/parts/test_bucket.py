"""One bucket in one task, against the cases of Flink's bucket and rolling tests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from filesink.parts import bucket as bucket_module
from filesink.parts.attempt import AttemptParts
from filesink.parts.bucket import WriterBucket
from filesink.parts.committables import HeldFile, PendingFile
from filesink.parts.rolling import CheckpointRollingPolicy, RollingPolicy
from formats.encoders import Encoder
from tests.fakes import World, keep_open, plan_of, records


def lines(*values):
    """Records of one column."""
    return records(*values).select(["value"])


class Site:
    """A bucket of a world, written to at given times."""

    def __init__(self, policy=None, encoder=None, segments=()):
        self.world = World(plan=plan_of(encoder, policy))
        self.bucket = self.again(segments=segments) if not segments else None

    def again(self, policy=None, encoder=None, segments=()):
        """The same bucket in a later epoch."""
        plan = self.world.plan
        if policy or encoder:
            plan = plan_of(encoder or plan.format, policy or plan.policy)
        parts = AttemptParts(plan, self.world.store(), self.world.context())
        self.bucket = WriterBucket("", parts, plan.policy)
        if segments:
            self.bucket.restore(segments)
        return self.bucket

    def write(self, *values, at=0):
        """Write one record after the other."""
        for value in values:
            self.bucket.write(lines(value), at)

    def content(self, *files):
        """The bytes of pending or held files."""
        return [self.world.files.files[file.staged.path].content for file in files]


class Counting(CheckpointRollingPolicy):
    """Notes each question and rolls as a default policy with these limits."""

    asked = ()

    def __init__(self, part_size=10, age=11, idle=4):
        self.limits = (part_size, age, idle)
        self.asked = []

    def note(self, question, answer):
        """Remember the answer."""
        self.asked.append((question, answer))
        return answer

    def should_roll_on_event(self, part):
        return self.note("event", part.size > self.limits[0])

    def should_roll_on_processing_time(self, part, now_ms):
        _, age, idle = self.limits
        old = now_ms - part.creation_time >= age or now_ms - part.last_update_time >= idle
        return self.note("time", old)

    def count(self, question):
        """How often it was asked, and how often it said yes."""
        answers = [answer for asked, answer in self.asked if asked == question]
        return len(answers), sum(answers)


def test_when_the_policy_is_asked():
    """Flink's BucketsRollingPolicyTest: on events only with an open part, on time only with one."""
    policy = Counting()
    site = Site(policy)
    for now in (1, 2, 3):
        site.write("test1", at=now)
    site.bucket.on_processing_time(5)
    site.bucket.on_processing_time(7)
    site.write("test1", at=7)
    site.bucket.on_processing_time(20)
    assert policy.count("event") == (2, 1)
    assert policy.count("time") == (3, 2)
    assert [file.rows for file in site.bucket.prepare_commit()] == [2, 1, 1]


def test_the_first_record_is_not_asked_about():
    """A part is opened without a question, so every part holds a record."""
    policy = Counting(part_size=0)
    Site(policy).write("a")
    assert policy.asked == []


def test_a_checkpoint_policy_closes_at_every_epoch():
    """Three writes, an epoch, one write, an epoch: two parts, and events never rolled."""
    policy = Counting(part_size=100)
    site = Site(policy)
    site.write("a", "b", "c")
    first = site.bucket.prepare_commit()
    site.write("d")
    second = site.bucket.prepare_commit()
    assert site.content(*first, *second) == [b"a\nb\nc\n", b"d\n"]
    assert policy.count("event") == (2, 0)
    assert site.bucket.snapshot_state() == []


def test_the_record_that_crosses_is_the_last():
    """With a limit of 10 bytes, records of 6 bytes make parts of 12."""
    site = Site(RollingPolicy.on_checkpoint_rolling_policy(part_size=10))
    site.write("test1", "test2", "test3", "test4", "test5")
    sizes = [file.size for file in site.bucket.prepare_commit()]
    assert sizes == [12, 12, 6]


def test_names_count_up():
    """Parts of one bucket and attempt share their id and are numbered."""
    site = Site(RollingPolicy.on_checkpoint_rolling_policy(max_rows=1))
    site.write("a", "b", "c")
    targets = [file.target for file in site.bucket.prepare_commit()]
    assert [target.rpartition("-")[2] for target in targets] == ["0", "1", "2"]
    assert len({target.rpartition("-")[0] for target in targets}) == 1


def test_an_open_part_is_state_and_no_committable():
    """Under the default policy one write gives no committable and one segment."""
    site = Site(keep_open())
    site.write("a")
    assert site.bucket.prepare_commit() == []
    (segment,) = site.bucket.snapshot_state()
    assert isinstance(segment, HeldFile)
    assert site.content(segment) == [b"a\n"]


def test_a_closed_part_is_a_committable_and_no_state():
    """Under a checkpoint policy one write gives one pending file and no state."""
    site = Site()
    site.write("a")
    (pending,) = site.bucket.prepare_commit()
    assert isinstance(pending, PendingFile)
    assert site.bucket.snapshot_state() == []


def test_parts_that_rolled_and_the_one_that_did_not():
    """Rolling on every record, three writes give two pending files and an open part."""
    site = Site(keep_open(part_size=1))
    site.write("a", "b", "")
    pending = site.bucket.prepare_commit()
    assert site.content(*pending, *site.bucket.snapshot_state()) == [b"a\n", b"b\n", b"\n"]
    assert len(pending) == 2


def test_a_part_grows_by_segments():
    """Each epoch adds a segment to the same group; nothing written before is touched."""
    site = Site(keep_open())
    site.write("a", at=5)
    site.bucket.prepare_commit()
    first = list(site.bucket.snapshot_state())
    site.again(segments=first)
    site.write("b", at=9)
    assert site.bucket.prepare_commit() == []
    segments = site.bucket.snapshot_state()
    assert segments[0] == first[0]
    assert len({segment.group for segment in segments}) == 1
    assert site.content(*segments) == [b"a\n", b"b\n"]
    assert [segment.created_ms for segment in segments] == [5, 9]


def test_an_epoch_without_records_keeps_the_state():
    """A restored part that gets no record is handed on as it was, and the policy is not asked."""
    policy = Counting()
    site = Site(keep_open())
    site.write("a")
    site.bucket.prepare_commit()
    segments = list(site.bucket.snapshot_state())
    site.again(policy=policy, segments=segments)
    assert site.bucket.prepare_commit() == []
    assert site.bucket.snapshot_state() == segments
    assert policy.asked == []


def test_size_counts_over_segments():
    """A part of 6 bytes from an earlier epoch closes with the record that takes it over 10."""
    site = Site(keep_open(part_size=10))
    site.write("test1")
    site.bucket.prepare_commit()
    site.again(segments=list(site.bucket.snapshot_state()))
    site.write("test2", "test3")
    closed = site.bucket.prepare_commit()
    assert site.content(*closed) == [b"test1\n", b"test2\n"]
    assert len({file.group for file in closed}) == 1
    assert site.content(*site.bucket.snapshot_state()) == [b"test3\n"]


@pytest.mark.parametrize("limit", [{"part_size": 10}, {"max_rows": 2}])
def test_what_is_put_aside_within_an_epoch_counts(limit):
    """Where too many files are open: a part is as large as all of its segments, and closed with them."""
    site = Site(RollingPolicy.on_checkpoint_rolling_policy(**limit))
    for value in ("test1", "test2", "test3"):
        site.write(value)
        site.bucket.end_segment()
    closed = site.bucket.prepare_commit()
    parts = [[file for file in closed if file.group == group] for group in {file.group for file in closed}]
    assert sorted(map(len, parts)) == [1, 2]
    assert site.content(*closed) == [b"test1\n", b"test2\n", b"test3\n"]
    assert site.bucket.snapshot_state() == []


def test_age_counts_from_the_first_segment():
    """A restored part is as old as its first record and as idle as its last."""
    site = Site(keep_open(rollover_interval=10, inactivity_interval=10))
    site.write("a", at=0)
    site.bucket.prepare_commit()
    site.again(segments=list(site.bucket.snapshot_state()))
    site.write("b", at=9)
    site.bucket.on_processing_time(9)
    assert site.bucket.writer is not None
    site.bucket.on_processing_time(10)
    assert site.bucket.writer is None
    assert site.content(*site.bucket.prepare_commit()) == [b"a\n", b"b\n"]


def test_inactivity_counts_from_the_last_segment():
    """A restored part to which no record has come is as idle as its newest segment."""
    site = Site(keep_open(rollover_interval=1000, inactivity_interval=10))
    segments = []
    for now in (0, 9):
        site.again(segments=segments)
        site.write("a", at=now)
        site.bucket.prepare_commit()
        segments = list(site.bucket.snapshot_state())
    for now, count in ((18, 0), (19, 2)):
        site.again(segments=segments)
        site.bucket.on_processing_time(now)
        assert len(site.bucket.prepare_commit()) == count


def test_a_header_is_written_once_per_part():
    """A CSV part of three segments begins with its column names; so does each new part."""
    site = Site(keep_open(), Encoder.csv(header=True))
    segments = []
    for value in "ab":
        site.again(segments=segments)
        site.write(value)
        site.bucket.prepare_commit()
        segments = list(site.bucket.snapshot_state())
    site.again(segments=segments)
    site.write("c")
    site.bucket.close_part()
    site.write("d")
    closed = site.bucket.prepare_commit()
    assert b"".join(site.content(*closed)) == b"value\na\nb\nc\n"
    assert site.content(*site.bucket.snapshot_state()) == [b"value\nd\n"]


def test_another_format_closes_the_part_as_it_is():
    """A part that was begun with other options is never continued with these."""
    site = Site(keep_open(), Encoder.csv())
    site.write("a,b")
    site.bucket.prepare_commit()
    site.again(encoder=Encoder.csv(delimiter=";"), segments=list(site.bucket.snapshot_state()))
    site.write("c;d")
    assert site.content(*site.bucket.prepare_commit()) == [b'"a,b"\n']
    assert site.content(*site.bucket.snapshot_state()) == [b'"c;d"\n']


@pytest.mark.parametrize("dialects", [("spark", "rfc4180"), ("rfc4180", "spark")])
def test_a_part_has_one_dialect(dialects):
    """A part that an earlier release has left open, in what was its default, is closed as it is."""
    before, after = (Encoder.csv(dialect=dialect) for dialect in dialects)
    site = Site(keep_open(), before)
    site.write('"')
    site.bucket.prepare_commit()
    site.again(encoder=after, segments=list(site.bucket.snapshot_state()))
    site.write('"')
    quoted = {"spark": b'"\\""\n', "rfc4180": b'""""\n'}
    assert site.content(*site.bucket.prepare_commit()) == [quoted[dialects[0]]]
    assert site.content(*site.bucket.snapshot_state()) == [quoted[dialects[1]]]


def test_a_part_ends_as_it_was_begun():
    """A part of another format that is closed later keeps the ending of its own format."""
    site = Site(keep_open(), Encoder.csv())
    site.write("a")
    site.bucket.prepare_commit()
    site.again(encoder=Encoder.json_lines(), segments=list(site.bucket.snapshot_state()))
    site.write("b")
    assert [file.suffix for file in site.bucket.prepare_commit()] == [".csv"]
    assert [file.suffix for file in site.bucket.snapshot_state()] == [".json"]


def test_another_schema_closes_the_part_as_it_is():
    """Records with other columns begin a part of their own."""
    site = Site(keep_open(), Encoder.json_lines())
    site.write("a")
    site.bucket.write(lines("b").rename_columns(["other"]), 0)
    assert site.content(*site.bucket.prepare_commit()) == [b'{"value":"a"}\n']
    assert site.content(*site.bucket.snapshot_state()) == [b'{"other":"b"}\n']


def test_the_number_of_segments_is_bounded(monkeypatch):
    """A part of too many segments is closed, however small."""
    monkeypatch.setattr(bucket_module, "MAX_SEGMENTS", 3)
    site = Site(keep_open())
    segments = []
    for epoch in range(3):
        site.again(segments=segments)
        site.write(str(epoch))
        closed = site.bucket.prepare_commit()
        segments = list(site.bucket.snapshot_state())
    assert site.content(*closed) == [b"0\n", b"1\n", b"2\n"]
    assert segments == []


def test_the_bound_is_a_thousand():
    """What the contract says."""
    assert bucket_module.MAX_SEGMENTS == 1000


@pytest.mark.parametrize("cut", range(1, 6))
def test_cuts_of_batches_do_not_matter(cut):
    """Whether records come one by one or in batches, parts hold the same records."""
    values = [f"v{number}" for number in range(10)]
    site = Site(RollingPolicy.on_checkpoint_rolling_policy(part_size=7))
    for start in range(0, 10, cut):
        site.bucket.write(lines(*values[start : start + cut]), 0)
    contents = site.content(*site.bucket.prepare_commit())
    assert contents == [
        f"{''.join(f'{v}{chr(10)}' for v in values[i : i + 3])}".encode() for i in range(0, 10, 3)
    ]
    assert replace(site.world.plan).policy is site.world.plan.policy
