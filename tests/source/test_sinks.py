"""The directory of a sink as a source: what is seen of it, and how it is followed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filesink.errors import (
    ConfigError,
    IdentityError,
    SchemaError,
    SourceError,
    StateCorruptError,
    StateError,
    StorageError,
)
from filesink.source.directories import root_of
from filesink.source.enumerators import RecursiveFileEnumerator
from filesink.source.files import SourceFile
from filesink.source.reading.plan import Missing, Reading, Union
from filesink.source.reading.splits import read
from filesink.source.sinks.following import OnOverwrite, Start
from filesink.source.source_plan import Following, SourcePlan, StateLocation
from filesink.source.streams import FileStream, Limit, Offset
from filesink.system import SystemClock, SystemIds
from tests.fakes import CountingIds
from tests.sink_directory.written import Written, records
from tests.source.sink_site import COLUMNS, SinkSite


@pytest.fixture
def site(tmp_path: Path) -> SinkSite:
    """A directory without an epoch."""
    return SinkSite(tmp_path / "base")


def ids_of(files: list[SourceFile]) -> list[int]:
    """What is in them."""
    return sorted(one for file in files for one in pq.read_table(file.path)["id"].to_pylist())


def batch(plan: SourcePlan) -> list[int]:
    """The ids that a batch reads."""
    read_plan, tasks = plan.batch(plan.schema())
    if read_plan is None:
        return []
    return sorted(one for task in tasks for found in read(read_plan, task) for one in found["id"].to_pylist())


def stream_of(site: SinkSite, **chosen) -> FileStream:
    """Of a driver that has just started."""
    following = Following(**chosen)
    return site.plan(following=following).stream(clock=SystemClock(), ids=CountingIds(), columns=["id"])


def batches(stream: FileStream, start: Offset | None = None, limit: Limit | None = None) -> Iterator[Offset]:
    """The offset of the start, then those of the ends of batches."""
    start = stream.initial() if start is None else start
    yield start
    while (end := stream.latest(start, limit or Limit())) != start:
        yield end
        start = end


def followed(stream: FileStream, start: Offset | None = None, limit: Limit | None = None) -> list[int]:
    """The ids of all batches until nothing is new."""
    found = pairwise(batches(stream, start, limit))
    return [one for begin, end in found for one in ids_of(list(stream.files(begin, end)))]


# --- batches


def test_a_batch_sees_what_is_live_and_nothing_else(site: SinkSite) -> None:
    """No foreign file, no file of an epoch that has no version, and none that was replaced."""
    first = site.epoch([1, 2], [3])
    site.epoch([4])
    site.compact(*first)
    pq.write_table(pa.table({"id": [99]}), site.base / "foreign.parquet")
    (site.base / ".part.inprogress").write_bytes(b"half")
    assert batch(site.plan()) == [1, 2, 3, 4]
    assert site.plan().schema().equals(COLUMNS)


def test_a_batch_of_an_old_version(site: SinkSite) -> None:
    """Of a version, or of what was visible at a moment."""
    site.epoch([1])
    moment = datetime.fromtimestamp(site.clock.now / 1000 - 1, UTC)
    site.epoch([2])
    assert batch(site.plan(reading=Reading(at=1))) == [1]
    assert batch(site.plan(reading=Reading(at=moment))) == [1]
    pinned = site.plan().pinned()
    site.epoch([3])
    assert batch(pinned) == [1, 2]


def test_a_batch_of_a_path_that_was_emptied(site: SinkSite) -> None:
    """It has no rows, and the columns that were noted: a job that reads it every hour goes on."""
    columns = pa.schema([("id", pa.int64()), ("k", pa.int32())])
    (path,) = site.epoch([1], bucket="k=1", columns=columns)
    site.epoch(kind="batch-write", mode="overwrite", removed=(path,), columns=columns)
    assert batch(site.plan()) == []
    assert site.plan().schema().names == ["id", "k"]
    chosen = SourcePlan(roots=site.plan().roots, enumerator=RecursiveFileEnumerator(name_pattern="*.csv"))
    assert batch(chosen) == []
    site.epoch([2])
    with pytest.raises(SourceError) as error:
        batch(chosen)
    assert error.value.code == "NO_FILES"


def test_files_of_a_sink_by_their_names(site: SinkSite) -> None:
    """A pattern chooses among them; what an inventory does not know is refused."""
    site.epoch([1], [2])
    roots = site.plan().roots
    chosen = SourcePlan(roots=roots, enumerator=RecursiveFileEnumerator(name_pattern="*-2.parquet"))
    assert batch(chosen) == [2]
    with pytest.raises(ConfigError, match="read by its versions"):
        batch(SourcePlan(roots=roots, enumerator=RecursiveFileEnumerator(modified_after_ms=1)))


def test_columns_of_directories_have_the_types_that_were_noted(site: SinkSite) -> None:
    """Not those that a value looks like."""
    columns = pa.schema([("id", pa.int64()), ("k", pa.string())])
    site.epoch([1], bucket="k=007", columns=columns)
    plan = site.plan()
    assert plan.schema().equals(columns)
    read_plan, tasks = plan.batch(plan.schema())
    assert next(iter(read(read_plan, tasks[0]))).to_pylist() == [{"id": 1, "k": "007"}]


def test_two_sinks_with_other_columns(site: SinkSite) -> None:
    """They are named, or their columns taken together; of one sink those of its newest files count."""
    more = pa.schema([("id", pa.int64()), ("n", pa.int64())])
    site.epoch([1])
    site.epoch([2], columns=more)
    assert site.plan().schema().equals(more)
    site.epoch([3], sink="uid-other")
    with pytest.raises(
        SchemaError, match="'uid-u' have a column 'n', and those of sink 'uid-other'"
    ) as error:
        site.plan().schema()
    assert error.value.code == "TWO_SCHEMAS"
    together = site.plan(reading=Reading(union=Union.ALL)).schema()
    assert {field.name: field.type for field in together} == {"id": pa.int64(), "n": pa.int64()}


def test_a_file_that_vanished_from_a_snapshot(site: SinkSite) -> None:
    """The error names the version and the file."""
    (path,) = site.epoch([1])
    plan, tasks = site.plan().batch(COLUMNS)
    (site.base / path).unlink()
    with pytest.raises(SourceError, match=rf"{path}' of version 1 was there"):
        list(read(plan, tasks[0]))


@pytest.mark.parametrize("at", [1, datetime(2030, 1, 1, tzinfo=UTC)])
def test_a_version_whose_files_were_replaced(site: SinkSite, at: int | datetime) -> None:
    """The error is that of a snapshot, as everywhere where a version is read; or the file is passed over."""
    (path,) = site.epoch([1])
    plan, tasks = site.plan(reading=Reading(at=at)).batch(COLUMNS)
    (site.base / path).unlink()
    with pytest.raises(
        StorageError, match=rf"{path}' of (version 1|the version at 2030-01-01\S+) is not"
    ) as error:
        list(read(plan, tasks[0]))
    assert error.value.code == "SNAPSHOT_GONE"
    tolerant = replace(plan, reading=replace(plan.reading, missing=Missing.IGNORE))
    assert list(read(tolerant, tasks[0])) == []


def test_a_path_without_an_inventory(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A batch lists it, and says so; a version, and a stream, are told that it has to be adopted."""
    written = Written(tmp_path / "base", partitions=())
    written.write(records(1, "a"))
    written.forget_inventory()
    plan = SourcePlan(roots=(root_of(written.base, {}),))
    with caplog.at_level("WARNING"):
        assert [file.version for file in plan.files()] == [0]
    assert "filesink.adopt" in caplog.text
    stream = plan.stream(clock=SystemClock(), ids=SystemIds())
    for ask in (stream.initial, lambda: replace(plan, reading=Reading(at=1)).batch(COLUMNS)):
        with pytest.raises(StateError) as error:
            ask()
        assert error.value.code == "NO_INVENTORY"


def test_a_sink_that_has_just_begun(site: SinkSite) -> None:
    """No epoch is complete: a batch has nothing to read, and a stream waits for the first one."""
    with pytest.raises(SourceError) as error:
        site.plan().batch(COLUMNS)
    assert error.value.code == "NO_FILES"
    stream = stream_of(site)
    *_, end = batches(stream)
    assert followed(stream) == []
    site.epoch([1], [2])
    assert followed(stream, end) == [1, 2]


def test_a_directory_below_a_sink_is_any_other(tmp_path: Path) -> None:
    """It is listed, as are patterns: versions are those of a base path."""
    site = SinkSite(tmp_path / "base")
    site.epoch([1], bucket="k=1")
    pq.write_table(pa.table({"id": [99]}), site.base / "k=1" / "foreign.parquet")
    for path in (site.base / "k=1", site.base / "*"):
        assert batch(SourcePlan(roots=(root_of(path, {}),))) == [1, 99]


# --- streams


@pytest.mark.parametrize("limit", [Limit(), Limit(files=1), Limit(files=2), Limit(size=1)])
def test_a_stream_reads_what_is_there_and_then_what_comes(site: SinkSite, limit: Limit) -> None:
    """Each row once, in batches of any size."""
    site.epoch([1], [2])
    site.epoch([3])
    stream = stream_of(site)
    *_, end = batches(stream, limit=limit)
    assert followed(stream, limit=limit) == [1, 2, 3]
    site.epoch([4], [5])
    site.epoch()
    site.epoch([6])
    assert followed(stream, end, limit) == [4, 5, 6]


def very_long(offset: Offset) -> Offset:
    """The same offset after a trillion epochs."""
    return {**offset, "version": 10**12, "index": 10**9, "began": {**offset["began"], "version": 10**12}}


def test_an_offset_is_small(site: SinkSite) -> None:
    """At most 200 bytes, at whatever version."""
    site.epoch([1], [2], [3])
    offsets = list(batches(stream_of(site), limit=Limit(files=1)))
    assert len(offsets) == 4
    assert all(len(json.dumps(very_long(one))) <= 200 for one in offsets)


@pytest.mark.parametrize("limit", [Limit(), Limit(files=1), Limit(files=2)])
@pytest.mark.parametrize("start", [Start(), Start(is_latest=True), Start(version=2)])
def test_the_first_batch_is_repeated(site: SinkSite, start: Start, limit: Limit) -> None:
    """Its end is known, and where it began is not: a run that asks anew is told another place meanwhile."""
    site.epoch([1], [2])
    site.epoch([3], bucket="k=1")
    stream = stream_of(site, start=start)
    begin = stream.initial()
    if start.is_latest:
        site.epoch([4], [5])
    end = stream.latest(begin, limit)
    first = [file.path for file in stream.files(begin, end)]
    site.epoch([6], [7], bucket="k=0")
    again = stream_of(site, start=start)
    later = again.initial()
    assert [file.path for file in again.files(later, end)] == first != []
    found = ids_of(list(again.files(later, end))) + followed(again, end, limit)
    assert sorted(found) == (
        [4, 5, 6, 7] if start.is_latest else [3, 6, 7] if start.version else [1, 2, 3, 6, 7]
    )


def test_the_first_batch_is_repeated_where_spark_tells_no_start(site: SinkSite) -> None:
    """As Spark 4.1 does, which asks for the newest place of all; also if the first batch had nothing."""
    site.epoch([1])
    stream = stream_of(site, start=Start(is_latest=True))
    begin = stream.initial()
    end = stream.latest_of_all(Limit())
    assert list(stream.files(begin, end)) == []
    site.epoch([2])
    again = stream_of(site, start=Start(is_latest=True))
    assert list(again.files(again.initial(), end)) == []
    assert ids_of(list(again.files(end, again.latest_of_all(Limit())))) == [2]
    site.epoch([3])
    third = stream_of(site, start=Start(is_latest=True))
    assert ids_of(list(third.files(end, third.latest_of_all(Limit())))) == [2, 3]


def test_the_first_batch_is_repeated_where_spark_asks_for_its_end_first(site: SinkSite) -> None:
    """Also in an order that makes the start newer than the end; and a restart behind it begins there."""
    site.epoch([1], [2])
    stream = stream_of(site)
    end = stream.latest_of_all(Limit())
    site.epoch([3])
    assert ids_of(list(stream.files(stream.initial(), end))) == [1, 2]
    again = stream_of(site)
    again.latest_of_all(Limit())
    assert ids_of(list(again.files(again.initial(), end))) == [1, 2]
    later = stream_of(site)
    assert ids_of(list(later.files(end, later.latest_of_all(Limit())))) == [3]


def test_a_replay_reads_the_same(site: SinkSite) -> None:
    """Between two offsets lie the same files in another process, later."""
    site.epoch([1], [2])
    stream = stream_of(site)
    ends = list(batches(stream, limit=Limit(files=1)))
    site.epoch([3], [4])
    ends += list(batches(stream, ends[-1], Limit(files=1)))[1:]
    first = [[file.path for file in stream.files(*pair)] for pair in pairwise(ends)]
    site.epoch([5])
    again = stream_of(site)
    assert [[file.path for file in again.files(*pair)] for pair in pairwise(ends)] == first
    assert [len(paths) for paths in first] == [1, 1, 1, 1]


def test_compacted_files_are_not_read_twice(site: SinkSite) -> None:
    """A merge of files that were visible adds no row, before the start and after it."""
    site.compact(*site.epoch([1], [2]))
    stream = stream_of(site)
    *_, end = batches(stream)
    assert followed(stream) == [1, 2]
    more = site.epoch([3], [4])
    *_, end = batches(stream, end)
    site.compact(*more)
    site.epoch([5])
    assert followed(stream, end) == [5]


@pytest.mark.parametrize("kind", ["upkeep", "finish", "batch-write"])
def test_what_was_held_back_is_new(site: SinkSite, kind: str) -> None:
    """Parts that were open, and small files that were merged before anybody saw them, were never read."""
    site.epoch([1])
    stream = stream_of(site)
    *_, end = batches(stream)
    site.epoch([2], kind=kind)
    assert followed(stream, end) == [2]


def test_a_lagging_stream_meets_a_merge(site: SinkSite) -> None:
    """Files that went before it came to them are told, with their version; none is left out in silence."""
    site.epoch([1])
    stream = stream_of(site)
    *_, end = batches(stream)
    site.compact(*site.epoch([2], [3]))
    *_, later = batches(stream, end)
    files = list(stream.files(end, later))
    assert [file.version for file in files] == [2, 2]
    read_plan = site.plan().read_plan(COLUMNS, files)
    with pytest.raises(SourceError, match="of version 2 was there") as error:
        list(read(read_plan, site.plan().tasks(read_plan, files)[0]))
    assert error.value.code == "FILE_GONE"


@pytest.mark.parametrize("mode", ["overwrite", "overwrite_partitions"])
def test_an_overwrite(site: SinkSite, mode: str) -> None:
    """It is an error that says at which version, or its rows are new ones; before the start it is neither."""
    old = site.epoch([1], kind="batch-write", mode=mode)
    stream, tolerant = stream_of(site), stream_of(site, on_overwrite=OnOverwrite.NEW_ROWS)
    *_, end = batches(stream)
    site.epoch([2], kind="batch-write", mode=mode, removed=tuple(old))
    for limit in (Limit(), Limit(files=1)):
        with pytest.raises(SourceError, match="version 2") as error:
            stream.latest(end, limit)
        assert error.value.code == "OVERWRITTEN"
    assert followed(tolerant, end) == [2]
    assert followed(stream_of(site)) == [2]


def test_an_overwrite_that_replaces_nothing(site: SinkSite) -> None:
    """The first one of a path takes no row away."""
    site.epoch([1])
    stream = stream_of(site)
    *_, end = batches(stream)
    site.epoch([2], kind="batch-write", mode="overwrite_partitions")
    assert followed(stream, end) == [2]


def test_an_adoption_under_a_running_stream(site: SinkSite) -> None:
    """Whatever it numbers anew may have been read."""
    site.epoch([1])
    stream = stream_of(site)
    *_, end = batches(stream)
    site.epoch([2], kind="adopted")
    with pytest.raises(SourceError) as error:
        stream.latest(end, Limit())
    assert error.value.code == "ADOPTED"
    assert followed(stream_of(site)) == [1, 2]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (Start(), [1, 2, 3, 4]),
        (Start(version=1), [1, 2, 3, 4]),
        (Start(version=0), [1, 2, 3, 4]),
        (Start(version=3), [3, 4]),
        (Start(is_latest=True), [4]),
    ],
)
def test_where_a_stream_begins(site: SinkSite, start: Start, expected: list[int]) -> None:
    """With what is there, with a version, or with what is new."""
    for number in (1, 2, 3):
        site.epoch([number])
    stream = stream_of(site, start=start)
    begin = stream.initial()
    site.epoch([4])
    assert followed(stream, begin) == expected


def test_a_stream_that_begins_with_a_time(site: SinkSite) -> None:
    """The first epoch that is read was visible at that moment, or later."""
    site.epoch([1])
    moment = datetime.fromtimestamp(site.clock.now / 1000, UTC)
    site.epoch([2])
    site.epoch([3])
    assert followed(stream_of(site, start=Start(time=moment))) == [2, 3]


@pytest.mark.parametrize("start", [Start(), Start(version=1), Start(time=datetime(2020, 1, 1, tzinfo=UTC))])
def test_a_run_with_an_end(site: SinkSite, start: Start) -> None:
    """What comes while it runs is for the next one, also what comes before the query asks where to begin."""
    site.epoch([1], [2], bucket="k=2")
    stream = stream_of(site, start=start)
    stream.fix_end()
    site.epoch([3], bucket="k=1")
    *_, end = batches(stream, limit=Limit(files=1))
    assert followed(stream, limit=Limit(files=1)) == [1, 2]
    assert followed(stream_of(site), end) == [3]


def test_a_start_that_is_not_the_next_version(site: SinkSite) -> None:
    """The next one can be waited for; of any other it is said that there is none."""
    site.epoch([1])
    stream = stream_of(site, start=Start(version=2))
    begin = stream.initial()
    assert stream.latest(begin, Limit()) == begin
    with pytest.raises(ConfigError, match="the newest is 1") as error:
        stream_of(site, start=Start(version=3)).initial()
    assert error.value.code == "NO_VERSION"


def test_a_column_that_came_while_a_query_ran(site: SinkSite) -> None:
    """It is told, with what to do; a query that begins with it, and one whose columns were chosen, go on."""
    site.epoch([1])
    more = pa.schema([("id", pa.int64()), ("n", pa.int64())])
    stream = stream_of(site)
    *_, end = batches(stream)
    site.epoch([2], columns=more)
    with pytest.raises(SchemaError, match="'n' that this query began without") as error:
        stream.latest(end, Limit())
    assert error.value.code == "SCHEMA_CHANGED"
    plan = site.plan()
    for columns in (["id", "n"], None):
        again = plan.stream(clock=SystemClock(), ids=SystemIds(), columns=columns)
        assert followed(again, end) == [2]


def test_history_that_is_not_remembered(tmp_path: Path) -> None:
    """A stream that was away for too long is told so, and does not leave out what it has missed."""
    site = SinkSite(tmp_path / "base", history_ms=60_000)
    site.epoch([1])
    stream = stream_of(site)
    *_, end = batches(stream)
    for number in range(2, 30):
        site.epoch([number])
    with pytest.raises(StateError) as error:
        stream.latest(end, Limit())
    assert error.value.code == "HISTORY_EXPIRED"


def test_a_path_that_was_removed_and_written_anew(site: SinkSite) -> None:
    """Its versions are others, however many there are: none of them is taken for one that was read."""
    site.epoch([1])
    stream = stream_of(site)
    *_, end = batches(stream)
    shutil.rmtree(site.base)
    again = SinkSite(site.base)
    again.epoch([5])
    again.epoch([6])
    with pytest.raises(IdentityError, match="removed and written anew") as error:
        stream_of(again).latest(end, Limit())
    assert error.value.code == "OTHER_INVENTORY"
    assert followed(stream_of(again)) == [5, 6]


def test_a_checkpoint_of_a_directory_of_another_kind(site: SinkSite, tmp_path: Path) -> None:
    """What was no sink's when the query began has other offsets; and what is none any more."""
    site.epoch([1])
    *_, of_sink = batches(stream_of(site))
    other = tmp_path / "other"
    (other / "in").mkdir(parents=True)
    found = SourcePlan(
        roots=(root_of(other / "in", {}),), following=Following(state=StateLocation(path=str(other / "log")))
    ).stream(clock=SystemClock(), ids=CountingIds())
    for stream, offset in ((stream_of(site), {**found.initial(), "files": 1}), (found, of_sink)):
        with pytest.raises(IdentityError, match="new checkpoint"):
            stream.latest(offset, Limit())


def test_an_inventory_that_is_an_older_copy(site: SinkSite, tmp_path: Path) -> None:
    """A version that was read and is not known is told, and not waited for."""
    site.epoch([1])
    shutil.copytree(site.base, tmp_path / "copy")
    site.epoch([2])
    *_, end = batches(stream_of(site))
    shutil.rmtree(site.base)
    (tmp_path / "copy").rename(site.base)
    with pytest.raises(StateCorruptError, match=r"version 2 of .* newest is 1") as error:
        stream_of(site).latest(end, Limit())
    assert error.value.code == "GAP"


def test_a_damaged_inventory(site: SinkSite) -> None:
    """Batch and stream name the file, and what to do."""
    for number in range(4):
        site.epoch([number])
    for path in (site.base / "_filesink" / "_inventory").glob("*.files"):
        path.write_bytes(b"damaged")
    for ask in (lambda: batch(site.plan()), lambda: followed(stream_of(site))):
        with pytest.raises(StateCorruptError, match=r"\.files .*filesink\.adopt"):
            ask()


def test_a_stream_of_several_paths_is_refused(site: SinkSite, tmp_path: Path) -> None:
    """One that follows versions cannot list others beside them."""
    site.epoch([1])
    (tmp_path / "other").mkdir()
    roots = (*site.plan().roots, *(root_of(tmp_path / "other", {}),))
    with pytest.raises(ConfigError) as error:
        SourcePlan(roots=roots).check_stream()
    assert error.value.code == "CONFLICT"


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("epoch"), st.integers(0, 3)),
        st.tuples(st.just("compact"), st.just(0)),
        st.tuples(st.just("read"), st.sampled_from([None, 1, 2])),
        st.tuples(st.just("restart"), st.just(0)),
    ),
    max_size=14,
)


@given(steps=STEPS)
def test_every_row_is_read_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    """Whatever is written and merged between batches, as long as no unread file goes."""
    site = SinkSite(tmp_path_factory.mktemp("sink") / "base")
    site.epoch([0])
    stream = stream_of(site)
    offset, found, count, visible = stream.initial(), [], 1, []
    for step, argument in [*steps, ("read", None)]:
        match step:
            case "epoch":
                visible += site.epoch(*([count + number] for number in range(argument)))
                count += argument
            case "compact" if len(visible) > 1:  # all of them were read
                offset, more = advance(stream, offset, Limit())
                found += more
                visible = [site.compact(*visible)]
            case "read":
                offset, more = advance(stream, offset, Limit(files=argument))
                found += more
            case "restart":
                stream = stream_of(site)
    assert sorted(found) == list(range(count))


def advance(stream: FileStream, start: Offset, limit: Limit) -> tuple[Offset, list[int]]:
    """One batch, or with no limit all there are."""
    end = stream.latest(start, limit)
    return end, ids_of(list(stream.files(start, end)))


def test_what_would_mean_nothing_is_refused(site: SinkSite) -> None:
    """A version for a stream, and the start of a stream for a batch."""
    for check in (
        site.plan(reading=Reading(at=1)).check_stream,
        site.plan(following=Following(start=Start(version=1))).check_batch,
        site.plan(following=Following(start=Start(is_latest=True))).check_batch,
    ):
        with pytest.raises(ConfigError, match="stream") as error:
            check()
        assert error.value.code == "CONFLICT"
    site.plan().check_batch()
    site.plan().check_stream()


# --- a consumer that is there first


def waiting(tmp_path: Path, **chosen) -> FileStream:
    """A driver that has just started on a path that no sink may have written to yet."""
    following = Following(state=StateLocation(path=str(tmp_path / "state")), **chosen)
    plan = SourcePlan(roots=(root_of(tmp_path / "base", {}),), following=following)
    return plan.stream(clock=SystemClock(), ids=CountingIds(), columns=["id"])


@pytest.mark.parametrize("start", [Start(), Start(is_latest=True), Start(version=1)], ids=str)
@pytest.mark.parametrize("restarts", [True, False])
def test_a_stream_waits_for_a_sink(tmp_path: Path, *, restarts: bool, start: Start) -> None:
    """It goes on from the first version, in the same run or another one; a merge adds no row."""
    stream = waiting(tmp_path, start=start)
    begin = stream.initial()
    assert stream.latest(begin, Limit()) == begin
    site = SinkSite(tmp_path / "base")
    assert stream.latest(begin, Limit()) == begin
    first = site.epoch([1], [2])
    stream = waiting(tmp_path, start=start) if restarts else stream
    assert list(stream.files(begin, begin)) == []
    *_, end = batches(stream, begin)
    assert followed(stream, begin) == [1, 2]
    site.compact(*first)
    site.epoch([3])
    assert followed(stream, end) == [3]
    assert followed(waiting(tmp_path, start=start), end) == [3]
    for again in (waiting(tmp_path, start=start), waiting(tmp_path)):  # the first batch, once more
        assert [file.version for file in again.files(begin, end)] == [1, 1]


@pytest.mark.parametrize("start", [Start(), Start(is_latest=True)], ids=str)
def test_a_stream_that_has_waited_takes_several_batches(tmp_path: Path, start: Start) -> None:
    """Each file once, whatever the run and the limit."""
    begin = waiting(tmp_path).initial()
    site = SinkSite(tmp_path / "base")
    site.epoch([1], [2])
    site.epoch([3])
    found, at = [], begin
    while (end := (stream := waiting(tmp_path, start=start)).latest(at, Limit(files=1))) != at:
        found += ids_of(list(stream.files(at, end)))
        at = end
    assert found == [1, 2, 3]


def test_a_run_with_an_end_that_has_waited(tmp_path: Path) -> None:
    """Of a sink that came before the run all is read that was there, of one that came later nothing."""
    stream = waiting(tmp_path, is_static=True)
    begin = stream.initial()
    assert stream.latest(begin, Limit()) == begin
    site = SinkSite(tmp_path / "base")
    site.epoch([1])
    assert stream.latest(begin, Limit()) == begin
    later = waiting(tmp_path, is_static=True)
    end = later.latest(begin, Limit())
    site.epoch([2])
    assert ids_of(list(later.files(begin, end))) == [1]
    assert later.latest(end, Limit()) == end
    assert followed(waiting(tmp_path, is_static=True), end) == [2]


@pytest.mark.parametrize("is_static", [True, False])
def test_a_sink_that_comes_while_files_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_static: bool
) -> None:
    """What the listing has found of it is not taken for files of a plain directory."""
    site: list[SinkSite] = []
    real = RecursiveFileEnumerator.enumerate_files

    def comes(*given):
        if not site:
            site.append(SinkSite(tmp_path / "base"))
            site[0].epoch([1])
        return real(*given)

    monkeypatch.setattr(RecursiveFileEnumerator, "enumerate_files", comes)
    stream = waiting(tmp_path, is_static=is_static)
    begin = stream.initial()
    assert followed(stream, begin) == [1]
    site[0].epoch([2])
    assert followed(waiting(tmp_path), begin) == [1, 2]


def test_a_stream_waits_where_spark_tells_no_start(tmp_path: Path) -> None:
    """As Spark 4.1 does; also if the run that began the batch is gone."""
    stream = waiting(tmp_path)
    begin = stream.initial()
    assert stream.latest_of_all(Limit()) == begin
    site = SinkSite(tmp_path / "base")
    site.epoch([1])
    end = stream.latest_of_all(Limit())
    assert ids_of(list(stream.files(begin, end))) == [1]
    site.epoch([2])
    later = waiting(tmp_path)
    assert ids_of(list(later.files(begin, end))) == [1]
    assert ids_of(list(later.files(end, later.latest_of_all(Limit())))) == [2]


def test_files_of_a_plain_directory_are_not_those_of_a_sink(tmp_path: Path) -> None:
    """A stream that has read some cannot be told which of them a sink lists: its restart says so."""
    (tmp_path / "base").mkdir()
    pq.write_table(pa.table({"id": [9]}), tmp_path / "base" / "plain.parquet")
    stream = waiting(tmp_path)
    begin = stream.initial()
    end = stream.latest(begin, Limit())
    assert ids_of(list(stream.files(begin, end))) == [9]
    SinkSite(tmp_path / "base").epoch([1])
    with pytest.raises(IdentityError) as error:
        waiting(tmp_path).latest(end, Limit())
    assert error.value.code == "OTHER_INVENTORY"
