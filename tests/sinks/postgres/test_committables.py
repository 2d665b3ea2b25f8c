"""What goes on record, and what is not taken back from one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from filesink import StateCorruptError
from filesink.sinks.postgres.committables import (
    CommittableCodec,
    EpochKey,
    PreparedRows,
    StagedRows,
    Target,
    new_name,
    parse_name,
    prefix_of,
)
from tests.fakes import CountingIds

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "postgres-committables-1.json"
CODEC = CommittableCodec()

PLAIN = EpochKey(sink_id="uid-u", slot=7, target=Target(schema="shop", table="goods"), schema="loading")
BY_KEYS = EpochKey(
    sink_id="batch-1",
    slot=0,
    target=Target(schema='a "b"', table="ß", keys=("id", "day"), newest_by="at"),
    schema='a "b"',
)


def values() -> list[StagedRows | PreparedRows]:
    """One of each kind."""
    ids = CountingIds()
    plain, by_keys = (
        [new_name(one, ids=ids, now_ms=1_700_000_000_000) for _ in range(2)] for one in (PLAIN, BY_KEYS)
    )
    return [
        StagedRows(epoch=PLAIN, name=plain[0], rows=3),
        PreparedRows(epoch=PLAIN, name=plain[1], rows=10**12),
        StagedRows(epoch=BY_KEYS, name=by_keys[0], rows=1),
        StagedRows(epoch=BY_KEYS, name=by_keys[1], rows=2),
    ]


def test_bytes_of_the_first_release() -> None:
    """They are read for ever, and written until the version goes up."""
    assert CODEC.decode(1, GOLDEN.read_bytes()) == values()
    assert CODEC.encode(values()) == GOLDEN.read_bytes()


def test_a_name_tells_whose_it_is() -> None:
    """By its tag, which differs for each sink and target, and its slot."""
    told = [parse_name(one.name) for one in values()]
    assert all(one is not None and one.made_ms == 1_700_000_000_000 for one in told)
    assert [one.slot for one in told if one] == [7, 7, 0, 0]
    assert len({one.tag for one in told if one}) == 2
    assert values()[2].name.startswith(prefix_of(BY_KEYS.target))
    assert not values()[0].name.startswith(prefix_of(PLAIN.target))


@pytest.mark.parametrize(
    "name", ["filesink_epochs", "goods", "", values()[0].name + "0", values()[0].name.upper()]
)
def test_a_name_that_is_none_of_ours(name: str) -> None:
    """Such a table is never dropped."""
    assert parse_name(name) is None


def damaged(change: str, value: Any) -> bytes:
    """A list of rows with one thing changed, named by its path."""
    entries = json.loads(GOLDEN.read_bytes())
    *path, last = [int(one) if one.isdigit() else one for one in change.split(".")]
    place: Any = entries
    for one in path:
        place = place[one]
    place[last] = value
    return json.dumps(entries).encode()


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("0.slot", 8),
        ("0.slot", -1),
        ("0.slot", "7"),
        ("0.sink_id", "uid-v"),
        ("0.target.table", "bads"),
        ("0.target.keys", "id"),
        ("0.target.keys", [1]),
        ("0.target.more", "x"),
        ("0.more", "x"),
        ("0.schema", None),
        ("0.tasks.0", ["staged", "pg_class", 1]),
        ("0.tasks.0", ["staged", values()[2].name, 1]),
        ("0.tasks.0.0", "stolen"),
        ("0.tasks.0.2", -1),
        ("0.tasks.0.2", True),
        ("0.tasks", 3),
        ("0", 3),
    ],
)
def test_a_record_that_was_changed(change: str, value: Any) -> None:
    """What this sink cannot have written moves and drops nothing."""
    with pytest.raises(StateCorruptError):
        CODEC.decode(1, damaged(change, value))


def test_a_record_that_is_no_list() -> None:
    """Nor JSON."""
    for data in (b"{}x", b"3", b'"ab"'):
        with pytest.raises(StateCorruptError):
            CODEC.decode(1, data)
