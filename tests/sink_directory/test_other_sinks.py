"""The ledger of a sink that writes no files is no damaged ledger of one that does."""

from __future__ import annotations

from pathlib import Path

import pytest

import filesink
from filesink.errors import ConfigError
from filesink.ledger.ledger import Ledger
from filesink.ledger.record import EMPTY, EpochRecord, MicroBatch, Section
from filesink.sinks.asynchronous.entries import EntryCodec
from filesink.sinks.postgres.committables import CommittableCodec
from filesink.sinks.store_ledger import StoreLedger
from tests.cli.running import run
from tests.golden.states.frozen import FROZEN
from tests.operations.test_fsck import everything

GOLDEN = Path(__file__).parents[1] / "golden"


def record(slot: int, committables: Section, state: Section | None = None) -> EpochRecord:
    """One of a stream."""
    cause = MicroBatch(query_id="q", batch_id=slot, fingerprint="f")
    return EpochRecord(
        slot=slot,
        nonce=f"{slot}",
        sink_id="uid-other",
        cause=cause,
        last_batch=cause,
        decided_ms=1,
        rows=1,
        committables=committables,
        states={} if state is None else {0: state},
    )


def of_postgres() -> EpochRecord:
    """What a ``PostgresSink`` has decided."""
    data = (GOLDEN / "postgres-committables-1.json").read_bytes().rstrip()
    return record(0, Section(CommittableCodec().version, data))


def of_user() -> EpochRecord:
    """What a sink of somebody's own has: bytes of any kind, of any version."""
    return record(0, Section(7, b"\x00 rows 1 to 5"))


def of_service() -> EpochRecord:
    """What waits to be sent again by a sink that sends."""
    return record(
        0, Section(EntryCodec.version, b"[]"), Section(EntryCodec.version, b'[{"id":"a","payload":""}]')
    )


@pytest.mark.parametrize("make", [of_postgres, of_user, of_service])
def test_it_is_told(tmp_path: Path, make) -> None:
    """By every door, also if a later epoch had nothing to commit; and nothing is made there."""
    place = StoreLedger(tmp_path / "ledger")
    place.prepare()
    ledger: Ledger = place.open("uid-other")
    for one in (make(), record(1, EMPTY), record(2, Section(1, b"[]"))):
        ledger.decide(one)
        ledger.complete(one)
    before = everything(tmp_path)
    for door in (filesink.open, filesink.adopt, filesink.fsck):
        with pytest.raises(ConfigError) as caught:
            door(tmp_path / "ledger")
        assert caught.value.code == "OTHER_SINK"
        assert "'uid-other'" in str(caught.value)
    for command in ("status", "fsck", "log", "recover", "adopt", "sweep"):
        ran = run(command, tmp_path / "ledger")
        assert (ran.code, "[OTHER_SINK]" in ran.err, len(ran.err.splitlines())) == (2, True, 1)
    assert everything(tmp_path) == before


@pytest.mark.parametrize("frozen", FROZEN, ids=str)
def test_states_of_earlier_releases_are_none(frozen, tmp_path: Path) -> None:
    """They have no inventory either, and are paths of files."""
    base = frozen.unpacked(tmp_path) / "base"
    assert filesink.open(base).sinks() is not None
