"""What becomes of a decided epoch: it goes in once, or waits for whoever mends what is in its way."""

from __future__ import annotations

import copy
import os
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from filesink import (
    CommitConflictError,
    ConcurrentDriverError,
    FilesinkError,
    IdentityError,
    StagedDataLost,
    StorageError,
)
from filesink.errors import StateError
from filesink.sinks.kafka import markers, session
from filesink.sinks.kafka.cluster import client, topics
from filesink.sinks.kafka.cluster.answers import Heard
from filesink.sinks.kafka.records import Records
from tests.sinks.kafka.site import Site, decided, epoch_of, rows

pytestmark = pytest.mark.slow


def test_a_topic_that_has_changed_its_mind(site: Site) -> None:
    """A decided epoch stays, the error says what to change, and then it goes in."""
    driver = decided(site, rows(1, value="x" * 5000))
    site.alter(site.name, max_message_bytes="1000")
    with pytest.raises(FilesinkError) as error:
        driver.recover()
    assert error.value.code == "KAFKA_REFUSED"
    assert site.read() == []
    site.alter(site.name, max_message_bytes="10000")
    site.driver().recover()
    assert site.ids_there() == [1]
    assert site.staged() == []


def test_a_topic_that_has_gone(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """As well."""
    monkeypatch.setattr(topics, "_LOOKS", 0)
    driver = decided(site, rows(1))
    site.delete(site.name)
    with pytest.raises(FilesinkError) as error:
        driver.recover()
    assert error.value.code in {"KAFKA_TOPIC", "RETRIES"}
    site.create(site.name)
    site.driver().recover()
    assert site.ids_there() == [1]


def test_staged_rows_that_are_lost(site: Site) -> None:
    """Nothing of the epoch is sent, and nobody waits for a transaction that was begun."""
    driver = decided(site, rows(1), rows(2))
    lost = site.directory / "ledger" / epoch_of(site).files[1].staged.path
    lost.unlink()
    with pytest.raises(StagedDataLost):
        driver.recover()
    assert site.read() == []


def test_staged_rows_that_are_damaged(site: Site) -> None:
    """The same, though the file has kept its size and its times."""
    driver = decided(site, rows(1), rows(2))
    path = site.directory / "ledger" / epoch_of(site).files[1].staged.path
    before = path.stat()
    path.write_bytes(b"\xff" * before.st_size)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(StagedDataLost):
        driver.recover()
    assert site.read() == []


def test_a_driver_that_was_taken_for_dead(site: Site) -> None:
    """It is fenced off, whatever it was about to do, and its rows are there once."""
    driver = decided(site, rows(1))
    epoch = epoch_of(site)
    zombie = site.tiers().create_committer()
    zombie_session = zombie._sender._session_for(epoch)  # type: ignore[attr-defined]
    driver.recover()
    with pytest.raises(ConcurrentDriverError) as error:
        zombie_session.send(epoch, 1, [rows(1)])
    assert error.value.code == "KAFKA_FENCED"
    assert site.ids_there() == [1]


def test_a_transaction_that_takes_too_long(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cluster ends it; it is tried again, and its rows are there once."""
    slow = iter([True])
    send = Records.send

    def sending(records: Records, batch: pa.RecordBatch) -> None:
        send(records, batch)
        if next(slow, False):
            time.sleep(2)  # longer than the time-out, and than the cluster takes to notice

    monkeypatch.setattr(Records, "send", sending)
    site.run(0, rows(1), transaction_timeout="1 s")
    assert next(slow, None) is None
    assert site.ids_there() == [1]


def test_an_epoch_that_comes_to_the_committer_again(site: Site) -> None:
    """From another process, after its files are gone: its marker says that there is nothing to do."""
    site.run(0, rows(1), rows(2))
    for _ in range(2):
        assert site.tiers().create_committer().commit([epoch_of(site)]) == []
    assert site.ids_there() == [1, 2]


def test_a_ledger_that_was_begun_anew(site: Site, tmp_path: Path) -> None:
    """Under the same uid it would send epochs again that are there; it is refused before a task runs."""
    site.run(0, rows(1))
    own = copy.copy(site)
    own.directory = tmp_path / "other"
    own.directory.mkdir()
    with pytest.raises(IdentityError) as error:
        own.run(0, rows(1))
    assert error.value.code == "KAFKA_EPOCH"
    assert own.staged() == []
    assert site.ids_there() == [1]


def test_two_epochs_of_one_number(site: Site) -> None:
    """Not even a committer takes one for the other."""
    site.run(0, rows(1))
    epoch = epoch_of(site)
    other = replace(epoch, files=(*epoch.files, *epoch.files))
    with pytest.raises(CommitConflictError):
        site.tiers().create_committer().commit([other])


@pytest.mark.usefixtures("own_markers")
def test_markers_that_somebody_has_deleted(site: Site) -> None:
    """Nobody knows whether a decided epoch is there: it is said, and nothing is sent on a guess."""
    driver = decided(site, rows(1))
    site.delete(site.markers)
    site.create(site.markers, 16, cleanup_policy="compact")
    with pytest.raises(StateError) as error:
        driver.recover()
    assert error.value.code == "KAFKA_MARKERS"
    assert site.read() == []


def open_transaction(site: Site, name: str) -> Producer:
    """Of another sink, that has written its marker beside those of ``name``."""
    other = client.transactional_producer(site.cluster(), "other", batch_bytes=1000, heard=Heard())
    other.init_transactions()
    other.begin_transaction()
    other.produce(site.markers, b"", b"other", partition=markers.partition_of(name))
    other.flush()
    return other


@pytest.mark.usefixtures("own_markers")
def test_a_transaction_of_another_sink(site: Site) -> None:
    """One that is open before our marker hides it from readers: it is waited for, nothing is sent again."""
    driver = decided(site, rows(1))
    epoch = epoch_of(site)
    ours = session.Session(site.cluster(), epoch, site.clock)
    other = open_transaction(site, epoch.name)
    ours.send(epoch, 1, [rows(1)])
    threading.Timer(1.0, other.abort_transaction).start()
    driver.recover()
    assert site.ids_there() == [1]


@pytest.mark.usefixtures("own_markers")
def test_a_transaction_of_another_sink_that_does_not_end(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is an error that passes; what is not known is not sent again."""
    site.run(0, rows(1))
    other = open_transaction(site, epoch_of(site).name)
    monkeypatch.setattr(markers, "_PATIENCE", 2)
    monkeypatch.setattr("filesink.retry._LONGEST_MS", 0)
    committer = site.tiers().create_committer()
    assert committer.commit([epoch_of(site)]) == [epoch_of(site)]
    assert isinstance(committer.failure, StorageError)
    assert committer.failure.code == "KAFKA_AWAY"
    other.abort_transaction()
    assert committer.commit([epoch_of(site)]) == []
    assert site.ids_there() == [1]


def test_no_producer_is_left_behind(site: Site) -> None:
    """A session that is over has no open transaction that readers would wait for."""
    committer = site.tiers().create_committer()
    driver = decided(site, rows(1))
    broken = session.Session(site.cluster(), epoch_of(site), site.clock)

    def batches() -> Any:
        yield rows(1)
        raise RuntimeError("the store broke")

    with pytest.raises(RuntimeError):
        broken.send(epoch_of(site), 1, batches())
    assert site.read() == []  # at once, not after the time-out of the transaction
    driver.recover()
    assert site.ids_there() == [1]
    committer.abort([])


@pytest.mark.usefixtures("own_markers")
@pytest.mark.nightly
def test_markers_outlive_compaction(site: Site) -> None:
    """Old ones go and the newest stays: an epoch that comes again then, or a new ledger, is known."""
    site.create(
        site.markers,
        16,
        cleanup_policy="compact",
        segment_ms="100",
        min_cleanable_dirty_ratio="0.01",
        max_compaction_lag_ms="1000",
    )
    for number in range(60):
        site.run(number, rows(number))
        if number > 5 and len(site.read(site.markers)) < number:
            break
        time.sleep(1)
    assert len(site.read(site.markers)) < number + 1, "nothing was compacted"
    ledger = site.tiers().open_ledger("uid-u")
    last = ledger.read(number)
    assert last is not None
    (epoch,) = last.committables.decode(site.tiers().committable_codec)
    assert site.tiers().create_committer().commit([epoch]) == []
    assert site.ids_there() == list(range(number + 1))
