"""Epochs of a sink that sends: what is kept, what the driver sends, and what a restart repeats."""

from __future__ import annotations

from pathlib import Path

import pytest

from filesink import StoreLedger
from filesink.commit.epoch import EpochLoop
from filesink.commit.replay import EpochOptions
from filesink.errors import CommitFailedError, DeliveryError, InternalError, StateCorruptError
from filesink.ledger.record import BatchWrite
from filesink.ports import Ports, SerialRunner
from filesink.sinks.asynchronous import Again, Delivered, Entry, Sending, Unusable
from filesink.sinks.asynchronous.entries import EntryCodec
from tests.fakes import CountingIds, FakeJob, SettableClock, micro_batch, records
from tests.sinks.asynchronous.service import Service, ServiceSink
from tests.sinks.asynchronous.test_writer import Ticking

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "entries-1.json"


@pytest.fixture
def service() -> Service:
    """A service that keeps up."""
    return Service()


class Epochs:
    """Drivers of one sink; each call is one of its own."""

    def __init__(self, service: Service, directory: Path, **sending) -> None:
        self.ids = CountingIds()
        self.sink = ServiceSink(
            service=service,
            ledger=StoreLedger(directory),
            sending=Sending(**sending),
            uid="s",
            clock=Ticking(),
        )
        self.sink.prepare(None)

    def loop(self, sink_id: str = "uid-s") -> EpochLoop:
        """A driver that has just started."""
        ports = Ports(clock=SettableClock(), ids=self.ids, runner=SerialRunner())
        ledger = self.sink.open_ledger(sink_id)
        return EpochLoop(self.sink, ledger, ports=ports, options=EpochOptions())

    def run(self, cause, *partitions, sink_id: str = "uid-s"):
        """One epoch with a driver of its own."""
        job = FakeJob([[batch] for batch in partitions], SettableClock(), self.ids)
        return self.loop(sink_id).run(cause, job)


def test_an_epoch_is_sent_once(service: Service, tmp_path: Path) -> None:
    """Its replay sends nothing, and every writer is closed."""
    epochs = Epochs(service, tmp_path)
    outcome = epochs.run(micro_batch(0), records("a", "b"), records("c"))
    assert (outcome.rows, outcome.metrics["delivered"]) == (3, 3)
    assert epochs.run(micro_batch(0), records("a", "b"), records("c")).replayed
    assert service.payloads() == ["a", "b", "c"]
    assert service.opened == service.closed == 2


def test_a_batch_is_repeated_if_it_was_not_decided(service: Service, tmp_path: Path) -> None:
    """What had arrived arrives again, under the key that it had."""
    epochs = Epochs(service, tmp_path, records=1)
    service.answers = lambda request: Unusable(why="down") if request.key.endswith("/1/0") else Delivered()
    with pytest.raises(DeliveryError):
        epochs.run(micro_batch(0), records("a"), records("b"))
    service.answers = lambda _: Delivered()
    epochs.run(micro_batch(0), records("a"), records("b"))
    assert sorted(service.taken) == [("uid-s/0/0/0", b"a"), ("uid-s/0/0/0", b"a"), ("uid-s/0/1/0", b"b")]


def busy(service: Service) -> None:
    """It takes nothing for now."""
    service.answers = lambda _: Again(why="HTTP 503")


def well(service: Service) -> None:
    """It keeps up again."""
    service.answers = lambda _: Delivered()


def test_kept_entries_go_with_the_next_epoch_of_their_task(service: Service, tmp_path: Path) -> None:
    """Those of a task that does not run stay in the ledger, and are sent when it runs."""
    epochs = Epochs(service, tmp_path, at_commit="keep", records=1)
    busy(service)
    assert epochs.run(micro_batch(0), records("a"), records("b")).rows == 2
    well(service)
    epochs.run(micro_batch(1), records("c"))
    assert service.payloads() == ["a", "c"]
    epochs.run(micro_batch(2), records("d"), records("e"))
    assert service.payloads() == ["a", "b", "c", "d", "e"]
    assert ("uid-s/0/1/0", b"b") in service.taken


@pytest.mark.parametrize("last", ["upkeep", "finish"])
def test_the_driver_sends_what_no_writer_comes_for(service: Service, tmp_path: Path, last: str) -> None:
    """When no data has come for a while, and at the end; then nothing is left."""
    epochs = Epochs(service, tmp_path, at_commit="keep", records=1)
    busy(service)
    epochs.run(micro_batch(0), records("a"), records("b"))
    well(service)
    assert getattr(epochs.loop(), last)() is not None
    assert service.payloads() == ["a", "b"]
    assert getattr(epochs.loop(), last)() is None
    assert service.opened == service.closed


def test_a_batch_write_keeps_nothing(service: Service, tmp_path: Path) -> None:
    """No epoch comes after it: the driver sends what its tasks have left, before the write returns."""
    epochs = Epochs(service, tmp_path, at_commit="keep", records=1)
    service.answers = lambda request: (
        Delivered() if request.tries or _by_driver(service) else Again(why="503")
    )
    epochs.run(BatchWrite(writer="batch-1"), records("a"), records("b"), sink_id="appends-s")
    assert service.payloads() == ["a", "b"]


def _by_driver(service: Service) -> bool:
    return service.opened == 3  # after those of two tasks


def test_what_the_driver_cannot_send_stays_decided(service: Service, tmp_path: Path) -> None:
    """Nothing is lost: whoever comes next sends it, under its keys."""
    epochs = Epochs(service, tmp_path, at_commit="keep", records=1, retries=0)
    service.answers = lambda _: Again(why="HTTP 503")
    with pytest.raises(DeliveryError):  # retries are over in the task
        epochs.run(micro_batch(0), records("a"))
    epochs = Epochs(service, tmp_path, at_commit="keep", records=1)
    epochs.run(micro_batch(0), records("a"))
    with pytest.raises(CommitFailedError, match="HTTP 503"):
        epochs.loop().finish()
    well(service)
    epochs.run(micro_batch(1), records("b"))
    assert service.payloads() == ["a", "b"]
    assert ("uid-s/0/0/0", b"a") in service.taken


def test_bytes_of_the_first_release() -> None:
    """They are read for ever, and written until the version goes up."""
    entries = [
        Entry("uid-s/0/1", 0, b""),
        Entry("uid-s/0/1", 1, bytes(range(256))),
        Entry("uid-s/7/0", 5, b"sent", sent_with=3),
    ]
    assert EntryCodec().decode(1, GOLDEN.read_bytes()) == entries
    assert EntryCodec().encode(entries) == GOLDEN.read_bytes()


def test_entries_come_back_from_their_bytes() -> None:
    """Whatever is in a payload."""
    entries = [Entry("uid-s/0/1", 0, b""), Entry("uid-s/0/1", 1, bytes(range(256)))]
    assert EntryCodec().decode(1, EntryCodec().encode(entries)) == entries


@pytest.mark.parametrize(
    "data", [b"1", b"[1]", b'[["a",1]]', b'[["a",-1,""]]', b'[["a",1,"?"]]', b'[["a",1,5]]']
)
def test_other_bytes_are_damage(data: bytes) -> None:
    """Never taken for entries."""
    with pytest.raises(StateCorruptError):
        EntryCodec().decode(1, data)


def test_a_task_has_no_ledger(service: Service, tmp_path: Path) -> None:
    """Nor its credentials."""
    epochs = Epochs(service, tmp_path)
    assert epochs.sink.__getstate__()["ledger"] is None
    sent = object.__new__(ServiceSink)
    sent.__dict__.update(epochs.sink.__getstate__())  # as pickle does it
    with pytest.raises(InternalError, match="a task has no ledger"):
        sent.open_ledger("x")
