"""Epochs of ``HttpSink``, without Spark, against a service that is busy, breaks, or hangs up."""

from __future__ import annotations

import json
import random
import threading
from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pytest

from filesink import HttpService, HttpSink, SchemaError, Sending
from filesink.commit.epoch import EpochLoop
from filesink.commit.outcome import Outcome
from filesink.commit.replay import EpochOptions
from filesink.errors import ConfigError, DeliveryError, TaskCancelledError
from filesink.ports import Ports, SerialRunner
from filesink.sinks.asynchronous import Again
from filesink.sinks.http.service import HttpAnswer
from filesink.sinks.http.tiers import HttpTiers
from filesink.system import SystemClock
from tests.fakes import CountingIds, FakeJob, micro_batch
from tests.sinks.asynchronous.test_writer import context_of
from tests.sinks.http.server import HangUp, HttpServer, Received, Reply, Silence

ROWS = 60


def tiers(server: HttpServer, directory: Path, *, sending: Sending | None = None, **service) -> HttpTiers:
    """The sink as an engine gets it."""
    sink = HttpSink(
        HttpService(server.url, **service), ledger=directory / "ledger", sending=sending, uid="s"
    )._sink
    assert isinstance(sink, HttpTiers)
    return sink


def batch(first: int, rows: int = ROWS) -> pa.RecordBatch:
    """Records with an id and a name that has to be escaped."""
    ids = range(first, first + rows)
    return pa.RecordBatch.from_pydict({"id": list(ids), "name": [f'"é\n{number}"' for number in ids]})


def epoch(sink: HttpTiers, number: int = 0) -> Outcome:
    """One micro-batch of two partitions, with a driver of its own."""
    clock = SystemClock()
    job = FakeJob([[batch(0)], [batch(ROWS)]], clock, CountingIds())  # type: ignore[arg-type]
    job.schema = batch(0).schema
    sink.prepare(job.schema)
    ports = Ports(clock=clock, ids=CountingIds(), runner=SerialRunner())
    return EpochLoop(sink, sink.open_ledger("uid-s"), ports=ports, options=EpochOptions()).run(
        micro_batch(number), job
    )


@pytest.mark.parametrize(
    ("body", "requests", "type_"),
    [
        ("json", 2 * ROWS, "application/json"),
        ("ndjson", 6, "application/x-ndjson"),
        ("array", 6, "application/json"),
    ],
)
def test_the_three_kinds_of_bodies(server: HttpServer, tmp_path: Path, body, requests, type_) -> None:
    """Every record once, as it was; as few requests as the kind allows."""
    outcome = epoch(tiers(server, tmp_path, sending=Sending(records=25), body=body))
    assert sorted(server.records(), key=lambda one: one["id"]) == [
        {"id": number, "name": f'"é\n{number}"'} for number in range(2 * ROWS)
    ]
    assert len(server.received) == requests
    assert {request.headers["content-type"] for request in server.received} == {type_}
    assert outcome.metrics["delivered"] == 2 * ROWS
    assert len({request.key for request in server.received}) == requests


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.slow
def test_a_service_with_all_kinds_of_trouble(server: HttpServer, tmp_path: Path, seed: int) -> None:
    """Nothing is lost; what comes twice comes under the key that it came under before."""
    chance, lock = random.Random(seed), threading.Lock()  # noqa: S311 - to be repeated
    lost: list[Received] = []

    def trouble(request: Received):
        with lock:
            kind = chance.choice(["busy", "away", "hangs up", "no answer", "cut", *["well"] * 4])
        match kind:
            case "busy":
                return Reply(429, {"Retry-After": "0"})
            case "away":
                return Reply(503)
            case "hangs up":
                lost.append(request)  # it has read all of it, and may as well have taken it
                return HangUp()
            case "no answer":
                lost.append(request)
                return Silence()
            case "cut":
                return Reply(body=bytes(100), cut=10)  # taken, but for the answer
            case _:
                return Reply()

    server.answers = trouble
    sending = Sending(records=7, retries=50)
    epoch(tiers(server, tmp_path, sending=sending, body="array", timeout="500 ms"))
    keys: defaultdict[int, set[str]] = defaultdict(set)
    for request in (*server.taken, *lost):
        for record in request.records():
            keys[record["id"]].add(request.key)
    assert sorted(keys) == list(range(2 * ROWS))
    assert all(len(found) == 1 for found in keys.values())
    assert {record["id"] for record in server.records()} == set(range(2 * ROWS))


def test_a_decided_epoch_is_not_sent_again(server: HttpServer, tmp_path: Path) -> None:
    """By a driver that has just started, and knows the ledger alone."""
    sink = tiers(server, tmp_path)
    epoch(sink)
    before = len(server.received)
    assert epoch(tiers(server, tmp_path)).replayed
    assert len(server.received) == before


def test_the_record_that_is_refused_is_named(server: HttpServer, tmp_path: Path) -> None:
    """By its key, not by its value; all others have arrived, and none is committed."""
    server.answers = lambda request: Reply(422 if any(one["id"] == 77 for one in request.records()) else 200)
    with pytest.raises(DeliveryError) as raised:
        epoch(tiers(server, tmp_path, body="array"))
    assert "entry 'uid-s/0/1/17': HTTP 422" in str(raised.value)
    assert len(server.records()) == 2 * ROWS - 1
    server.answers = lambda _: Reply()
    assert not epoch(tiers(server, tmp_path, body="array")).replayed


def test_a_wrong_token_ends_it_at_once(server: HttpServer, tmp_path: Path, monkeypatch) -> None:
    """Nothing is left out because of it, and nothing is tried again."""
    monkeypatch.setenv("EVENTS_TOKEN", "hush")
    server.answers = lambda _: Reply(401, body=b"hush is no token of ours")
    sending = Sending(on_refused="drop", in_flight=1)
    with pytest.raises(DeliveryError, match="HTTP 401 Unauthorized") as raised:
        epoch(tiers(server, tmp_path, sending=sending, token_env="EVENTS_TOKEN"))
    assert "hush" not in str(raised.value)
    assert len(server.received) == 1


def test_a_judge_that_fails_fails_the_task(server: HttpServer, tmp_path: Path) -> None:
    """In words; nobody waits for the answer that it did not give."""

    def judge(_):
        raise KeyError("no such field")

    with pytest.raises(DeliveryError, match="judge has failed: KeyError: 'no such field'"):
        epoch(tiers(server, tmp_path, judge=judge))


def test_a_judge_says_which_records_go_again(server: HttpServer, tmp_path: Path) -> None:
    """By their places in the body, which is all that a service knows: of each request, in each task."""
    taken: list[int] = []

    def take_half(request: Received) -> Reply:
        records = request.records()
        failed = list(range(0, len(records), 2)) if len(records) > 1 else []
        taken.extend(one["id"] for place, one in enumerate(records) if place not in failed)
        return Reply(207, body=json.dumps({"failed": failed}).encode())

    server.answers = take_half
    sending = Sending(records=8)
    outcome = epoch(tiers(server, tmp_path, sending=sending, body="array", judge=failed_of))
    assert sorted(taken) == list(range(2 * ROWS))
    assert outcome.metrics["delivered"] == 2 * ROWS


def failed_of(answer: HttpAnswer) -> Again:
    """As docs/sinks.md shows it."""
    return Again(why="207", numbers=json.loads(answer.body)["failed"])


@pytest.mark.parametrize("given", ["ok", Again(why="x", numbers=[99]), Again(why="x", numbers=["3"])])
def test_a_judge_without_sense_loses_no_row(server: HttpServer, tmp_path: Path, given) -> None:
    """Nothing counts as delivered; the error says what is wrong with what it gave, and whose it is."""
    with pytest.raises(DeliveryError, match="judge of HttpService") as raised:
        epoch(tiers(server, tmp_path, judge=lambda _: given))
    assert raised.value.code == "ANSWER"


def test_a_cancelled_task_leaves_no_thread_and_no_connection(server: HttpServer, tmp_path: Path) -> None:
    """Though a hundred requests wait for a service that says nothing, and would wait for an hour."""
    server.answers = lambda _: Silence()

    def pulse() -> None:
        if len(server.received) == 100:
            raise TaskCancelledError("over", code="CANCELLED")

    sending = Sending(in_flight=100)
    context = context_of(clock=SystemClock(), pulse=pulse)
    writer = tiers(server, tmp_path, sending=sending, body="json", timeout="1 h").create_writer(context)
    with pytest.raises(TaskCancelledError):
        writer.write(batch(0, 200), context)
    writer.close()
    assert [one.name for one in threading.enumerate() if one.name.startswith("filesink-http")] == []


def test_what_json_cannot_hold_is_refused_before_anything_is_sent(server: HttpServer, tmp_path: Path) -> None:
    """As by any other sink of JSON."""
    twice = pa.schema([("a", pa.int64()), ("a", pa.int64())])
    with pytest.raises(SchemaError):
        tiers(server, tmp_path).prepare(twice)
    assert server.received == []


def test_a_token_that_is_missing_is_told_by_the_driver(
    server: HttpServer, tmp_path: Path, monkeypatch
) -> None:
    """Before a task runs."""
    monkeypatch.delenv("EVENTS_TOKEN", raising=False)
    with pytest.raises(ConfigError) as raised:
        tiers(server, tmp_path, token_env="EVENTS_TOKEN").prepare(batch(0).schema)
    assert raised.value.code == "NO_TOKEN"


def test_what_is_kept_goes_with_the_next_epoch(server: HttpServer, tmp_path: Path) -> None:
    """A service that is away for one epoch holds up none."""
    sending = Sending(records=30, at_commit="keep")
    server.answers = lambda _: Reply(503)
    assert epoch(tiers(server, tmp_path, sending=sending)).rows == 2 * ROWS
    assert server.records() == []
    server.answers = lambda _: Reply()
    epoch(tiers(server, tmp_path, sending=sending), number=1)
    assert sorted(record["id"] for record in server.records()) == sorted([*range(2 * ROWS)] * 2)
    assert {request.key.split("/")[1] for request in server.taken} == {"0", "1"}
