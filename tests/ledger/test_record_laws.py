"""Laws of records that somebody has made: whatever is in one, it is refused or does what a sink may do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filesink.commit.recorded_schema import next_schema
from filesink.commit.task import TaskResult
from filesink.commit.task_results import gather
from filesink.errors import FilesinkError
from filesink.file_sink.tiers import check
from filesink.framing import frame, unframe
from filesink.ledger.record import (
    EMPTY,
    BatchWrite,
    Cause,
    EpochRecord,
    Finish,
    MicroBatch,
    OfflineCompaction,
    Section,
    TakenBack,
)
from filesink.metastore.announcements import Announcement, AnnouncementCodec
from filesink.naming import HiddenName, join, sink_tag
from filesink.operations.maintenance import Lost
from filesink.parts.committables import (
    CommittableCodec,
    DiscardFile,
    HeldFileCodec,
    PendingFile,
    ReplacedFile,
    SupersededFile,
    UndoneFile,
    Watermark,
)
from filesink.ports import Losers
from filesink.save_mode import SaveMode
from filesink.storage.staged import HiddenFile, HiddenObject, PendingUpload, UploadedPart
from tests.fakes import World, held, micro_batch, records

_ATTEMPT = "00000000-0000-4000-8000-000000000001"
_DEEP, _DIGITS = "<deep>", "<digits>"
_OTHERS = ("b/data.csv", "_delta_log/0.json", "b/.hidden.csv")


def _hidden(sink_id: str, bucket: str, *, slot: int = 1) -> str:
    return join(bucket, str(HiddenName(target="p", tag=sink_tag(sink_id), slot=slot, attempt=_ATTEMPT)))


def _part(sink_id: str, bucket: str) -> str:
    return join(bucket, f"part-{sink_tag(sink_id)}-0000-8001-8000-000000000001-0.txt")


def _files(sink_id: str, cause: Cause) -> list[Any]:
    target = _part(sink_id, "b")
    staged = HiddenFile(path=_hidden(sink_id, "b"), size=1, inode=1, mtime_ns=1)
    one = UploadedPart(number=1, etag="e", size=1)
    upload = PendingUpload(target=target, upload_id="i", parts=(one,), size=1, token="t")
    files: list[Any] = [
        PendingFile(bucket="b", target=target, staged=staged, rows=1, size=1),
        PendingFile(bucket="b", target=target, staged=upload, rows=1, size=1),
        DiscardFile(path=_hidden(sink_id, "b", slot=0)),
        Watermark(latest_ms=1, time_zone="UTC"),
    ]
    if not isinstance(cause, MicroBatch):
        files.append(ReplacedFile(path="b/old.txt", size=1, version="1"))
        files.append(SupersededFile(path=_part("uid-x", "b"), size=1, version="1", by=target, until_ms=1))
    if isinstance(cause, TakenBack):
        files.append(UndoneFile(target=target, staged=HiddenObject(path=staged.path, size=1, token="t")))
    return files


def _record(cause: Cause) -> EpochRecord:
    sink_id = "exclusive" if isinstance(cause, OfflineCompaction) else "uid-u"
    held_file = held(_hidden(sink_id, "b"), bucket="b", group=_ATTEMPT)
    news = [
        Announcement(bucket="b", first_seen_ms=1, slot=1, paths=(_part(sink_id, "b"),)),
        Watermark(latest_ms=1, time_zone="UTC"),
    ]
    return EpochRecord(
        slot=1,
        nonce="n",
        sink_id=sink_id,
        cause=cause,
        last_batch=MicroBatch(query_id="q", batch_id=1, fingerprint="f"),
        decided_ms=1,
        rows=1,
        committables=Section.of(CommittableCodec(), _files(sink_id, cause)),
        announcement=Section.of(AnnouncementCodec(), news),
        waiting=Section.of(AnnouncementCodec(), news),
        schema=Section(1, pa.schema([("a", pa.int64())]).serialize().to_pybytes()),
        states={0: Section.of(HeldFileCodec(), [held_file])},
        replaces={"uid-v": 1},
    )


_RECORDS = [
    _record(cause)
    for cause in (
        MicroBatch(query_id="q", batch_id=1, fingerprint="f"),
        BatchWrite(txn_id="t", mode=SaveMode.OVERWRITE, remembered_in=f"txn-{'0' * 32}"),
        Finish(),
        OfflineCompaction(),
        TakenBack(slot=0),
    )
]
_RESULT = TaskResult(
    subtask=0,
    attempt=0,
    rows=1,
    committables=Section.of(CommittableCodec(), _files("uid-u", _RECORDS[0].cause)),
    state=_RECORDS[0].states[0],
    metrics={"rows": 1},
)
_SINKS = ("uid-u", "uid-v")
#: What a field is changed to: paths of everything that is there, and of what is not.
_ELSEWHERE = [
    *_OTHERS,
    *("_filesink/uid-v/000000000000.record", "_filesink/uid-v", "uid-v", "txn-1", "_dead_letters/a"),
    *("", ".", "..", "../x", "/etc/passwd", "a//b", "a\0b", "\ud800", "b/\udc80", "\n\x1b[2J", "é" * 5000),
    *(make(sink_id, bucket) for make in (_hidden, _part) for sink_id in _SINKS for bucket in ("", "b", "_b")),
    _hidden("uid-v", "b", slot=7),
]
#: Other types, ends of ranges, what nobody can read, and words of the format in other places.
_HOSTILE = [
    *(None, True, 1.5, -1, 0, 1, 2, 1 << 63, 1 << 64, 10**4000, _DIGITS, _DEEP, [], {}, [[]], {"a": 1}, "x"),
    *("held", "pending", "discard", "replaced", "undone", "watermark", "upload", "object", "taken-back"),
    *("9999-12-31", "Europe/Berlin", "../../etc/localtime", "overwrite", "state 0", "state 00", "state -7"),
]
_NAMES = {"path", "target", "by", "bucket", "remembered_in", "suffix", "group", "upload_id"}


def _places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if above:
        yield above
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        yield from _places(inner, (*above, step))


def _changed(data: bytes, draw: Any) -> bytes:
    """One line of JSON with something else in one place, or without it."""
    value = json.loads(data)
    places = list(_places(value))
    if not places:
        return data
    names = [place for place in places if place[-1] in _NAMES]
    *path, last = draw(st.sampled_from(names) | st.sampled_from(places) if names else st.sampled_from(places))
    inner = value
    for step in path:
        inner = inner[step]
    if draw(st.integers(0, 9)):
        inner[last] = draw(st.sampled_from(_ELSEWHERE) | st.sampled_from(_HOSTILE))
    else:
        del inner[last]
    text = json.dumps(value)
    text = text.replace(f'"{_DEEP}"', "[" * 100_000 + "]" * 100_000).replace(f'"{_DIGITS}"', "1" * 5000)
    return text.encode()


def _section(section: Section, draw: Any) -> Section:
    return replace(section, data=_changed(section.data, draw))


@st.composite
def _made_by_hand(draw: Any) -> tuple[EpochRecord, bytes]:
    """A record, and its bytes after one of its fields was changed, with the checksum of the new ones."""
    record = draw(st.sampled_from(_RECORDS))
    where = draw(
        st.sampled_from([*["committables"] * 5, "head", "announcement", "waiting", "state", "schema"])
    )
    match where:
        case "state":
            changed = replace(record, states={0: _section(record.states[0], draw)})
        case "schema":
            position = draw(st.integers(0, len(record.schema.data) - 1))
            data = bytearray(record.schema.data)
            data[position] ^= draw(st.integers(1, 255))
            changed = replace(record, schema=replace(record.schema, data=bytes(data)))
        case "head":
            version, payload = unframe("epoch-record", 9, record.to_bytes(), where="here")
            head, _, body = payload.partition(b"\n")
            return record, frame("epoch-record", version, _changed(head, draw) + b"\n" + body)
        case _:
            sections: dict[str, Any] = {where: _section(getattr(record, where), draw)}
            changed = replace(record, **sections)
    return record, changed.to_bytes()


def _paths(record: EpochRecord) -> Iterator[str]:
    """Every path that something may be done to for a record."""
    held_files = [file for section in record.states.values() for file in section.decode(HeldFileCodec())]
    for file in (*record.committables.decode(CommittableCodec()), *held_files):
        staged = getattr(file, "staged", None)
        yield from [] if staged is None else [staged.path, getattr(staged, "target", staged.path)]
        yield from (str(getattr(file, name)) for name in ("target", "path", "by") if hasattr(file, name))
    for news in (record.announcement, record.waiting):
        for one in news.decode(AnnouncementCodec()) if news.data else ():
            yield from (join(one.bucket, "_SUCCESS"), *one.paths) if isinstance(one, Announcement) else ()


@given(_made_by_hand())
def test_a_record_is_refused_or_names_what_a_sink_may_name(made: tuple[EpochRecord, bytes]) -> None:
    """With a typed error; what is left is below the base, in no ledger and in nobody's hidden directory."""
    _, data = made
    record, refused = None, ""
    try:
        record = EpochRecord.from_bytes(data, where="here")
        check(record, "here")
    except FilesinkError as error:
        record, refused = None, str(error)
    assert len(refused) < 1000
    assert not refused or refused.isprintable()
    if record is None:
        return
    tags = {sink_tag(sink_id) for sink_id in (record.sink_id, "exclusive")}
    for path in _paths(record):
        *directories, name = path.split("/")
        assert not {"", ".", ".."} & {*directories, name}
        assert all(one[0] not in "._" for one in directories)
        assert name[0] not in "._" or name == "_SUCCESS" or any(tag in name for tag in tags)


def _world(sink_id: str) -> World:
    """Two sinks that have written, one of them beside files of others."""
    world = World()
    for each in (sink_id, "uid-v"):
        cause = BatchWrite() if each == "exclusive" else micro_batch(0, query_id=each)
        world.driver(each).run(cause, world.job(records(each, bucket="b")))
    for path in (*_OTHERS, _hidden("uid-v", "b", slot=7)):
        world.files.make(path, b"theirs")
    return world


def _go_on(sink_id: str, data: bytes) -> None:
    """Let operator and driver meet a record; typed errors are all that may come of it."""
    world = _world(sink_id)
    world.files.make(f"_filesink/{sink_id}/000000000001.record", data)
    before = {path: file.content for path, file in world.files.files.items() if f"/{sink_id}/" not in path}
    with suppress(FilesinkError):
        world.maintenance().recover(Lost.ACCEPT, None)
    with suppress(FilesinkError):
        world.driver(sink_id).run(micro_batch(2), world.job(records("1", bucket="b")))
    own = {path for path in before if sink_tag(sink_id) in path}
    for path in before.keys() - own:
        assert path in world.files.files
        assert world.files.files[path].content == before[path]


@given(_made_by_hand())
def test_drivers_meet_any_record(made: tuple[EpochRecord, bytes]) -> None:
    """However it was made, they stop with a typed error, and files of others are what they were."""
    original, data = made
    _go_on(original.sink_id, data)


@pytest.mark.parametrize("record", _RECORDS, ids=lambda record: type(record.cause).__name__)
def test_nothing_of_others_goes_for_a_record(record: EpochRecord) -> None:
    """Whichever file it names for whatever is to be done, others' files and ledgers are what they were."""
    entries = json.loads(record.committables.data)
    theirs = [*_OTHERS, _hidden("uid-v", "b", slot=7), "_filesink/uid-v/000000000000.record"]
    for place in _places(entries):
        if place[-1] not in {"path", "target"}:
            continue
        for path in theirs:
            entry = json.loads(record.committables.data)[place[0]]
            inner = entry if len(place) == 2 else entry[place[1]]
            inner[place[-1]] = path
            data = Section(record.committables.version, json.dumps([entry]).encode())
            _go_on(record.sink_id, replace(record, committables=data, announcement=EMPTY).to_bytes())


@st.composite
def _results(draw: Any) -> bytes:
    """The result of a task in which one field is another."""
    where = draw(st.sampled_from(["head", "committables", "state"]))
    if where != "head":
        changed: dict[str, Any] = {where: _section(getattr(_RESULT, where), draw)}
        return replace(_RESULT, **changed).to_bytes()
    version, payload = unframe("task-result", 9, _RESULT.to_bytes(), where="here")
    head, _, body = payload.partition(b"\n")
    return frame("task-result", version, _changed(head, draw) + b"\n" + body)


@given(_results())
def test_a_result_is_refused_or_is_one_of_a_task(data: bytes) -> None:
    """With a typed error; nothing that other tasks or sinks have written is taken from it."""
    with suppress(FilesinkError):
        found = gather(World().tiers(), {}, [data], Losers.NONE, sink_id="uid-u")
        states = [file for held_files in found.prepared.states.values() for file in held_files]
        for file in (*found.prepared.committables, *states):
            if not isinstance(file, Watermark):
                assert sink_tag("uid-u") in str(file)


_COLUMNS = pa.schema(
    [
        ("a", pa.int64()),
        ("é", pa.struct([("b", pa.list_(pa.string())), ("ß", pa.dictionary(pa.int8(), pa.string()))])),
        ("t", pa.timestamp("us", "Europe/Berlin")),
        ("m", pa.map_(pa.string(), pa.decimal128(10, 2))),
    ],
    metadata={"filesink.partition_columns": "[]"},
)


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=4), st.integers(0, 10_000))
def test_columns_are_refused_or_can_be_compared(flips: list[tuple[int, int]], end: int) -> None:
    """Whatever stands in a record instead of the columns, input is compared with it or told what is wrong."""
    data = bytearray(_COLUMNS.serialize().to_pybytes())
    for position, value in flips:
        data[position % len(data)] = value
    section = Section(1, bytes(data[: end or None]))
    world = World()
    world.driver().run(micro_batch(0), world.job(records("1")))
    head = world.ledger().head()
    assert head is not None
    head = replace(head, record=replace(head.record, schema=section))
    with suppress(FilesinkError):
        next_schema(world.tiers(), _COLUMNS, cause=micro_batch(1), head=head, ledger=world.ledger())


@pytest.mark.parametrize("record", _RECORDS, ids=lambda record: type(record.cause).__name__)
def test_the_records_that_are_changed_are_right(record: EpochRecord) -> None:
    """Else the laws of this file would hold of nothing."""
    check(EpochRecord.from_bytes(record.to_bytes(), where="here"), "here")
    gather(World().tiers(), {}, [_RESULT.to_bytes()], Losers.NONE, sink_id="uid-u")
