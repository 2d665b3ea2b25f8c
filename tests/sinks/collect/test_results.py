"""What a client gets: each row once, in one order, from any place on."""

from __future__ import annotations

import shutil
import threading
from typing import Any

import pyarrow as pa
import pytest

from filesink import (
    ArrowWriterFactory,
    BucketAssigner,
    CollectPosition,
    CollectSink,
    ConfigError,
    FileSink,
    IdentityError,
    SchemaError,
    SourceError,
    StateCorruptError,
    StateError,
    adopt,
)
from filesink.commit.epoch import EpochLoop
from filesink.commit.replay import EpochOptions
from filesink.sinks.collect.marks import Run
from tests.fakes import micro_batch
from tests.servers import S3Server
from tests.sinks.collect.site import Site, SteppingClock, ids, in_turn, rows


def test_rows_come_in_the_order_of_their_epochs(site: Site) -> None:
    """As dictionaries, with Python's values; files of one epoch in an order that stays."""
    site.stream(0, [1, 2], [3])
    site.stream(1, [4])
    site.batch([5], [6])
    found = list(site.new())
    assert {"id": 1, "name": "n1"} in found[:3]
    assert sorted(ids(found[:3])) == [1, 2, 3]
    assert ids(found[3:4]) == [4]
    assert sorted(ids(found[4:])) == [5, 6]
    assert list(site.new()) == found


def test_every_place_can_be_gone_on_from(site: Site) -> None:
    """Between any two rows, by a position or its text; in rows, in batches, or in one after the other."""
    site.stream(0, [1, 2, 3], [4, 5])
    site.stream(1, [6])
    expected, results = ids(site.new()), site.new()
    places = [results.position]
    places.extend(results.position for _ in results)
    for number, place in enumerate(places):
        fresh = site.client(place, clock=SteppingClock(), wait_ms=1)
        assert ids(fresh) == expected[number:]
        assert (
            ids(site.client(CollectPosition.of(str(place)), clock=SteppingClock(), wait_ms=1).batches())
            == (expected[number:])
        )
    mixed = site.new()
    first = [next(mixed)["id"], next(mixed)["id"]]
    assert first + mixed.to_arrow()["id"].to_pylist() == expected
    assert mixed.position == places[-1]


def test_batches_and_rows_take_turns(site: Site) -> None:
    """Where a batch was handed out, rows go on behind it, and the other way round."""
    for number in range(3):
        site.stream(number, [2 * number, 2 * number + 1])
    results = site.new()
    batch = next(results.batches())
    assert batch["id"].to_pylist() == [0, 1]
    assert next(results)["id"] == 2
    assert next(results.batches())["id"].to_pylist() == [3]
    assert ids(results) == [4, 5]


def test_epochs_without_rows_are_no_places(site: Site) -> None:
    """A client that waits is not woken by them, and none is lost behind them."""
    site.stream(0, [])
    site.stream(1, [1])
    site.stream(2)
    results = site.new()
    assert ids(results) == [1]
    site.stream(3, [2])
    assert ids(site.new(results.position)) == [2]


def test_asking_for_what_follows_acknowledges_what_is_before(site: Site) -> None:
    """The next epoch removes whole versions; a part of one stays, and so do places inside it."""
    site.stream(0, [1, 2])
    site.stream(1, [3, 4])
    results = site.new()
    assert [next(results)["id"] for _ in range(3)] == [1, 2, 3]
    assert ids(site.new(results.position)) == [4]
    site.stream(2, [5])
    assert len(site.files()) == 2
    assert ids(site.new(results.position)) == [4, 5]
    assert ids(site.new()) == [4, 5]


def test_nothing_is_acknowledged_by_reading(site: Site) -> None:
    """A client that dies, and knows no position, gets everything again."""
    site.stream(0, [1])
    assert ids(site.new()) == [1]
    site.stream(1, [2])
    assert ids(site.new()) == [1, 2]


def test_reading_acknowledges_if_one_says_so(site: Site) -> None:
    """Some versions behind: what was asked for last was perhaps not looked at."""
    for number in range(3):
        site.stream(number, [number])
    assert ids(site.sink().results(wait=False, acknowledge="read")) == [0, 1, 2]
    site.stream(3, [3])
    assert len(site.files()) == 1
    assert ids(site.new()) == [3]


def test_acknowledging_twice_or_from_several_processes_is_no_harm(site: Site) -> None:
    """And leaves one mark."""
    site.stream(0, [1])
    site.stream(1, [2])
    results = site.new()
    for _ in results:
        results.acknowledge()
        results.acknowledge()
    assert ids(site.new(results.position)) == []
    assert len([*site.path.glob("_filesink/_collect/*.acknowledged")]) == 1


# --- the end


def test_iteration_ends_with_the_query(site: Site) -> None:
    """What comes while the client waits is handed out first, also by a query that is started again."""
    site.loop()
    marks = site.marks()
    number = marks.begin("r")
    steps = in_turn(
        lambda: site.stream(0, [1]),
        lambda: marks.begin("r"),  # its driver has died, and another one goes on
        lambda: (site.stream(1, [2]), marks.end(number, Run.ENDED, "r")),  # too late to count
        lambda: (site.stream(2, [3]), marks.end(number + 1, Run.ENDED, "r")),
    )
    results = site.client(clock=SteppingClock(steps))
    assert ids(results) == [1, 2, 3]
    assert results.is_complete
    assert next(results, None) is None


def test_a_query_that_fails_is_told_when_all_is_handed_out(site: Site) -> None:
    """Its results must not look complete; and it may be started again."""
    site.stream(0, [1])
    number = site.marks().begin("r")
    site.marks().end(number, Run.FAILED, "r")
    results, found = site.sink().results(), []
    with pytest.raises(SourceError, match="has failed") as raised:
        found.extend(row["id"] for row in results)
    assert raised.value.code == "QUERY_FAILED"
    assert found == [1]
    assert not results.is_complete
    site.marks().end(site.marks().begin("r"), Run.ENDED, "r")
    assert ids(site.sink().results(results.position)) == []


def test_batch_writes_end_by_themselves(site: Site) -> None:
    """Where no query was ever started there is nothing to wait for."""
    site.batch([1])
    assert ids(site.sink().results()) == [1]


def test_a_client_may_be_there_first(site: Site) -> None:
    """It waits for the first row, for a while; or says that the path is wrong."""
    with pytest.raises(ConfigError, match="no sink has written") as raised:
        site.sink().results()
    assert raised.value.code == "NO_SINK"
    site.loop()
    site.marks().begin("r")
    clock = SteppingClock()
    assert ids(site.client(clock=clock, wait_ms=5_000)) == []
    assert clock.now >= 5_000
    results = site.sink().results(wait=False)
    assert ids(results) == []
    assert not results.is_complete
    site.stream(0, [1])
    assert ids(site.sink().results(results.position, wait=False)) == [1]


def test_a_client_that_names_a_time_waits_for_the_beginning(site: Site) -> None:
    """As long as it says, and no longer: a wrong path looks just like that."""
    with pytest.raises(ConfigError) as raised:
        site.sink().results(wait="150 ms")
    assert raised.value.code == "NO_SINK"
    starts = threading.Timer(0.3, lambda: site.batch([1]))
    starts.start()
    try:
        assert ids(site.sink().results(wait="1 min")) == [1]
    finally:
        starts.join()


def test_rows_without_columns(site: Site) -> None:
    """Are refused in words of this sink, which has no buckets and no layout of files to choose."""
    with pytest.raises(SchemaError, match="has no columns, so there is nothing to collect") as raised:
        site.sink()._sink.prepare(pa.schema([]))
    assert raised.value.code == "NO_DATA_COLUMNS"


# --- positions that cannot be


def test_a_position_that_was_acknowledged_by_another_client(site: Site) -> None:
    """It gets no row that is there by chance, and never a gap."""
    site.stream(0, [1, 2])
    ours, theirs = site.new(), site.new()
    assert next(ours)["id"] == 1
    place = ours.position
    assert ids(theirs) == [1, 2]
    theirs.acknowledge()
    for _ in range(2):
        with pytest.raises(StateError, match="was acknowledged") as raised:
            site.new(place)
        assert raised.value.code == "POSITION_GONE"
        site.stream(1, [3])
    late = site.client(clock=SteppingClock(), wait_ms=1)
    site.new(theirs.position).acknowledge()
    assert ids(late) == [3]


def test_a_client_whose_rows_another_one_acknowledges(site: Site) -> None:
    """Is told while it reads, whether the file has gone or will go."""
    for number in range(2):
        site.stream(number, [number])
    slow, fast = site.new(), site.new()
    assert next(slow)["id"] == 0
    assert ids(fast) == [0, 1]
    fast.acknowledge()
    site.stream(2, [2])
    with pytest.raises(StateError, match="One client at a time") as raised:
        next(slow)
    assert raised.value.code == "POSITION_GONE"


@pytest.mark.parametrize(
    ("text", "kind", "code"),
    [
        ("1:3@{id}", ConfigError, "NO_POSITION"),
        ("2:0@{id}", StateCorruptError, "GAP"),
        ("1:1@00000000", IdentityError, "OTHER_INVENTORY"),
        ("1:1", ConfigError, "BAD_VALUE"),
        ("1:-1@{id}", ConfigError, "BAD_VALUE"),
        ("", ConfigError, "BAD_VALUE"),
    ],
)
def test_positions_of_elsewhere(site: Site, text: str, kind: type[Exception], code: str) -> None:
    """Beyond the end, of another path, or no position: refused, and nothing is acknowledged."""
    site.stream(0, [1, 2])
    inventory = site.new().position.inventory or next_position(site).inventory
    with pytest.raises(kind) as raised:
        site.new(text.format(id=inventory))
    assert raised.value.code == code  # type: ignore[attr-defined]
    assert ids(site.new()) == [1, 2]


def next_position(site: Site) -> CollectPosition:
    """Behind the first row."""
    results = site.new()
    next(results)
    return results.position


def test_a_path_that_was_removed(site: Site) -> None:
    """Whether it was written anew or not, an old position is none of it."""
    site.stream(0, [1])
    site.stream(1, [2])
    place = next_position(site)
    late = site.new()
    shutil.rmtree(site.path)
    with pytest.raises(ConfigError, match="no sink has written"):
        site.new(place)
    with pytest.raises((IdentityError, StateError)):
        next(late)
    site.stream(0, [3])
    with pytest.raises(IdentityError):
        site.new(place)
    assert ids(site.new()) == [3]


# --- others in the path


def test_files_of_strangers_are_nobodys_rows(site: Site) -> None:
    """Only what an epoch has made visible is handed out, and nothing else is removed."""
    site.stream(0, [1])
    strange = site.path / "strange.arrow"
    with pa.ipc.new_file(strange, rows(7).schema) as writer:
        writer.write(rows(7))
    (site.path / "_filesink" / "_collect").mkdir(exist_ok=True)
    for name in ("x.acknowledged", "999999999999-000000000000000-ffffffff.acknowledged", "1.ended"):
        (site.path / "_filesink" / "_collect" / name).touch()
    results = site.new()
    assert ids(results) == [1]
    results.acknowledge()
    site.stream(1, [2])
    assert strange.exists()
    assert ids(site.new()) == [2]


def test_rows_of_another_sink_are_left_alone(site: Site) -> None:
    """Though they lie in the same directory and have the same format: neither handed out nor removed."""
    site.stream(0, [1])
    flat = BucketAssigner.base_path_bucket_assigner()
    files = FileSink.for_bulk_format(site.path, ArrowWriterFactory()).with_bucket_assigner(flat)
    other = files.with_uid("other").build()
    loop = EpochLoop(
        other._tiers, other._tiers.open_ledger("uid-other"), ports=site.ports(), options=EpochOptions()
    )
    loop.run(micro_batch(0, query_id="another"), site.job([[rows(7)]]))
    site.stream(1, [2])
    results = site.new()
    assert ids(results) == [1, 2]
    results.acknowledge()
    site.stream(2, [3])
    left = [number for path in site.files() for number in pa.ipc.open_file(path).read_all()["id"].to_pylist()]
    assert sorted(left) == [3, 7]


def test_an_adoption_is_told(site: Site) -> None:
    """It numbers files anew that were handed out."""
    site.stream(0, [1])
    place = next_position(site)
    shutil.rmtree(site.path / "_filesink" / "_inventory")
    adopt(site.path)
    site.stream(1, [2])
    with pytest.raises((StateError, IdentityError)) as raised:
        ids(site.new(place))
    assert raised.value.code in {"REWRITTEN", "OTHER_INVENTORY"}


@pytest.mark.slow
def test_an_object_store(moto_server: S3Server) -> None:
    """Driver and client meet in a bucket, as they do in a directory."""
    site = Site(f"s3://{moto_server.new_bucket()}/rows", {"storage_options": moto_server.options})
    site.stream(0, [1, 2])
    number = site.marks().begin("r")
    results = site.new()
    assert ids(results) == [1, 2]
    results.acknowledge()
    site.stream(1, [3])
    assert len([entry for entry in site.store().list("") if entry.name.endswith(".arrow")]) == 1
    site.marks().end(number, Run.ENDED, "r")
    assert ids(site.sink().results(results.position)) == [3]


def test_columns_may_come_and_go(site: Site) -> None:
    """Rows have the columns of their epoch, a table those of all."""
    site.stream(0, [1])
    wider = pa.RecordBatch.from_pydict({"id": [2], "name": ["n2"], "more": [0.5]})
    site.loop().run(micro_batch(1), site.job([[wider]]))
    assert list(site.new()) == [{"id": 1, "name": "n1"}, {"id": 2, "name": "n2", "more": 0.5}]
    assert site.new().to_arrow()["more"].to_pylist() == [None, 0.5]


def test_a_damaged_file_is_told(site: Site) -> None:
    """With its name; what came before it was handed out."""
    site.stream(0, [1])
    site.stream(1, [2])
    (_, second) = sorted(site.files(), key=lambda path: pa.ipc.open_file(path).read_all()["id"][0].as_py())
    second.chmod(0o600)
    second.write_bytes(second.read_bytes()[:-20])
    results = site.new()
    assert next(results)["id"] == 1
    with pytest.raises(SourceError, match="cannot be read") as raised:
        next(results)
    assert raised.value.code == "DAMAGED"


def test_what_a_notebook_shows(site: Site) -> None:
    """Path and place, and nothing that is looked up."""
    assert repr(site.sink()) == f"<CollectSink {site.path}>"
    site.stream(0, [1])
    assert repr(site.new()).startswith(f"<CollectResults of '{site.path}' after 0:0@")
    assert site.new().to_pandas()["name"].tolist() == ["n1"]
    assert site.new(next_position(site)).to_pandas().empty


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_buffered_bytes": 0},
        {"max_buffered_bytes": "much"},
        {"client_timeout": 0},
        {"on_new_query": "x"},
        {"delivery": "twice"},
    ],
)
def test_options_that_mean_nothing(site: Site, wrong: dict[str, Any]) -> None:
    """Are told when the sink is made."""
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        CollectSink(site.path, **wrong)


@pytest.mark.parametrize("wrong", [{"wait": -1}, {"wait": "long"}, {"acknowledge": "x"}])
def test_questions_that_mean_nothing(site: Site, wrong: dict[str, Any]) -> None:
    """Are told before anything is looked up."""
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        site.sink().results(**wrong)
