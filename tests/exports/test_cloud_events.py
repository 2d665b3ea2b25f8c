"""What an event says, and what it does not say."""

from __future__ import annotations

import json
from typing import Any

from filesink.exports.notifications.cloud_events import event_bytes
from filesink.inventory.entry import AddedFile, Cause
from filesink.ports import Who
from tests.exports.receivers import Told

PRIVATE = {
    "who": Who(application="secret-application", user="secret-user", host="secret-host"),
    "source": '{"topic":"secret-offsets"}',
}


def event_of(place: Told, *added: AddedFile, **more: Any) -> bytes:
    """That of one more epoch."""
    draft = place.draft(**{"added": added, **more})
    version = place.driver.append(draft, floor=place.driver.newest())
    assert version
    (entry,) = place.directory().follow(version - 1)
    return event_bytes(entry)


def test_an_event_of_a_micro_batch() -> None:
    """Each attribute that CloudEvents asks for, and the facts of the epoch."""
    place = Told()
    file = AddedFile(path="day=1/part-a", size=10, rows=None, statistics='{"name":{"min":"secret"}}')
    event = json.loads(event_of(place, file, removed=("part-b",), rows=4, size=10, **PRIVATE))
    data = event.pop("data")
    inventory = place.directory().inventory_id
    assert event == {
        "specversion": "1.0",
        "id": f"{inventory}/1",
        "source": f"urn:uuid:{inventory}",
        "type": "filesink.epoch.visible",
        "time": "2023-11-14T22:13:20.000Z",
        "sequence": "000000000001",
        "datacontenttype": "application/json",
    }
    assert data == {
        "version": 1,
        "sink": "uid-u",
        "slot": 0,
        "kind": "micro-batch",
        "query_id": "q",
        "batch_id": 0,
        "decided": "2023-11-14T22:13:20.000Z",
        "visible": "2023-11-14T22:13:20.000Z",
        "rows": 4,
        "bytes": 10,
        "added_files": 1,
        "removed_files": 1,
        "added": [{"path": "day=1/part-a", "bytes": 10, "rows": None}],
        "removed": ["part-b"],
    }


def test_nothing_private_leaves_the_path() -> None:
    """No statistics, offsets, users, hosts; and not where the path is."""
    file = AddedFile(path="part-a", size=10, rows=1, statistics='{"name":{"min":"secret"}}')
    data = event_of(Told(), file, **PRIVATE)
    assert b"secret" not in data
    assert b"/base" not in data


def test_an_event_is_the_same_whenever_it_is_made() -> None:
    """Also when its epoch is folded: what is sent again is what was sent."""
    place = Told()
    first = event_of(
        place, AddedFile(path="a", size=1, rows=1), cause=Cause(kind="batch-write", mode="append")
    )
    place.epochs(9)
    assert place.listing().marks[-1] > 1
    assert event_bytes(next(place.directory().follow())) == first


def test_a_large_epoch_makes_a_small_event() -> None:
    """The lists are left out, and the numbers tell that there is something to be asked for."""
    place = Told()
    for count, length in ((1_001, 1), (900, 200)):
        name = f"{count}-" + "x" * length
        files = [AddedFile(path=f"{name}-{number}", size=1, rows=1) for number in range(count)]
        event = event_of(place, *files)
        assert len(event) < 1_000
        data = json.loads(event)["data"]
        assert (data["added"], data["removed"], data["added_files"]) == (None, None, count)
    assert len(event_of(place, AddedFile(path="ü/😀", size=1, rows=1))) < 1_000
