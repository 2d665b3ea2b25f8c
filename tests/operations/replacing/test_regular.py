"""Retention that a sink does by itself."""

from __future__ import annotations

import logging

import pytest

from filesink import BucketAssigner, ConfigError, Encoder, FileSink, PartitionCommit, Retention
from filesink.errors import StorageError
from filesink.operations.replacing.regular import RegularRetention
from filesink.operations.replacing.retain import Retain
from filesink.storage.faulty import Fault, Moment
from tests.operations.replacing.worlds import Days, written

HOUR_MS = 3_600_000
KEEP_TWO = Retention(by="partition time", extractor="$day", keep=2)


def of(world: Days, retention: Retention = KEEP_TWO) -> RegularRetention:
    """That of a sink of this world."""
    return RegularRetention(
        Retain(tiers=world.tiers(), retention=retention, base_path="/base"), world.ports()
    )


def test_after_the_first_epoch_and_then_each_hour():
    """Not at every epoch: it lists."""
    world = written(1, 2, 3)
    regular = of(world)
    regular()
    assert world.live() == ["2", "3"]
    world.append("4", bucket="day=2026-01-04")
    listed = len(list(world.directory().epochs()))
    world.clock.now += HOUR_MS - 1
    regular()
    assert (world.live(), len(list(world.directory().epochs()))) == (["2", "3", "4"], listed)
    world.clock.now += 1
    regular()
    assert world.live() == ["3", "4"]
    world.check()


def test_what_fails_is_told_and_tried_again(caplog):
    """The epoch before is complete: nobody's write fails."""
    world = written(1, 2, 3)
    regular = of(world)
    refusal = StorageError("not now", code="IO")
    world.fault = lambda operation, _path: (
        Fault(moment=Moment.BEFORE, error=refusal) if operation == "list" else None
    )
    with caplog.at_level(logging.WARNING, logger="filesink"):
        regular()
    assert "is tried again in an hour" in caplog.text
    world.fault = lambda _operation, _path: None
    world.clock.now += HOUR_MS
    regular()
    assert world.live() == ["2", "3"]


def test_another_operation_at_the_same_time(caplog):
    """Who comes second drops nothing, and warns nobody."""
    world = written(1, 2, 3)
    other = of(world)

    def fault(operation: str, path: str) -> None:
        if operation == "put_if_absent" and path.endswith(".record"):
            world.fault = lambda _operation, _path: None
            other()

    world.fault = fault
    with caplog.at_level(logging.WARNING, logger="filesink"):
        of(world)()
    assert caplog.text == ""
    assert world.live() == ["2", "3"]
    world.check()


def test_two_threads_of_a_sink_do_it_once():
    """The second finds the first at work, and goes on."""
    world = written(1, 2, 3)
    regular = of(world)
    calls = []

    def fault(operation: str, path: str) -> None:
        if operation == "put_if_absent" and path.endswith(".record"):
            calls.append(regular())

    world.fault = fault
    regular()
    assert calls == [None]
    assert world.live() == ["2", "3"]


def sink(assigner):
    """A builder of text in directories by ``assigner``."""
    return FileSink.for_row_format("/x", Encoder.simple_string_encoder()).with_bucket_assigner(assigner)


BY_TIME = Retention(by="partition time", max_age="90 days")


@pytest.mark.parametrize(
    ("assigner", "retention"),
    [
        (BucketAssigner.base_path_bucket_assigner(), BY_TIME),
        (BucketAssigner.partition_bucket_assigner("day"), BY_TIME),
        (
            BucketAssigner.partition_bucket_assigner("day"),
            Retention(by="partition time", max_age=1, extractor="$hour"),
        ),
        (
            BucketAssigner.date_time_bucket_assigner("yyyy-MM-dd"),
            Retention(by="partition time", max_age=1, formatter="'day='yyyy-MM-dd"),
        ),
        (
            BucketAssigner.date_time_bucket_assigner("yyyy-MM-dd"),
            Retention(by="partition time", max_age=1, extractor="$day"),
        ),
    ],
)
def test_directories_that_tell_no_time_are_refused_at_build(assigner, retention):
    """Nothing would ever be dropped."""
    with pytest.raises(ConfigError) as raised:
        sink(assigner).with_retention(retention).build()
    assert raised.value.code == "BAD_VALUE"


def test_a_date_pattern_is_read_as_it_is_written():
    """With its own zone; nobody has to say it twice."""
    assigner = BucketAssigner.date_time_bucket_assigner("'day='yyyyMMdd", timezone_id="Europe/Berlin")
    assert BY_TIME.for_buckets(assigner) == Retention(
        by="partition time", max_age="90 days", formatter="'day='yyyyMMdd", time_zone="Europe/Berlin"
    )
    assert sink(assigner).with_retention(BY_TIME).build() is not None


@pytest.mark.parametrize("rule", [None, "90 days", 7, Retention, PartitionCommit])
def test_what_is_no_retention_is_refused(rule):
    """At once."""
    with pytest.raises(ConfigError):
        sink(BucketAssigner.base_path_bucket_assigner()).with_retention(rule)
