"""Bytes of what tasks report and of what an epoch decides, and markers that tell how much was sent."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from filesink import CommitConflictError, SecurityError
from filesink.errors import StateCorruptError
from filesink.naming import HiddenName, sink_tag
from filesink.sinks.kafka.committables import CommittableCodec, EpochFiles, StagedFile, StagedRows
from filesink.sinks.kafka.loads import TopicLoad
from filesink.sinks.kafka.markers import PARTITIONS, Marker, done_of, marker_after, partition_of
from filesink.storage.staged import HiddenFile

CODEC = CommittableCodec()
GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "kafka-committables-1.json"
MARKER = GOLDEN.with_name("kafka-marker-1.json")
SINK = "uid-u"


def file(number: int = 0, *, rows: int = 3, size: int = 10, slot: int = 2) -> StagedFile:
    """A file that is nowhere."""
    attempt = "0a0b0c0d-0000-4000-8000-000000000001"
    name = HiddenName(target=f"rows-{number}", tag=sink_tag(SINK), slot=slot, attempt=attempt)
    staged = HiddenFile(path=f"staged/{name}", size=5, inode=1, mtime_ns=1)
    return StagedFile(staged=staged, rows=rows, bytes=size)


def epoch(files: int = 3, slot: int = 2) -> EpochFiles:
    """An epoch of so many files."""
    return EpochFiles(
        sink_id=SINK, slot=slot, topic="t", name="filesink-uid-u-1", markers="m", markers_id="i",
        batch_bytes=1000, files=tuple(file(one, slot=slot) for one in range(files)),
    )  # fmt: skip


ROWS = StagedRows(
    sink_id=SINK, slot=2, files=(file(), file(1)), loads=(TopicLoad(topic="", rows=6, largest=101),)
)


@pytest.mark.parametrize("value", [ROWS, epoch()], ids=["rows", "epoch"])
def test_there_and_back(value: Any) -> None:
    """Equal, from bytes that are always the same."""
    data = CODEC.encode([value])
    assert CODEC.decode(1, data) == [value]
    assert CODEC.encode(CODEC.decode(1, data)) == data


def test_bytes_of_the_first_release() -> None:
    """They are read for ever, and written the same: a decided epoch, and the marker that tells of it."""
    data = GOLDEN.read_bytes()
    assert CODEC.decode(1, data) == [ROWS, epoch()]
    assert CODEC.encode([ROWS, epoch()]) == data
    marker = MARKER.read_bytes()
    assert Marker.from_bytes(marker) == marker_after(epoch(), 2)
    assert marker_after(epoch(), 2).to_bytes() == marker


def test_an_epoch_holds_no_value_of_a_row() -> None:
    """What rows ask of topics, with the names that they have, is not decided with it."""
    assert b"loads" not in CODEC.encode([epoch()])


def damaged(change: Any) -> bytes:
    """The bytes of an epoch after ``change`` of its values."""
    values = json.loads(CODEC.encode([epoch()]))
    change(values[0])
    return json.dumps(values).encode()


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one.update(slot="2"),
        lambda one: one.update(slot=3),  # not that of its files
        lambda one: one.update(sink_id="uid-v"),
        lambda one: one.update(files=[[1]]),
        lambda one: one.update(more=1),
        lambda one: one.pop("topic"),
        lambda one: one["files"][0].__setitem__(1, -1),
        lambda one: one["files"][0][0].update(path="staged/data.parquet"),
        lambda one: one["files"][0][0].update(path=one["files"][0][0]["path"].replace("staged/", "other/")),
    ],
)
def test_what_this_sink_would_not_have_written(change: Any) -> None:
    """It is not used: a file of somebody else's would be sent, and removed."""
    with pytest.raises(StateCorruptError):
        CODEC.decode(1, damaged(change))


def test_a_path_that_leads_out() -> None:
    """Into the directory of another."""
    change = damaged(lambda one: one["files"][0][0].update(path="../x"))
    with pytest.raises(SecurityError):
        CODEC.decode(1, change)


@pytest.mark.parametrize(("most", "ends"), [(1, [1, 2, 3]), (19, [1, 2, 3]), (20, [2, 3]), (30, [3])])
def test_transactions_hold_whole_files(most: int, ends: list[int]) -> None:
    """As many as fit, and one at least."""
    found, first = [], 0
    while first < 3:
        first = epoch().end_from(first, most)
        found.append(first)
    assert found == ends


def test_what_a_marker_says() -> None:
    """Of this epoch so many files; of an earlier one nothing; of a later one that this was complete."""
    now = epoch()
    assert done_of(now, None) == 0
    assert done_of(now, marker_after(epoch(slot=1), 3)) == 0
    assert done_of(now, Marker.from_bytes(marker_after(now, 2).to_bytes())) == 2
    assert done_of(now, marker_after(epoch(slot=3), 0)) == 3


def test_another_epoch_of_the_same_number() -> None:
    """Of a ledger that was begun anew: its rows are not taken for those that are there."""
    with pytest.raises(CommitConflictError) as error:
        done_of(epoch(), marker_after(epoch(files=2), 2))
    assert error.value.code == "KAFKA_EPOCH"


@pytest.mark.parametrize(
    "data",
    [b"", b"1", b"{}", b'{"v":2}', marker_after(epoch(), 1).to_bytes().replace(b'"slot":2', b'"slot":-2')],
)
def test_a_marker_that_is_none(data: bytes) -> None:
    """Nothing is sent on the word of a stranger."""
    with pytest.raises(StateCorruptError):
        Marker.from_bytes(data)


def test_the_partition_of_a_marker_stays() -> None:
    """For ever: a marker that is looked for elsewhere is not found, and rows would come twice."""
    assert PARTITIONS == 16
    assert [partition_of(name) for name in ("filesink-uid-u-1", "a", "b")] == [9, 3, 9]


def test_the_digest_is_of_the_names() -> None:
    """And of their order."""
    assert epoch().content == replace(epoch(), topic="u").content
    assert epoch().content != replace(epoch(), files=epoch().files[::-1]).content
