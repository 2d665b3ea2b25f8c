"""Epoch records: round trips, the bytes of the first release, and whatever else may lie there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filesink.errors import StateCorruptError, StateError, StateVersionError
from filesink.framing import frame, to_json
from filesink.ledger.record import (
    EMPTY,
    BatchWrite,
    EpochRecord,
    Finish,
    MicroBatch,
    OfflineCompaction,
    Operation,
    Section,
    TakenBack,
    Upkeep,
)
from filesink.save_mode import SaveMode

GOLDEN = Path(__file__).parents[1] / "golden"

numbers = st.integers(0, 2**63 - 1)
micro_batches = st.builds(
    MicroBatch, query_id=st.text(max_size=5), batch_id=numbers, fingerprint=st.text(max_size=5)
)
sections = st.builds(Section, st.integers(0, 9), st.binary(max_size=20))
epoch_records = st.builds(
    EpochRecord,
    slot=numbers,
    nonce=st.text(max_size=5),
    sink_id=st.text(max_size=5),
    cause=micro_batches
    | st.builds(
        BatchWrite,
        txn_id=st.text(max_size=5),
        mode=st.sampled_from(SaveMode),
        remembered_in=st.text(max_size=5),
        writer=st.text(max_size=5),
        supersedes=st.text(max_size=5),
    )
    | st.sampled_from([Upkeep(), Finish(), OfflineCompaction(), Operation(what="erase")]),
    last_batch=st.none() | micro_batches,
    decided_ms=numbers,
    rows=numbers,
    committables=sections,
    announcement=sections,
    waiting=st.just(EMPTY) | sections.filter(lambda section: section.data),  # left out if there is nothing
    schema=st.just(EMPTY) | sections.filter(lambda section: section.data),
    states=st.dictionaries(st.integers(0, 300), sections, max_size=3),
    replaces=st.dictionaries(st.text(max_size=5), numbers, max_size=3),
    queries=st.dictionaries(st.text(max_size=5), numbers, max_size=3),
    offsets=st.text(max_size=5),
    after_version=numbers,
    digest=st.text(max_size=5),
)

EXAMPLE = EpochRecord(
    slot=7,
    nonce="00000000-0000-4000-8000-00000000000a",
    sink_id="uid-flights",
    cause=MicroBatch(query_id="q", batch_id=5, fingerprint="ab" * 32),
    last_batch=MicroBatch(query_id="q", batch_id=5, fingerprint="ab" * 32),
    decided_ms=1_700_000_000_000,
    rows=11,
    committables=Section(1, b'[{"kind":"discard","path":"a"}]'),
    announcement=Section(3, b"\n\x00 any bytes \n"),
    states={0: Section(1, b"[]"), 12: Section(1, b"state")},
)


WITH_SCHEMA = replace(EXAMPLE, schema=Section(1, b"columns, as Arrow writes them\n"))
OF_VERSION_3 = replace(
    WITH_SCHEMA,
    cause=BatchWrite(txn_id="t", remembered_in="txn-1", writer="batch-1", supersedes="n"),
    queries={"other": 3, "q": 5},
    digest="1-ab",
)
NEWEST = replace(OF_VERSION_3, offsets='{"topic":{"0":11}}', after_version=41)


def read(data):
    """The record in ``data``."""
    return EpochRecord.from_bytes(data, where="_filesink/x/7.record")


@given(epoch_records)
def test_records_come_back(record):
    """Whatever a record holds, opaque bytes with line feeds too, it is read as it was written."""
    assert read(record.to_bytes()) == record


def test_a_record_of_version_1_is_read():
    """A checked-in record, from before records had a schema, gives the same values for ever."""
    assert read((GOLDEN / "epoch-record-1").read_bytes()) == EXAMPLE


def test_a_record_of_version_2_is_read():
    """And it is known to be one: no mark of such a release says which record it is of."""
    record = read((GOLDEN / "epoch-record-2").read_bytes())
    assert record == WITH_SCHEMA
    assert record.version == 2


def test_a_record_of_version_3_is_read():
    """From before epochs had a version of the path, and offsets on record."""
    assert read((GOLDEN / "epoch-record-3").read_bytes()) == OF_VERSION_3


def test_a_record_of_version_4_is_written():
    """Writing the same record gives the same bytes; else the version has to go up."""
    assert NEWEST.to_bytes() == (GOLDEN / "epoch-record-4").read_bytes()
    assert read(NEWEST.to_bytes()) == NEWEST


def test_a_record_of_version_5_is_written_of_an_operation_only():
    """Earlier releases read all others, and say of this one that it is of a newer release."""
    record = replace(NEWEST, sink_id="exclusive", cause=Operation(what="retain"))
    assert record.to_bytes() == (GOLDEN / "epoch-record-5").read_bytes()
    assert read(record.to_bytes()) == record
    assert read(record.to_bytes()).version == 5
    assert read(NEWEST.to_bytes()).version == 4


@pytest.mark.parametrize(
    ("cause", "plain"),
    [
        (
            BatchWrite(txn_id="t", mode=SaveMode.OVERWRITE_PARTITIONS, remembered_in="txn-1"),
            {"kind": "batch-write", "txn_id": "t", "mode": "overwrite_partitions", "remembered_in": "txn-1"},
        ),
        (Upkeep(), {"kind": "upkeep"}),
        (Finish(), {"kind": "finish"}),
        (OfflineCompaction(), {"kind": "offline-compaction"}),
        (Operation(what="retain"), {"kind": "operation", "what": "retain"}),
        (TakenBack(slot=6), {"kind": "taken-back", "slot": 6}),
    ],
)
def test_other_causes_are_written_as_by_every_release(cause, plain):
    """And what waits; the first records of a release that knows another name would be damage to this one."""
    record = replace(EXAMPLE, cause=cause, waiting=Section(1, b"[]"))
    head = json.loads(record.to_bytes().splitlines()[1])
    assert head["cause"] == plain
    assert [name for name, _, _ in head["sections"]][1:3] == ["announcement", "waiting"]


def test_what_a_write_replaces_is_written_only_if_there_is_something():
    """All other records look as those of releases that did not note it."""
    record = replace(EXAMPLE, replaces={"uid-b": 7, "uid-a": 0})
    assert b'"replaces":{"uid-a":0,"uid-b":7}' in record.to_bytes()
    assert b"replaces" not in EXAMPLE.to_bytes()


def test_every_flipped_byte_is_noticed():
    """No byte of a record, header included, can be another one unnoticed."""
    data = EXAMPLE.to_bytes()
    for position in range(len(data)):
        for mask in (0x01, 0x20, 0xFF):
            damaged = bytearray(data)
            damaged[position] ^= mask
            with pytest.raises(StateError):
                read(bytes(damaged))


def test_a_newer_record_is_refused_with_a_sentence():
    """An older release does not guess what a newer one meant."""
    with pytest.raises(
        StateVersionError, match=r"7\.record has version 6, this release reads 1 to 5; upgrade"
    ):
        read(frame("epoch-record", 6, b"{}\n"))


def head_and_body():
    """The example's JSON line as a dict, and its sections."""
    line, _, body = EXAMPLE.to_bytes().partition(b"\n")[2].partition(b"\n")
    return json.loads(line), body


def mutations():
    """Each field of the head missing or of another type, with a right checksum."""
    head, _ = head_and_body()
    for name in head:
        yield pytest.param({key: value for key, value in head.items() if key != name}, id=f"no-{name}")
        for wrong in (1.5, True, [], {}, -1, [["a", 1, 0]], 7 if isinstance(head[name], str) else "zz"):
            yield pytest.param({**head, name: wrong}, id=f"{name}-{wrong!r}")
    for name in head["cause"]:
        for wrong in (None, 1.5, [], -1, 7 if isinstance(head["cause"][name], str) else "zz"):
            yield pytest.param(
                {**head, "cause": {**head["cause"], name: wrong}}, id=f"cause-{name}-{wrong!r}"
            )
    yield pytest.param({**head, "last_batch": {"kind": "upkeep"}}, id="last-batch-upkeep")
    yield pytest.param({**head, "more": 1}, id="more")
    yield pytest.param({**head, "cause": None}, id="no-cause")
    for wrong in ({"uid-a": "1"}, {"uid-a": None}, [], 7, None):
        yield pytest.param({**head, "replaces": wrong}, id=f"replaces-{wrong!r}")


@pytest.mark.parametrize("head", list(mutations()))
def test_wrong_heads_are_damage(head):
    """A field that is missing, unknown or of another type is damage, checksum or not."""
    _, body = head_and_body()
    with pytest.raises(StateCorruptError):
        read(frame("epoch-record", 1, to_json(head) + b"\n" + body))


@pytest.mark.parametrize(
    "entry",
    [
        ["committables", 1, 2**63],
        ["committables", 1, -1],
        ["committables", "1", 3],
        ["committables", 1, 3.0],
        ["committables", 1],
        [7, 1, 3],
        "committables",
        ["state x", 1, 3],
        ["stat 1", 1, 3],
    ],
)
def test_wrong_sections_are_damage(entry):
    """Lengths are compared before anything is cut out; names and versions are checked."""
    head, body = head_and_body()
    changed = {**head, "sections": [*head["sections"][1:], entry]}
    with pytest.raises(StateCorruptError):
        read(frame("epoch-record", 1, to_json(changed) + b"\n" + body))


@pytest.mark.parametrize("extra", [["state 0", 1, 2], ["committables", 1, 2]])
def test_two_sections_of_one_name_are_damage(extra):
    """It cannot be told which of the two is meant."""
    head, body = head_and_body()
    head["sections"].append(extra)
    with pytest.raises(StateCorruptError):
        read(frame("epoch-record", 1, to_json(head) + b"\n" + body + b"[]\n"))


def test_bytes_that_no_section_names_are_damage():
    """A body longer than its sections was not written by this code."""
    head, body = head_and_body()
    with pytest.raises(StateCorruptError):
        read(frame("epoch-record", 1, to_json(head) + b"\n" + body + b"x"))


def test_large_records_are_small_on_disk():
    """A record of ten thousand files is compressed, and read back."""
    record = replace(EXAMPLE, committables=Section(1, b'{"kind":"discard","path":"a"},' * 10_000))
    assert len(record.to_bytes()) < 20_000
    assert read(record.to_bytes()) == record
