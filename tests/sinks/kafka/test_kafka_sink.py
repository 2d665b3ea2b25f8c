"""What arrives, what is refused before it is decided, and what becomes of a decided epoch."""

from __future__ import annotations

import copy
import os
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from filesink import (
    CommitConflictError,
    ConcurrentDriverError,
    ConfigError,
    DataError,
    FilesinkError,
    IdentityError,
    StagedDataLost,
    StorageError,
)
from filesink.errors import StateError
from filesink.sinks.kafka import client, markers, session, writer
from filesink.sinks.kafka.answers import Heard
from filesink.sinks.kafka.committables import EpochFiles
from filesink.sinks.kafka.records import Records
from tests.fakes import micro_batch
from tests.sinks.kafka.site import SCHEMA, Site, rows
from tests.sinks.kafka.test_columns import HEADERS

pytestmark = pytest.mark.slow


def of_value(*values: bytes | None, **columns: Any) -> pa.RecordBatch:
    """Rows with these values, and other columns."""
    return pa.RecordBatch.from_pydict({"value": pa.array(values, pa.binary()), **columns})


def test_all_that_a_record_has(site: Site) -> None:
    """Key, value, partition, headers in their order and twice the same, a time of its own; nulls."""
    when = datetime.now(UTC).replace(microsecond=123_000) - timedelta(days=1)
    batch = of_value(
        b"\0\xff",
        None,
        b"",
        key=pa.array(["k", "", None]),
        partition=pa.array([1, 1, 1], pa.int32()),
        headers=pa.array([[("h", b"1"), ("a", None), ("h", b"2")], [], None], HEADERS),
        timestamp=pa.array([when, None, None], pa.timestamp("us", "UTC")),
    )
    site.run(0, batch)
    first, second, third = site.read()
    assert [(one.key(), one.value(), one.partition()) for one in (first, second, third)] == [
        (b"k", b"\0\xff", 1),
        (b"", None, 1),
        (None, b"", 1),
    ]
    assert first.headers() == [("h", b"1"), ("a", None), ("h", b"2")]
    assert not second.headers()
    assert first.timestamp()[1] == int(when.timestamp() * 1000)
    assert second.timestamp()[1] > first.timestamp()[1]


def test_rows_that_name_their_topics(site: Site) -> None:
    """All in one transaction."""
    other = site.beside()
    topics = [site.name, other.name, site.name]
    site.run(0, of_value(b"0", b"1", b"2", topic=topics), topic="")
    assert sorted(message.value() for message in site.read()) == [b"0", b"2"]
    assert [message.value() for message in other.read()] == [b"1"]


def murmur2(data: bytes) -> int:
    """The hash of Java's client, from its specification."""
    mask, mix = 0xFFFFFFFF, 0x5BD1E995
    found = (0x9747B28C ^ len(data)) & mask
    whole = len(data) - len(data) % 4
    for place in range(0, whole, 4):
        word = int.from_bytes(data[place : place + 4], "little") * mix & mask
        found = (found * mix & mask) ^ ((word ^ word >> 24) * mix & mask)
    if data[whole:]:
        found = (found ^ int.from_bytes(data[whole:], "little")) * mix & mask
    found = (found ^ found >> 13) * mix & mask
    return (found ^ found >> 15) & 0x7FFFFFFF


def test_keys_go_where_java_puts_them(site: Site) -> None:
    """A topic that others write to with the same keys can be joined with them."""
    own = site.beside(partitions=7)
    own.run(0, rows(*range(100)))
    assert {message.key(): message.partition() for message in own.read()} == {
        str(one).encode(): murmur2(str(one).encode()) % 7 for one in range(100)
    }


def test_rows_of_a_partition_keep_their_order(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of one task, over files and transactions; tasks follow each other."""
    monkeypatch.setattr(writer, "_FILE_BYTES", 1)
    own = site.beside(partitions=1, options={"transaction_bytes": 200})
    own.run(0, *(rows(*range(first, first + 50)) for first in range(0, 500, 50)))
    assert [int(message.key()) for message in own.read()] == list(range(500))
    assert len(own.read(own.markers)) > 1


@pytest.mark.parametrize(
    ("topic", "batch", "why"),
    [
        ({"max_message_bytes": "2000"}, of_value(b"secret" * 330), "max.message.bytes"),
        ({}, of_value(b"secret", partition=pa.array([2])), "partition 2"),
        ({"cleanup_policy": "compact"}, of_value(b"secret"), "no key"),
        (
            {"message_timestamp_after_max_ms": "60000"},
            of_value(b"secret", timestamp=pa.array([datetime.now(UTC) + timedelta(hours=2)])),
            "after.max.ms",
        ),
        (
            {"message_timestamp_before_max_ms": "60000"},
            of_value(b"secret", timestamp=pa.array([datetime.now(UTC) - timedelta(hours=2)])),
            "before.max.ms",
        ),
    ],
    ids=["large", "partition", "keyless", "future", "past"],
)
def test_rows_that_a_topic_does_not_take(
    site: Site, topic: dict[str, str], batch: pa.RecordBatch, why: str
) -> None:
    """Nothing is decided, nothing is sent, nothing is left, and the value is in no message."""
    own = site.beside(config=topic)
    with pytest.raises(DataError, match=why) as error:
        own.run(0, batch, rows(1).select(["value"]))
    assert error.value.code == "KAFKA_VALUE"
    assert "secret" not in str(error.value)
    assert own.read() == []
    assert own.staged() == []
    own.run(0, rows(1))
    assert own.ids_there() == [1]


def test_what_is_not_refused_goes_in(site: Site) -> None:
    """A row of the largest size that passes is taken by the topic, and many that fill a batch as well."""
    own = site.beside(config={"max_message_bytes": "5000"}, partitions=1)
    own.run(0, of_value(b"x" * 4900, *[b"y" * 100] * 1000))
    assert len(own.read()) == 1001


def test_a_topic_that_is_not_there(site: Site) -> None:
    """Of a column, only the rows tell; what they name is not repeated."""
    with pytest.raises(ConfigError, match="2 rows are for it") as error:
        site.run(0, of_value(b"0", b"1", b"2", topic=["secret", site.name, "secret"]), topic="")
    assert error.value.code == "KAFKA_TOPIC"
    assert "secret" not in str(error.value)
    assert site.read() == []
    assert "secret" not in site.admin.list_topics().topics


def decided(site: Site, *batches: pa.RecordBatch) -> Any:
    """An epoch that is decided, and whose driver died before it sent anything."""

    class Died(BaseException):
        pass

    site.tiers().prepare(SCHEMA)
    driver = site.driver()

    def die(*_: Any) -> Any:
        raise Died

    driver._chain.publisher._committer.commit = die
    with pytest.raises(Died):
        driver.run(micro_batch(0), site.job(*batches))
    return site.driver()


def epoch_of(site: Site) -> EpochFiles:
    """What is decided."""
    ledger = site.tiers().open_ledger("uid-u")
    (epoch,) = ledger.read(0).committables.decode(site.tiers().committable_codec)  # type: ignore[union-attr]
    assert isinstance(epoch, EpochFiles)
    return epoch


def test_a_topic_that_has_changed_its_mind(site: Site) -> None:
    """A decided epoch stays, the error says what to change, and then it goes in."""
    driver = decided(site, of_value(b"x" * 5000, key=["1"]))
    site.alter(site.name, max_message_bytes="1000")
    with pytest.raises(FilesinkError) as error:
        driver.recover()
    assert error.value.code == "KAFKA_REFUSED"
    assert site.read() == []
    site.alter(site.name, max_message_bytes="10000")
    site.driver().recover()
    assert site.ids_there() == [1]
    assert site.staged() == []


def test_a_topic_that_has_gone(site: Site) -> None:
    """As well."""
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
    zombie_session = zombie._session_for(epoch)  # type: ignore[attr-defined]
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
            time.sleep(4)  # longer than the time-out, and than the cluster takes to notice

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


def test_what_dead_attempts_have_left(site: Site) -> None:
    """A stream removes it at its next start; of batch writes it goes by hand, when it is old."""
    tiers = site.tiers()
    tiers.ledger.prepare()
    for context in (site.context(), site.context()):
        attempt = tiers.create_writer(context)
        attempt.write(rows(9), context)
        attempt.prepare_commit(0)
    assert len(site.staged()) == 2
    site.run(0, rows(1))
    assert site.staged() == []
    assert site.ids_there() == [1]


def test_a_file_is_no_larger_than_a_transaction_can_be(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that has many rows stages them in several."""
    monkeypatch.setattr(writer, "_FILE_BYTES", 100)
    site.run(0, *[rows(*range(first, first + 10)) for first in range(0, 50, 10)])
    assert len(epoch_of(site).files) == 5
    assert site.ids_there() == list(range(50))


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
