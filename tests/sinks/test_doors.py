"""The doors of any sink, as far as they need no Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from filesink import ConfigError, HttpSink, SparkSink, StoreLedger
from filesink.api import JsonCodec
from filesink.commit.epoch import EpochLoop
from filesink.commit.replay import EpochOptions
from filesink.errors import CommitFailedError
from filesink.ledger.record import BatchWrite, Cause, Section
from filesink.ports import Ports, SerialRunner
from filesink.save_mode import SaveMode
from filesink.spark.arguments import check_mode
from tests.examples.toy_sink import IdSink
from tests.fakes import CountingIds, FakeJob, SettableClock, micro_batch, records
from tests.sinks.letters import Letters


def run(sink: Letters, cause: Cause, sink_id: str) -> None:
    """One epoch of two records, without Spark."""
    clock, ids = SettableClock(), CountingIds()
    ports = Ports(clock=clock, ids=ids, runner=SerialRunner())
    loop = EpochLoop(sink, sink.open_ledger(sink_id), ports=ports, options=EpochOptions())
    loop.run(cause, FakeJob([[records("a")], [records("b")]], clock, ids))


@pytest.mark.parametrize(
    ("cause", "sink_id"),
    [(micro_batch(0), "uid-letters"), (BatchWrite(writer="batch-1"), "appends-letters")],
    ids=["stream", "batch"],
)
def test_recover_completes_what_a_crashed_driver_has_decided(
    letters: Letters, cause: Cause, sink_id: str
) -> None:
    """Once: the second call finds nothing to do."""
    with pytest.raises(CommitFailedError):
        run(letters.closed(), cause, sink_id)
    assert letters.arrived() == []
    sink = SparkSink(letters)
    assert [report.rows for report in sink.recover()] == [2]
    assert letters.arrived() == ["a", "b"]
    assert sink.recover() == []


def test_recover_leaves_other_sinks_of_the_directory_alone(letters: Letters) -> None:
    """They have another uid, and may have another committer."""
    with pytest.raises(CommitFailedError):
        run(letters.closed(), micro_batch(0), "uid-others")
    assert SparkSink(letters).recover() == []


def test_a_sink_is_a_sink() -> None:
    """What is wrapped is looked at when it is given."""
    with pytest.raises(ConfigError, match="sink must be of type Sink, got the class Letters; call it"):
        SparkSink(Letters)  # type: ignore[arg-type]


def test_a_mode_that_a_sink_lacks(tmp_path: Path) -> None:
    """Its sentence has the name that users know, and not that of our tiers."""
    sink = HttpSink("http://h/", ledger=tmp_path)._sink
    with pytest.raises(ConfigError, match="HttpSink cannot write in mode 'overwrite'; it has 'append'"):
        check_mode(sink, SaveMode.OVERWRITE)


@pytest.mark.parametrize("given", [None, "", " "])
def test_a_ledger_is_required(given: str | None) -> None:
    """By its own name, in a sink of ours and in one of a user; no path of files is spoken of."""
    for make in (lambda: HttpSink("http://h/", ledger=given), lambda: IdSink(ledger=given)):  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="ledger is required") as raised:
            make()
        assert raised.value.code == "PATH_REQUIRED"


def test_the_path_of_a_ledger_will_do(tmp_path: Path) -> None:
    """In a sink of a user as in ours."""
    assert IdSink(ledger=str(tmp_path)).ledger == StoreLedger(tmp_path)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [None, "abc", 5, {1: 2}, {1}])
def test_committables_are_a_list(given: object) -> None:
    """What a writer of a user returns instead is told in a sentence."""
    with pytest.raises(ConfigError, match="return a list") as raised:
        Section.of(JsonCodec(), given)  # type: ignore[arg-type]
    assert raised.value.code == "BAD_VALUE"


@pytest.mark.parametrize("given", [{1, 2}, b"x", float("nan"), object()])
def test_committables_that_json_cannot_hold(given: object) -> None:
    """Are refused before an epoch is decided, in a sentence."""
    with pytest.raises(ConfigError, match="JSON cannot hold") as raised:
        JsonCodec().encode([given])
    assert raised.value.code == "BAD_VALUE"


def test_options_of_a_ledger_are_shown_to_nobody() -> None:
    """They may hold credentials."""
    assert "hush" not in repr(StoreLedger("s3://bucket/ledger", storage_options={"secret": "hush"}))


def test_each_listener_of_a_sink_is_told(letters: Letters) -> None:
    """Of any kind of sink; nothing else is taken for one."""
    one: list[object] = []
    other: list[object] = []
    sink = SparkSink(letters).with_listener(one.append).with_listener(other.append)
    audience = sink._engine.options.audience
    assert audience is not None
    audience.tell("event")
    assert (one, other, audience.destination) == (["event"], ["event"], "Letters")
    with pytest.raises(ConfigError):
        sink.with_listener(7)  # type: ignore[arg-type]
