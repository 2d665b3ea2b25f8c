"""Laws of everything that is durable or travels: what was encoded comes back, and nothing else does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filesink.commit.task import TaskResult
from filesink.errors import SecurityError, StateCorruptError, StateError, StateVersionError
from filesink.framing import frame, unframe
from filesink.ledger.record import (
    EMPTY,
    BatchWrite,
    EpochRecord,
    Finish,
    MicroBatch,
    OfflineCompaction,
    Operation,
    Section,
    Upkeep,
)
from filesink.parts.committables import (
    CommittableCodec,
    DiscardFile,
    HeldFile,
    HeldFileCodec,
    PendingFile,
    ReplacedFile,
    SupersededFile,
)
from filesink.save_mode import SaveMode
from filesink.storage.staged import HiddenFile

NAMES = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="/\0"), min_size=1, max_size=8
)
PATHS = st.lists(NAMES.filter(lambda name: name not in {".", ".."}), min_size=1, max_size=3).map("/".join)
BUCKETS = PATHS | st.just("")
SIZES = st.integers(0, 2**63)
STAGED = st.builds(HiddenFile, path=PATHS, size=SIZES, inode=SIZES, mtime_ns=SIZES)
PENDING = st.builds(PendingFile, bucket=BUCKETS, target=PATHS, staged=STAGED, rows=SIZES, size=SIZES)
HELD = st.builds(
    HeldFile,
    bucket=BUCKETS,
    group=NAMES | st.just(""),
    staged=STAGED,
    rows=SIZES,
    size=SIZES,
    created_ms=SIZES,
    updated_ms=SIZES,
    signature=NAMES,
    carry_over=st.binary(max_size=20),
)
DISCARDS = st.builds(DiscardFile, path=PATHS)
REPLACED = st.builds(ReplacedFile, path=PATHS, size=SIZES, version=NAMES) | st.builds(
    SupersededFile, path=PATHS, size=SIZES, version=NAMES, by=PATHS, until_ms=SIZES
)
COMMITTABLES = st.lists(PENDING | HELD | DISCARDS | REPLACED, max_size=5)
SECTIONS = st.builds(Section, st.integers(0, 9), st.binary(max_size=50))
BATCHES = st.builds(MicroBatch, query_id=NAMES, batch_id=SIZES, fingerprint=NAMES)
WRITES = st.builds(BatchWrite, txn_id=NAMES, mode=st.sampled_from(SaveMode), remembered_in=NAMES)
OTHERS = (Upkeep(), Finish(), OfflineCompaction(), Operation(what="retain"))
RECORDS = st.builds(
    EpochRecord,
    slot=st.integers(0, 10**12 - 1),
    nonce=NAMES,
    sink_id=NAMES,
    cause=st.one_of(BATCHES, WRITES, st.sampled_from(OTHERS)),
    last_batch=st.none() | BATCHES,
    decided_ms=SIZES,
    rows=SIZES,
    committables=SECTIONS,
    announcement=SECTIONS,
    schema=st.just(EMPTY) | SECTIONS.filter(lambda section: section.data),
    states=st.dictionaries(st.integers(0, 10**6), SECTIONS, max_size=3),
)
RECORD = EpochRecord(
    slot=7,
    nonce="n",
    sink_id="uid-s",
    cause=MicroBatch(query_id="q", batch_id=3, fingerprint="f"),
    last_batch=None,
    decided_ms=1,
    rows=2,
    committables=Section(1, b"[]"),
    states={1: Section(1, b"[]")},
)
RESULT = TaskResult(
    subtask=1, attempt=0, rows=3, committables=Section(1, b"[]"), state=Section(0, b""), metrics={"rows": 3}
)


@given(COMMITTABLES)
def test_committables_come_back(values: list[Any]) -> None:
    """decode(encode(x)) == x, for names that nobody would choose."""
    codec = CommittableCodec()
    assert codec.decode(codec.version, codec.encode(values)) == values


@given(st.lists(HELD, max_size=4))
def test_states_come_back(values: list[HeldFile]) -> None:
    """decode(encode(x)) == x for what a writer leaves open."""
    codec = HeldFileCodec()
    assert codec.decode(codec.version, codec.encode(values)) == values


@given(RECORDS)
def test_records_come_back(record: EpochRecord) -> None:
    """from_bytes(to_bytes(x)) == x for every cause and any sections."""
    assert EpochRecord.from_bytes(record.to_bytes(), where="here") == record


@given(SECTIONS, SECTIONS, st.dictionaries(NAMES, SIZES, max_size=3))
def test_results_come_back(committables: Section, state: Section, metrics: dict[str, int]) -> None:
    """from_bytes(to_bytes(x)) == x for what a task reports."""
    result = replace(RESULT, committables=committables, state=state, metrics=metrics)
    assert TaskResult.from_bytes(result.to_bytes()) == result


def flipped(data: bytes) -> list[bytes]:
    """``data`` with each of its bytes changed, in three ways."""
    masks = (0x01, 0x20, 0xFF)
    return [data[:i] + bytes([data[i] ^ mask]) + data[i + 1 :] for i in range(len(data)) for mask in masks]


def test_no_flipped_byte_of_a_record_goes_unnoticed() -> None:
    """Each byte of a record is covered by its checksum, or by the shape of its first line."""
    for damaged in flipped(RECORD.to_bytes()):
        with pytest.raises(StateError):
            EpochRecord.from_bytes(damaged, where="here")


def test_no_flipped_byte_of_a_result_goes_unnoticed() -> None:
    """The same for what crosses from task to driver."""
    for damaged in flipped(RESULT.to_bytes()):
        with pytest.raises(StateError):
            TaskResult.from_bytes(damaged)


@pytest.mark.parametrize("data", [RECORD.to_bytes(), b""])
def test_no_cut_record_is_read(data: bytes) -> None:
    """A record that ends early, anywhere, is corrupt and never another record."""
    for end in range(len(data)):
        with pytest.raises(StateCorruptError):
            EpochRecord.from_bytes(data[:end], where="here")
    with pytest.raises(StateCorruptError):
        EpochRecord.from_bytes(data + b"x", where="here")


def test_a_newer_version_is_refused_as_such() -> None:
    """Not damaged: written by a newer release, and the message says so."""
    with pytest.raises(StateVersionError):
        unframe("epoch-record", 1, frame("epoch-record", 2, b"{}"), where="here")


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "", "a//b", "a/.", "a\0b"])
def test_a_path_that_leaves_the_base_is_refused(path: str) -> None:
    """Even with the right checksum, no path of a record leads out of the base."""
    codec = CommittableCodec()
    with pytest.raises((SecurityError, StateCorruptError)):
        codec.decode(codec.version, codec.encode([DiscardFile(path=path)]))


@given(st.binary(max_size=200))
def test_bytes_of_others_are_refused(data: bytes) -> None:
    """Whatever stands there instead of a record is refused with a typed error."""
    with pytest.raises(StateError):
        EpochRecord.from_bytes(data, where="here")
