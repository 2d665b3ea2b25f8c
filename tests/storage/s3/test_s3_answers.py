"""Answers of S3 that say less than they seem to: lost, late, contradictory. See ``s3_publish``."""

from __future__ import annotations

import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from filesink.errors import (
    BucketError,
    CommitConflictError,
    CommitStateUnknown,
    ConfigError,
    InternalError,
    StagedDataLost,
    StateError,
    StorageError,
)
from filesink.storage.api import Kind, PutResult, Removal
from filesink.storage.objects import concat as s3_concat
from filesink.storage.objects.api import (
    BAD_PARTS,
    EXISTS,
    GIB,
    KIB,
    MIB,
    NO_UPLOAD,
    RACE,
    SMALLEST_PART,
    UNAVAILABLE,
    Condition,
    ObjectInfo,
)
from filesink.storage.objects.multipart import Senders
from filesink.storage.objects.options import ConditionalWrites
from filesink.storage.s3.options import S3Options
from filesink.storage.s3.store import S3Store
from filesink.storage.staged import HiddenFile, HiddenObject
from filesink.system import SystemIds
from tests.contracts.store_site import hold, stage
from tests.fakes import SettableClock
from tests.storage.fake_objects import AFTER, BEFORE, FakeObjects, refused

TARGET = "a/part-0.parquet"
DAY_MS = 24 * 3600 * 1000


def store_of(objects, **options):
    """A store on ``objects``, as another process would make it."""
    return S3Store(objects, "", options=S3Options(**options), clock=SettableClock(), ids=SystemIds())


@pytest.fixture(params=[True, False], ids=["forgets uploads", "repeats completions"])
def objects(request):
    """Both personalities: what they answer to a completion that was done already differs."""
    return FakeObjects(forgets_uploads=request.param)


@pytest.fixture
def store(objects):
    """One process's store."""
    return store_of(objects)


@pytest.mark.parametrize("code", [UNAVAILABLE, NO_UPLOAD, EXISTS, RACE, BAD_PARTS, "REFUSED"])
def test_whatever_is_answered_after_the_effect_it_is_done(objects, store, code):
    """The completion took effect and its answer was lost, or a retry of the client got another one."""
    staged = stage(store, TARGET, b"abc")
    objects.faults = [("complete", AFTER, refused(code))]
    store.publish(staged, TARGET)
    assert objects.objects[TARGET][0] == b"abc"
    store.publish(staged, TARGET)


@pytest.mark.parametrize("code", [UNAVAILABLE, EXISTS, "PERMISSION", "REFUSED"])
def test_an_upload_that_still_waits_is_tried_again(objects, store, code):
    """Nothing stands under the key and the upload is as it was: not done, and not lost."""
    staged = stage(store, TARGET, b"abc")
    objects.faults = [("complete", BEFORE, refused(code))]
    with pytest.raises(StorageError) as raised:
        store.publish(staged, TARGET)
    assert raised.value.code == code
    assert not isinstance(raised.value, StagedDataLost)
    store.publish(staged, TARGET)
    assert objects.objects[TARGET][0] == b"abc"


@pytest.mark.parametrize("foreign", [b"xyz", b"abc", b""])
def test_another_object_is_a_conflict_even_if_it_looks_the_same(objects, store, foreign):
    """Length and bytes prove nothing: only the token does."""
    staged = stage(store, TARGET, b"abc")
    objects.objects[TARGET] = (foreign, "")
    with pytest.raises(CommitConflictError):
        store.publish(staged, TARGET)
    assert not store.is_published(staged, TARGET)
    assert objects.objects[TARGET] == (foreign, "")


def test_a_404_after_the_effect_is_looked_into(objects, store):
    """Some servers say no more than that of an upload that is completed."""
    staged = stage(store, TARGET, b"abc")
    objects.faults = [("complete", AFTER, FileNotFoundError(TARGET))]
    store.publish(staged, TARGET)
    assert objects.objects[TARGET][0] == b"abc"


def test_a_404_of_an_upload_that_still_waits_is_an_error_of_the_store(objects, store):
    """One of ours, which callers know; the upload is tried again."""
    staged = stage(store, TARGET, b"abc")
    objects.faults = [("complete", BEFORE, FileNotFoundError(TARGET))]
    with pytest.raises(StorageError) as raised:
        store.publish(staged, TARGET)
    assert raised.value.code == NO_UPLOAD
    store.publish(staged, TARGET)


def test_after_409_the_last_try_is_without_the_condition(objects, store):
    """The key is ours and new, so nobody else can be writing it; the upload is never sent again."""
    staged = stage(store, TARGET, b"abc")
    conditions = []
    objects.on_complete = conditions.append
    objects.faults = [("complete", BEFORE, refused(RACE))] * 2
    store.publish(staged, TARGET)
    assert conditions == [Condition.IF_ABSENT, Condition.IF_ABSENT, Condition.ALWAYS]
    assert objects.objects[TARGET][0] == b"abc"


def test_a_409_for_ever_is_an_error_and_nothing_is_lost(objects, store):
    """Three times at once, then the epoch's own retries."""
    staged = stage(store, TARGET, b"abc")
    objects.faults = [("complete", BEFORE, refused(RACE))] * 3
    with pytest.raises(StorageError) as raised:
        store.publish(staged, TARGET)
    assert raised.value.code == RACE
    store.verify(staged)


def test_an_upload_that_was_aborted_is_lost_after_a_second_look(objects, store):
    """A rule of the bucket, or somebody, took it away."""
    staged = stage(store, TARGET, b"abc")
    objects.uploads.clear()
    with pytest.raises(StagedDataLost):
        store.publish(staged, TARGET)
    assert store.is_lost(staged, TARGET)
    assert objects.calls.count("head") >= 2


def test_a_completion_by_another_driver_is_seen_at_the_second_look(objects):
    """Between our look at the key and our look at the upload, another driver completed it."""
    store = store_of(objects)
    staged = stage(store, TARGET, b"abc")
    other = store_of(objects)
    objects.faults = [("complete", BEFORE, refused(NO_UPLOAD))]
    look = objects.list_parts

    def complete_first(key, upload_id):
        objects.list_parts = look
        other.publish(staged, TARGET)
        return look(key, upload_id)

    objects.list_parts = complete_first
    store.publish(staged, TARGET)


@pytest.mark.parametrize("operation", ["head", "list_parts"])
def test_a_look_that_fails_is_not_absence(objects, store, operation):
    """Unknown stays unknown: the step raises and is repeated."""
    staged = stage(store, TARGET, b"abc")
    objects.faults = [("complete", BEFORE, refused(UNAVAILABLE)), (operation, BEFORE, refused(UNAVAILABLE))]
    with pytest.raises(StorageError) as raised:
        store.publish(staged, TARGET)
    assert raised.value.code == UNAVAILABLE
    assert not isinstance(raised.value, StagedDataLost)


def test_a_part_that_a_zombie_replaced_is_lost_data(objects, store):
    """Its etag changed, so the store refuses to complete, and nothing wrong becomes visible."""
    staged = stage(store, TARGET, b"abc")
    next(iter(objects.uploads.values())).parts[1] = b"xyz"
    for step in (store.verify, lambda staged: store.publish(staged, TARGET)):
        with pytest.raises(StagedDataLost):
            step(staged)
    assert objects.objects == {}


def test_a_part_that_a_zombie_has_added_is_a_change(objects, store):
    """What waits is not what was reported, though all that was reported is there."""
    staged = stage(store, TARGET, b"abc")
    next(iter(objects.uploads.values())).parts[2] = b"late"
    with pytest.raises(StagedDataLost):
        store.verify(staged)


def test_etags_are_the_same_with_and_without_quotes(objects, store):
    """Some servers quote them in some answers only; an upload that waits is not lost by that."""
    staged = stage(store, TARGET, b"abc")
    listed = objects.list_parts
    objects.list_parts = lambda key, upload_id: [
        replace(part, etag=part.etag.strip('"')) for part in listed(key, upload_id)
    ]
    store.verify(staged)


def test_a_second_look_comes_a_moment_later(objects):
    """Another driver that has just completed the upload may need that long to be seen."""
    clock = SettableClock()
    store = S3Store(objects, "", options=S3Options(), clock=clock, ids=SystemIds())
    staged = stage(store, TARGET, b"abc")
    objects.uploads.clear()
    with pytest.raises(StagedDataLost):
        store.publish(staged, TARGET)
    assert clock.slept == [1]


# --- records --------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [UNAVAILABLE, EXISTS, RACE])
def test_a_record_whose_answer_was_lost_is_ours(objects, store, code):
    """The client's own retry finds the key taken, by us."""
    objects.faults = [("put", AFTER, refused(code))]
    assert store.put_if_absent("r", b"1") is PutResult.CREATED
    assert store_of(objects).put_if_absent("r", b"2") is PutResult.EXISTS


def test_a_record_that_may_still_appear_is_unknown(objects, store):
    """A request without an answer can take effect later, so nothing may be discarded."""
    objects.faults = [("put", BEFORE, refused(UNAVAILABLE))]
    with pytest.raises(CommitStateUnknown):
        store.put_if_absent("r", b"1")


def test_a_record_that_cannot_be_looked_at_is_unknown(objects, store):
    """Neither the answer nor the key tells."""
    objects.faults = [("put", AFTER, refused(UNAVAILABLE)), ("head", BEFORE, refused("PERMISSION"))]
    with pytest.raises(CommitStateUnknown):
        store.put_if_absent("r", b"1")


def test_a_refused_record_was_not_created(objects, store):
    """Without permission nothing was done, for sure."""
    objects.faults = [("put", BEFORE, refused("PERMISSION"))]
    with pytest.raises(StorageError) as raised:
        store.put_if_absent("r", b"1")
    assert not isinstance(raised.value, CommitStateUnknown)


@pytest.mark.parametrize("times", [1, 3])
def test_a_409_on_a_record_is_tried_again(objects, store, times):
    """It says that nothing was done."""
    objects.faults = [("put", BEFORE, refused(RACE))] * times
    assert store.put_if_absent("r", b"1") is PutResult.CREATED


def test_the_tries_after_a_409_are_spread(objects):
    """Whoever it was that was in the way gets time to end, a little more with each try."""
    clock = SettableClock()
    store = S3Store(objects, "", options=S3Options(), clock=clock, ids=SystemIds())
    objects.faults = [("put", BEFORE, refused(RACE))] * 3
    store.put_if_absent("r", b"1")
    assert clock.slept == [0.1, 0.2, 0.4]


def test_a_record_in_whose_way_nothing_stands_any_more_is_tried_again(objects, store):
    """The condition did not hold, and what stood there is gone: this driver may still make it."""
    objects.faults = [("put", BEFORE, refused(EXISTS))]
    assert store.put_if_absent("r", b"1") is PutResult.CREATED


@pytest.mark.parametrize("last", [RACE, "PERMISSION"])
def test_a_409_for_ever_on_a_record_is_unknown(objects, store, last):
    """What is under way under that key may be our own request, given up by the client: it may win."""
    objects.faults = [*[("put", BEFORE, refused(RACE))] * 3, ("put", BEFORE, refused(last))]
    with pytest.raises(CommitStateUnknown):
        store.put_if_absent("r", b"1")
    assert not objects.faults


# --- files of an attempt --------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["create_upload", "upload_part"])
def test_an_attempt_that_fails_reports_nothing_and_leaves_nothing(objects, store, operation):
    """The task fails; what it began is aborted."""
    output = store.create(".hidden", target=TARGET)
    output.write(b"abc")
    objects.faults = [(operation, BEFORE, refused(UNAVAILABLE))]
    with pytest.raises(StorageError):
        output.close()
    output.discard()
    output.discard()
    assert (objects.objects, objects.uploads) == ({}, {})


def test_a_discarded_file_of_many_parts_leaves_nothing(objects):
    """Parts on their way are waited for, else one could land after the abort."""
    store = store_of(objects, part_size=SMALLEST_PART)
    send, begun = objects.upload_part, threading.Event()

    def upload_part(*upload, **part):
        begun.set()
        time.sleep(0.02)  # long enough for an abort that does not wait
        return send(*upload, **part)

    objects.upload_part = upload_part
    output = store.create(".hidden", target=TARGET)
    output.write(bytes(3 * SMALLEST_PART + 1))
    assert begun.wait(timeout=20)
    output.discard()
    store.sync()
    assert objects.calls[-1] == "abort"
    assert objects.uploads == {}


def test_files_of_many_parts_are_whole(objects):
    """Bytes come in any portions; parts are of the size that was asked for, the last is what is left."""
    store = store_of(objects, part_size=SMALLEST_PART)
    data = bytes(range(256)) * (3 * SMALLEST_PART // 256) + b"end"
    for path, target in ((".pending", TARGET), (".held", None)):
        output = store.create(path, target=target)
        for start in range(0, len(data), 3_333_333):
            output.write(memoryview(data)[start : start + 3_333_333])
        staged = output.close()
        assert staged.size == len(data)
        if target is not None:
            assert [part.size for part in staged.parts] == [SMALLEST_PART] * 3 + [3]
            store.publish(staged, target)
    assert objects.objects[TARGET][0] == objects.objects[".held"][0] == data


@pytest.mark.parametrize("failing", [1, 2])
def test_a_file_is_not_closed_without_what_failed(objects, monkeypatch, failing):
    """Whichever part was not taken: with fewer or more bytes than were written it is no file."""
    store = store_of(objects, part_size=SMALLEST_PART)
    submit, calls = Senders.submit, iter(range(1, 9))

    def fails_once(senders, call):
        if next(calls) == failing:
            raise RuntimeError("can't start new thread")
        return submit(senders, call)

    monkeypatch.setattr(Senders, "submit", fails_once)
    output = store.create(".pending", target=TARGET)
    output.write(b"abc")
    with pytest.raises(RuntimeError):
        output.write(bytes(3 * SMALLEST_PART))
    with pytest.raises(StorageError) as raised:
        output.close()
    assert raised.value.code == "SIZE"


@pytest.mark.parametrize("size", [3, 2 * SMALLEST_PART], ids=["put", "upload"])
def test_what_another_attempt_has_made_survives_the_discard(objects, size):
    """A name that is taken is refused, and its object is not that of the file that was refused."""
    store = store_of(objects, part_size=SMALLEST_PART)
    objects.objects[".held"] = (b"another's", "another")
    output = store.create(".held", target=None)
    output.write(bytes(size))
    with pytest.raises(CommitConflictError):
        output.close()
    output.discard()
    assert (objects.objects, objects.uploads) == ({".held": (b"another's", "another")}, {})


@pytest.mark.parametrize(("operation", "size"), [("put", 3), ("complete", 2 * SMALLEST_PART)])
def test_a_held_file_whose_answer_was_lost_is_discarded(objects, operation, size):
    """It may have been made, so it is removed with what else was begun: its name is nobody else's."""
    store = store_of(objects, part_size=SMALLEST_PART)
    objects.faults = [(operation, AFTER, refused(UNAVAILABLE)), ("head", BEFORE, refused(UNAVAILABLE))]
    output = store.create(".held", target=None)
    output.write(bytes(size))
    with pytest.raises(StorageError):
        output.close()
    assert list(objects.objects) == [".held"]
    output.discard()
    assert (objects.objects, objects.uploads) == ({}, {})


def test_an_upload_becomes_what_it_was_begun_for(objects, store):
    """Under another name it would be a file that nobody looks for."""
    staged = stage(store, TARGET, b"abc")
    for step in (store.publish, store.is_published):
        with pytest.raises(InternalError) as raised:
            step(staged, "a/part-1.parquet")
        assert raised.value.code == "TARGET"
    assert objects.objects == {}


def test_large_pieces_are_copied_and_small_ones_joined(objects):
    """No part but the last is too small, and the bytes are in order."""
    store = store_of(objects)
    sizes = (1, SMALLEST_PART, 7, 3 * SMALLEST_PART, SMALLEST_PART - 1, 2, SMALLEST_PART + 3, 0, 5)
    pieces = [bytes([65 + n]) * size for n, size in enumerate(sizes)]
    held = [hold(store, f"a/part-{n}", piece) for n, piece in enumerate(pieces)]
    merged = store.concat([*held, b"tail"], ".merged", target=TARGET)
    assert all(part.size >= SMALLEST_PART for part in merged.parts[:-1])
    store.publish(merged, TARGET)
    assert objects.objects[TARGET][0] == b"".join(pieces) + b"tail"


@pytest.mark.parametrize("change", [FileNotFoundError(TARGET), refused(EXISTS)], ids=["gone", "another"])
def test_a_source_that_changes_while_it_is_joined_is_lost_data(objects, store, change):
    """The look before saw it, the copy does not: the upload that was begun is given up."""
    held = [hold(store, f"a/part-{n}", bytes(SMALLEST_PART)) for n in range(2)]

    def copy_part(*_arguments, **_options):
        raise change

    objects.copy_part = copy_part
    with pytest.raises(StagedDataLost):
        store.concat(held, ".merged", target=TARGET)
    assert objects.uploads == {}


@pytest.mark.parametrize("size", [3, SMALLEST_PART], ids=["read", "copied"])
def test_what_stands_in_a_source_s_place_is_not_joined(objects, store, size):
    """It was put there after the look: of its length, but of another etag."""
    held = [hold(store, f"a/part-{n}", bytes(size)) for n in range(2)]
    look = objects.head

    def head(key):
        found = look(key)
        objects.objects[key] = (b"x" * size, "another")
        return found

    objects.head = head
    with pytest.raises(StagedDataLost):
        store.concat(held, ".merged", target=TARGET)
    assert objects.uploads == {}


def test_a_store_that_cannot_copy_is_sent_the_bytes(objects, store):
    """It is found out in the middle of an upload, which is begun anew, and the first one given up."""
    held = [hold(store, f"a/part-{n}", bytes([65 + n]) * SMALLEST_PART) for n in range(2)]
    objects.copy_part = lambda *_arguments, **_options: None
    merged = store.concat(held, ".merged", target=TARGET)
    assert len(objects.uploads) == 1
    store.publish(merged, TARGET)
    assert objects.objects[TARGET][0] == b"A" * SMALLEST_PART + b"B" * SMALLEST_PART


def test_why_a_join_failed_is_told_although_its_upload_stays(objects, store):
    """The sweep aborts that one; whoever joins learns that the source was lost."""
    held = [hold(store, f"a/part-{n}", bytes(SMALLEST_PART)) for n in range(2)]
    objects.faults = [("upload_part", BEFORE, refused(EXISTS)), ("abort", BEFORE, refused(UNAVAILABLE))]
    with pytest.raises(StagedDataLost):
        store.concat(held, ".merged", target=TARGET)
    assert objects.faults == []


def test_large_copies_are_made_in_even_steps(objects, store, monkeypatch):
    """No step is larger than may be, and none so small that it could not be a part."""
    monkeypatch.setattr(s3_concat, "_LARGEST_COPY", 2 * SMALLEST_PART)
    held = [hold(store, f"a/part-{n}", bytes([n]) * (5 * SMALLEST_PART + n)) for n in range(2)]
    merged = store.concat(held, ".merged", target=TARGET)
    assert len(merged.parts) == 6
    assert all(SMALLEST_PART <= part.size <= 2 * SMALLEST_PART for part in merged.parts)
    store.publish(merged, TARGET)
    assert objects.objects[TARGET][0] == bytes(5 * SMALLEST_PART) + b"\x01" * (5 * SMALLEST_PART + 1)


@pytest.mark.parametrize(
    ("size", "can_copy", "most"), [(12 * GIB, True, 5 * GIB), (40 * MIB, False, 16 * MIB)]
)
def test_no_request_is_for_more_than_a_store_or_a_driver_can_take(objects, store, size, can_copy, most):
    """S3 copies 5 GiB at once; where it cannot copy, what is read is held in memory."""
    asked = []
    objects.head = lambda _key: ObjectInfo(size=size, etag="e", mtime_ms=0, token="t")
    objects.get = lambda _key, *, start, end, **_: asked.append(end - start) or bytes(end - start)
    objects.copy_part = lambda *_upload, number, source: (
        (asked.append(source.end - source.start) or f"e{number}") if can_copy else None
    )
    merged = store.concat([HiddenObject(path="a/x", size=size, token="t")], ".merged", target=TARGET)
    assert merged.size == sum(asked) == size
    assert max(asked) <= most


def test_a_file_of_another_kind_of_store_is_refused(objects, store):
    """The base path was moved while files were held: they are neither absent nor lost, but elsewhere."""
    staged = HiddenFile(path="a/.x", size=3, inode=1, mtime_ns=1)
    steps = (
        lambda: store.verify(staged),
        lambda: store.promote(staged, TARGET),
        lambda: store.publish(staged, TARGET),
        lambda: store.concat([staged, b""], ".merged", target=TARGET),
    )
    for step in steps:
        with pytest.raises(StateError) as raised:
            step()
        assert raised.value.code == "OTHER_STORE"
    assert (objects.objects, objects.uploads) == ({}, {})


def test_nothing_joined_is_an_empty_file(objects, store):
    """An upload needs one part at least."""
    merged = store.concat([hold(store, "a/x")], ".merged", target=TARGET)
    store.publish(merged, TARGET)
    assert objects.objects[TARGET][0] == b""


@pytest.mark.parametrize("deeper", [False, True], ids=["by level", "all below"])
def test_an_upload_alone_in_its_directory_is_found(objects, store, deeper):
    """Of an attempt that died before any object was there: the sweep walks down to it by listings."""
    objects.lists_deeper_uploads = deeper
    output = store.create("a/b/.hidden", target="a/b/part-0")
    output.write(b"abc")
    output.close()
    for directory, name in (("", "a"), ("a", "b")):
        (entry,) = store.list(directory)
        assert (entry.name, entry.kind) == (name, Kind.DIRECTORY)
    (entry,) = store.list("a/b")
    assert entry.kind is Kind.FILE
    store.discard(f"a/b/{entry.name}")
    assert objects.uploads == {}


def test_an_object_that_goes_while_it_is_read_is_an_error_of_the_store(objects, store):
    """As a late attempt of a merge sees it, whose inputs went with the epoch that took another's file."""
    objects.put("k", b"abc", token="t", condition=Condition.ALWAYS)
    with store.open_input("k") as file:
        objects.delete("k")
        with pytest.raises(StorageError, match="removed meanwhile"):
            file.read()


# --- at the start ---------------------------------------------------------------------------------


def test_a_good_store_is_accepted_and_left_as_it_was(objects, store):
    """The probe leaves neither objects nor uploads."""
    store.prepare()
    assert (objects.objects, objects.uploads) == ({}, {})


def test_an_answer_that_was_lost_at_the_start_is_no_failure(objects, store):
    """The client repeats the first request of the probe, and meets its own object."""
    objects.faults = [("put", AFTER, refused(EXISTS))]
    store.prepare()
    assert (objects.objects, objects.uploads, objects.faults) == ({}, {}, [])


@pytest.mark.parametrize("operation", ["list_uploads", "complete", "upload_part", "head"])
def test_a_start_that_fails_leaves_nothing(objects, operation):
    """Whichever request of the probe is answered with an error, what it had made is removed."""
    objects.faults = [(operation, BEFORE, refused(UNAVAILABLE))]
    with pytest.raises(StorageError):
        store_of(objects).prepare()
    assert (objects.objects, objects.uploads, objects.faults) == ({}, {}, [])


def test_a_store_where_nothing_can_be_removed_is_named_once_and_gets_one_probe(caplog):
    """Found out before anything is made; a hundred starts leave one object, and prove as much as ever."""
    objects = FakeObjects(deletes=False)
    for _ in range(3):
        store = store_of(objects)
        store.prepare()
        assert store.removal() is Removal.REFUSED
    assert (list(objects.objects), objects.uploads) == (["_filesink/.probe.kept"], {})
    assert caplog.text.count("does not let these credentials delete") == 3
    objects.conditions = False
    with pytest.raises(ConfigError, match="If-None-Match"):
        store_of(objects).prepare()


def test_a_rule_that_keeps_what_is_there_is_found_too():
    """Some refuse to remove an object, and not to remove none."""
    store = store_of(FakeObjects(keeps_probes=True))
    store.prepare()
    assert store.removal() is Removal.REFUSED


def test_whether_files_can_be_removed_is_asked_without_a_trace(objects):
    """Of a store that was not prepared, as the driver of an overwrite has it; an outage is no answer."""
    assert store_of(objects).removal() is Removal.ALLOWED
    assert objects.objects == {}
    objects.faults = [("delete", BEFORE, refused(UNAVAILABLE))]
    with pytest.raises(StorageError):
        store_of(objects).removal()


@pytest.mark.parametrize("whole", [False, True])
def test_a_store_that_drops_uploads_unasked_is_named(caplog, whole):
    """MinIO shows it by how it lists them; what it does with those that wait is a setting of its own."""
    objects = FakeObjects(lists_whole_keys=whole)
    store_of(objects).prepare()
    assert ("stale_uploads_expiry" in caplog.text) is whole
    assert objects.uploads == {}


@pytest.mark.parametrize(
    ("trait", "code"),
    [
        ({"conditions": False}, "NO_EXCLUSIVE_PUBLISH"),
        ({"unconditional": "put"}, "NO_EXCLUSIVE_PUBLISH"),
        ({"unconditional": "complete"}, "NO_EXCLUSIVE_PUBLISH"),
        ({"keeps_metadata": False}, "NO_METADATA"),
        ({"abort_ms": 2 * DAY_MS - 1}, "LIFECYCLE"),
    ],
)
def test_stores_that_cannot_keep_the_promise_are_refused(trait, code):
    """Found by trying, before anything is written."""
    objects = FakeObjects(**trait)
    with pytest.raises(ConfigError) as raised:
        store_of(objects).prepare()
    assert raised.value.code == code
    assert (objects.objects, objects.uploads) == ({}, {})


def test_what_starts_that_died_have_left_is_removed_a_day_later():
    """Objects and uploads of probes, by the store's own time; those of a start that goes on stay."""
    objects = FakeObjects()
    path = "_filesink/.probe.00000000-0000-4000-8000-000000000001"
    objects.put(path, b"1", token="t", condition=Condition.ALWAYS)
    objects.create_upload(path, token="t")
    for now_ms, left in ((DAY_MS, 1), (DAY_MS + 1, 0)):
        clock = SettableClock(now=now_ms)
        S3Store(objects, "", options=S3Options(), clock=clock, ids=SystemIds()).prepare()
        assert (len(objects.objects), len(objects.uploads)) == (left, left)


def test_a_rule_that_leaves_time_enough_is_accepted():
    """A week is what Amazon recommends."""
    store_of(FakeObjects(abort_ms=7 * DAY_MS)).prepare()


def test_one_driver_may_do_without_conditions():
    """The user says so by name; then the key is looked at before each write."""
    objects = FakeObjects(conditions=False)
    store = store_of(objects, conditional_writes=ConditionalWrites.ONE_DRIVER)
    store.prepare()
    assert store.put_if_absent("r", b"1") is PutResult.CREATED
    assert store.put_if_absent("r", b"2") is PutResult.EXISTS
    staged = stage(store, TARGET, b"abc")
    objects.objects[TARGET] = (b"abc", "")
    with pytest.raises(CommitConflictError):
        store.publish(staged, TARGET)
    assert objects.objects[TARGET] == (b"abc", "")


def test_a_store_without_conditions_is_asked_for_none(objects):
    """Some refuse a request that has one: whoever vouches for one driver can write there."""
    store = store_of(objects, conditional_writes=ConditionalWrites.ONE_DRIVER)
    asked, put = [], objects.put
    objects.on_complete = asked.append
    objects.put = lambda *what, **how: asked.append(how["condition"]) or put(*what, **how)
    assert store.put_if_absent("r", b"1") is PutResult.CREATED
    store.publish(stage(store, TARGET, b"abc"), TARGET)
    assert asked == [Condition.ALWAYS] * 2


def test_memory_is_written_over_when_its_part_was_sent_and_not_before(objects):
    """Two files grow beside one another: each has its own bytes, in the memory of four parts at most."""
    store = store_of(objects, part_size=SMALLEST_PART, max_concurrency=2)
    send, places = objects.upload_part, set()

    def upload_part(key, upload_id, *, number, data):
        before = bytes(data)
        places.add(id(data))
        time.sleep(0.01)  # long enough for the next part to be written
        assert data == before
        return send(key, upload_id, number=number, data=before)

    objects.upload_part = upload_part
    outputs = {f"t{number}": store.create(f".{number}", target=f"t{number}") for number in range(2)}
    expected = dict.fromkeys(outputs, b"")
    for piece in range(14):
        for target, output in outputs.items():
            data = bytes([piece]) + target.encode() * 700_000
            output.write(data)
            expected[target] += data
    for target, output in outputs.items():
        store.publish(output.close(), target)
        assert objects.objects[target][0] == expected[target]
    assert len(places) <= 4


def test_closed_files_hold_no_parts():
    """A task keeps what it has closed until it ends, and no byte of it."""

    class Forgetful(FakeObjects):
        def upload_part(self, key, upload_id, *, number, data):
            del key, upload_id, data
            return f"e{number}"

    part = 64 * KIB
    store = store_of(Forgetful(), part_size=part, max_concurrency=3)
    data = bytes(part * 19 // 10)
    outputs = []
    tracemalloc.start()
    try:
        for number in range(100):
            outputs.append(store.create(f".{number}", target=f"t{number}"))
            outputs[-1].write(data)
            outputs[-1].close()
        assert tracemalloc.get_traced_memory()[0] < 30 * part
    finally:
        tracemalloc.stop()
        store.sync()


def test_a_part_that_no_thread_takes_leaves_its_place(monkeypatch):
    """Its writer is told, and the next one does not wait for a place that nobody gives back."""
    store = store_of(FakeObjects(), part_size=SMALLEST_PART, max_concurrency=1)

    def cannot_start(_senders, _call):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(Senders, "submit", cannot_start)
        with pytest.raises(RuntimeError):
            stage(store, TARGET, b"abc")
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(stage, store, TARGET, b"abc").result(timeout=20)


def test_what_is_left_of_an_object_is_read_at_once(objects, store):
    """``read()`` without a length is one request, from wherever the reader stands."""
    objects.objects[TARGET] = (bytes(range(256)) * 400, "")
    read = objects.get
    asked = []
    objects.get = lambda key, **part: asked.append(part) or read(key, **part)
    with store.open_input(TARGET) as opened:
        opened.seek(100_000)
        assert opened.read() == (bytes(range(256)) * 400)[100_000:]
        assert opened.read() == b""
    assert len(asked) == 1


def test_a_task_holds_a_part_for_each_open_file_and_those_on_their_way(objects):
    """Whoever has a part too many waits, so memory has a bound that does not grow with the data."""
    before = set(threading.enumerate())  # those of other tests' stores end by and by
    store = store_of(objects, part_size=SMALLEST_PART, max_concurrency=2)
    lock, held = threading.Lock(), []
    on_their_way = 0
    send = objects.upload_part

    def upload_part(key, upload_id, *, number, data):
        nonlocal on_their_way
        with lock:
            on_their_way += 1
            held.append(on_their_way)
        try:
            return send(key, upload_id, number=number, data=data)
        finally:
            with lock:
                on_their_way -= 1

    objects.upload_part = upload_part
    outputs = [store.create(f".{number}", target=f"t{number}") for number in range(3)]
    for _ in range(8):
        for output in outputs:
            output.write(bytes(SMALLEST_PART // 2 + 1))
            assert len(output._buffer) <= SMALLEST_PART
    for output in outputs:
        assert output.close().size == 8 * (SMALLEST_PART // 2 + 1)
    store.sync()
    assert max(held) <= 2
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("missing", [1, 3])
def test_an_answer_that_is_too_short_is_an_error(objects, store, missing):
    """Whoever reads a file gets what it has, or is told; the end of an answer is not the end of a file."""
    objects.objects[TARGET] = (b"abcdef", "")
    read = objects.get
    objects.get = lambda key, **part: read(key, **part)[:-missing]
    with store.open_input(TARGET) as opened, pytest.raises(StorageError) as raised:
        opened.read()
    assert raised.value.code == UNAVAILABLE


# --- keys -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("longest", "letter"), [(1024, "a"), (512, "é")])
def test_keys_are_as_long_as_a_store_takes(longest, letter):
    """1,024 bytes of UTF-8; one more is refused before anything is sent."""
    objects = FakeObjects()
    store = S3Store(objects, "", options=S3Options(), clock=SettableClock(), ids=SystemIds())
    stage(store, letter * longest, b"abc")
    objects.calls.clear()
    with pytest.raises(BucketError) as raised:
        stage(store, letter * longest + "a", b"abc")
    assert raised.value.code == "TOO_LONG"
    assert objects.calls == []


@pytest.mark.parametrize("name", ["k=\uffff", "k=\ufffe", "a\x01b", "a\rb"])
def test_a_key_that_no_answer_can_hold_is_refused_before_any_request(name):
    """XML cannot hold it: with one such upload nothing beside it could ever be listed again."""
    objects = FakeObjects()
    with pytest.raises(BucketError) as raised:
        stage(store_of(objects), f"{name}/part-0", b"abc")
    assert raised.value.code == "ILLEGAL_CHAR"
    assert str(raised.value).isprintable()
    below = S3Store(objects, name, options=S3Options(), clock=SettableClock(), ids=SystemIds())
    with pytest.raises(BucketError):
        below.create(".hidden", target=None)
    assert objects.calls == []


@pytest.mark.parametrize("prefix", ["", "a"])
def test_an_object_that_stands_for_a_directory_is_no_entry(prefix):
    """The console and Hadoop make one, whose key ends with '/', for the base path or a directory in it."""
    objects = FakeObjects(objects={"a/": (b"", ""), "a/x": (b"1", ""), "a//y": (b"1", "")})
    store = S3Store(objects, prefix, options=S3Options(), clock=SettableClock(), ids=SystemIds())
    assert [entry.name for entry in store.list("a" if not prefix else "")] == ["x"]


@pytest.mark.parametrize("name", ["k=\ufffd", "\U0010ffff", "\x7f\x9f", "é a+b&<>\t"])
def test_odd_keys_that_can_be_listed_are_taken(name):
    """What XML can hold is a key like any other."""
    store = store_of(FakeObjects())
    target = f"{name}/part-0"
    store.publish(stage(store, target, b"abc"), target)
    assert [entry.name for entry in store.list(name)] == ["part-0"]
