"""The feed of a path: each version once, in order, the same for every follower whenever it looks."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import filesink
from filesink import FeedEntry, SinkDirectory
from filesink.errors import ConfigError, FilesinkError, IdentityError, StateCorruptError, StateError
from filesink.inventory import versions
from filesink.inventory.adoption.adopt import Adoption
from filesink.inventory.appending import Inventory
from filesink.inventory.entry import Cause, Draft
from filesink.inventory.names import DIRECTORY, entry_path, mark_path
from filesink.naming import LEDGER_ROOT
from filesink.ports import Who
from filesink.sink_directory.site import Site
from tests.fakes import SettableClock
from tests.inventory.place import DAY_MS, Place
from tests.sink_directory.written import Written, records

FOLD_EVERY = 3


@dataclass
class PassingClock(SettableClock):
    """Sleeping takes its time, and something may happen meanwhile."""

    meanwhile: Callable[[], object] = lambda: None
    pauses: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += round(seconds * 1000)
        self.meanwhile()


class Followed(Place):
    """An inventory in memory, and who follows it."""

    def __init__(self) -> None:
        super().__init__(clock=PassingClock(now=1_700_000_000_000))
        self.history_ms = 30 * DAY_MS
        self.driver: Inventory | None = None

    def directory(self, base_path: str = "/base") -> SinkDirectory:
        return SinkDirectory(_site=Site(base_path=base_path, store=self.store(), clock=self.clock))

    def feed(self, after: int | None = None, **more: Any) -> list[FeedEntry]:
        return list(self.directory().follow(after, **more))

    def append(self, *added: str, **more: Any) -> None:
        if self.driver is None:
            self.driver = self.inventory(fold_every=FOLD_EVERY, history_ms=self.history_ms)
        assert self.driver.append(self.draft(*added, **more), floor=self.driver.newest())

    def random_epoch(self, rng: random.Random) -> None:
        """Adds some files, and removes some that are live."""
        live = sorted(self.live()) if self.drafts else []
        gone = tuple(rng.sample(live, k=min(len(live), rng.choice((0, 0, 1, 3)))))
        number = len(self.drafts)
        self.append(
            *(f"d={rng.randrange(3)}/part-{number}-{one}" for one in range(rng.randrange(4))), removed=gone
        )


@pytest.fixture
def place() -> Followed:
    """A path in memory."""
    return Followed()


def told(entry: FeedEntry) -> tuple[object, ...]:
    """What is compared with ``noted``."""
    return entry.epoch.slot, [file.path for file in entry.added], list(entry.removed)


def noted(draft: Draft) -> tuple[object, ...]:
    """What the entry of an epoch has to tell."""
    return draft.slot, sorted(file.path for file in draft.added), sorted(draft.removed)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("most", [1, 7, versions.MOST])
def test_every_follower_gets_the_same(
    place: Followed, monkeypatch: pytest.MonkeyPatch, seed: int, most: int
) -> None:
    """Who reads each entry as it comes, who sleeps over folds, who comes late; few at a time or many."""
    monkeypatch.setattr(versions, "MOST", most)
    rng = random.Random(seed)  # noqa: S311 - histories to choose from
    awake: list[FeedEntry] = []
    sleepy: list[FeedEntry] = []
    for _ in range(60):
        place.random_epoch(rng)
        awake += place.feed(len(awake))
        if rng.random() < 0.1:
            sleepy += place.feed(len(sleepy))
    sleepy += place.feed(len(sleepy))
    late = place.feed()
    assert [told(entry) for entry in late] == [noted(draft) for draft in place.drafts]
    assert awake == sleepy == late
    for after in range(0, 61, 7):
        assert place.feed(after) == late[after:]
        assert place.feed(after, until=after + 5) == late[after : after + 5]


def test_an_entry_says_all_that_was_noted(place: Followed) -> None:
    """What for, when, from where, which files with what is known of them; folded as well."""
    more = {
        "cause": Cause(kind="batch-write", mode="append", txn_id="t"),
        "who": Who(application="a", user="u", host="h"),
        "source": '{"offset":11}',
        "decided_ms": 1_000,
        "visible_ms": 2_000,
        "rows": 7,
    }
    place.append("k=1/part-a", "part-b", removed=("part-c",), **more)
    entries = place.feed()
    for _ in range(FOLD_EVERY):
        place.append()
    assert place.listing().marks[-1] == 1
    assert place.feed(until=1) == entries
    (entry,) = entries
    assert entry.id == f"{place.directory().inventory_id}/1"
    assert (entry.epoch.kind, entry.epoch.mode, entry.epoch.txn_id) == ("batch-write", "append", "t")
    assert (entry.epoch.source, entry.epoch.rows, entry.epoch.user) == ('{"offset":11}', 7, "u")
    assert (entry.epoch.decided.timestamp(), entry.epoch.visible.timestamp()) == (1, 2)
    assert [(file.path, file.bucket, file.size, file.rows) for file in entry.added] == [
        ("k=1/part-a", "k=1", 10, 2),
        ("part-b", "", 10, 2),
    ]
    assert entry.removed == ("part-c",)
    assert repr(entry) == "<FeedEntry 1: 2 added, 1 removed>"


def test_a_fold_under_a_follower(place: Followed) -> None:
    """At whatever read it comes, no entry is missed or told twice."""
    rng = random.Random(1)  # noqa: S311 - a history
    for _ in range(FOLD_EVERY * 4 - 1):
        place.random_epoch(rng)
    whole = place.feed()
    reads = len([call for call in place.calls if call[0] == "read"])
    struck = 0
    for at in range(reads):
        other = Followed()
        rng = random.Random(1)  # noqa: S311 - a history
        for _ in range(FOLD_EVERY * 4 - 1):
            other.random_epoch(rng)
        other.calls.clear()

        def strike(operation: str, _path: str, other: Followed = other, at: int = at) -> None:
            if operation == "read" and sum(call[0] == "read" for call in other.calls) == at:
                other.before = lambda _operation, _path: None
                other.append()

        other.before = strike
        found = other.feed()
        struck += len(other.drafts) == FOLD_EVERY * 4
        assert [told(entry) for entry in found][: len(whole)] == [told(entry) for entry in whole]
        assert [entry.version for entry in found] == list(range(1, len(found) + 1))
    assert struck > 4


def test_nothing_is_written_and_little_is_read(place: Followed) -> None:
    """At the tip an entry costs a listing, the mark, itself and the next mark; a pause two reads."""
    for number in range(FOLD_EVERY * 3 + 1):
        place.append(f"part-{number}")
    place.calls.clear()
    following = place.directory().follow(FOLD_EVERY * 3, wait="1 s")
    next(following)
    assert [name for _, name in place.calls[1:]] == ["000003.mark", "000000000010.entry", "000004.mark"]
    place.calls.clear()
    assert list(following) == []
    assert set(place.calls) == {("read", "000000000011.entry"), ("read", "000004.mark")}
    assert len(place.calls) == 2 * (1 + len(place.clock.pauses))


def test_a_follower_that_waits(place: Followed) -> None:
    """It gets what comes, also what has come and was folded within a pause, and gives up after a while."""
    came = iter([(), ("part-1",), ("part-2", "part-3", "part-4", "part-5"), (), ("part-6",)])

    def meanwhile() -> None:
        for name in next(came, ()):
            place.append(name)

    place.append("part-0")
    place.clock.meanwhile = meanwhile
    before = place.clock.now
    assert [told(entry)[1] for entry in place.feed(wait="2 s")] == [[f"part-{number}"] for number in range(7)]
    assert place.clock.now - before >= 2_000
    assert place.feed(7, wait=0) == []


def test_pauses_grow_where_a_look_costs_something(place: Followed) -> None:
    """Up to ten seconds on an object store, and never on a local disk."""
    place.append("part-0")
    assert list(place.directory().follow(1, wait="10 min")) == []
    assert max(place.clock.pauses) <= 0.02
    place.clock.pauses.clear()
    assert list(place.directory("s3://bucket/base").follow(1, wait="10 min")) == []
    assert place.clock.pauses[0] == 0.2
    assert place.clock.pauses == sorted(place.clock.pauses[:-1]) + place.clock.pauses[-1:]
    assert max(place.clock.pauses) == 10


def test_a_path_whose_first_epoch_is_still_to_come(tmp_path: Path) -> None:
    """A follower may be there before it."""
    written = Written(tmp_path / "base")
    (tmp_path / "base" / LEDGER_ROOT / "uid-u").mkdir(parents=True)
    assert list(filesink.follow(tmp_path / "base")) == []
    following = filesink.follow(tmp_path / "base", after=0, wait="forever")
    written.write(records(1, "a"))
    entry = next(following)
    assert (entry.version, entry.epoch.kind, [file.rows for file in entry.added]) == (1, "micro-batch", [1])


def test_what_a_real_sink_tells(tmp_path: Path) -> None:
    """Appends, and an overwrite with the files that it replaces."""
    written = Written(tmp_path / "base")
    written.write(records(1, "a", "b"))
    written.write(records(2, "c"))
    written.overwrite(records(3, "d"))
    first, second, third = filesink.follow(tmp_path / "base")
    assert third.removed == tuple(sorted(file.path for entry in (first, second) for file in entry.added))
    assert third.epoch.mode == "overwrite"
    assert [(file.bucket, file.rows) for file in third.added] == [("k=3", 1)]
    assert third.added[0].path == filesink.open(tmp_path / "base").snapshot().files[0].path


@pytest.mark.parametrize("removes", [False, True])
def test_history_that_is_not_remembered(place: Followed, *, removes: bool) -> None:
    """It is said, and where to go on; what was removed at the horizon itself is forgotten, too."""
    place.history_ms = DAY_MS
    gone = ("part-2",) if removes else ()
    for number in range(8 * FOLD_EVERY):
        place.append(f"part-{number}", removed=gone if number == 9 else ())
        place.clock.now += 2 * DAY_MS if number == 10 else 0
    horizon = next(version for version in range(99) if is_whole(place, version))
    oldest = place.snapshots().epochs(None)["version"][0].as_py()
    assert horizon == (oldest if removes else oldest - 1) > 0
    for after in range(horizon):
        with pytest.raises(StateError, match="snapshot") as caught:
            place.feed(after)
        assert caught.value.code == "HISTORY_EXPIRED"
    expected = [noted(draft) for draft in place.drafts][horizon:]
    assert [told(entry) for entry in place.feed()] == expected
    assert [told(entry) for entry in place.feed(horizon)] == expected


def is_whole(place: Followed, after: int) -> bool:
    """Whether what came after version ``after`` is remembered."""
    try:
        place.feed(after)
    except StateError:
        return False
    return True


def test_an_adoption_is_told_without_files(tmp_path: Path) -> None:
    """What there was before is in a snapshot of its version, and what comes after it in the feed."""
    written = Written(tmp_path / "base")
    written.write(records(1, "a"))
    written.forget_inventory()
    with pytest.raises(StateError) as caught:
        list(filesink.follow(tmp_path / "base"))
    assert caught.value.code == "NO_INVENTORY"
    directory = filesink.adopt(tmp_path / "base")
    written.write(records(1, "b"))
    adopted, after = directory.follow()
    assert (adopted.epoch.kind, list(adopted.added), adopted.removed) == ("adopted", [], ())
    assert len(directory.snapshot(adopted.version).files) == 1
    assert [file.rows for file in after.added] == [1]


def test_an_adoption_beside_a_follower(place: Followed) -> None:
    """Its entry is the same before its files are known and afterwards, and no version is told twice."""
    for number in range(5):
        place.append(f"part-{number}")
    following = place.directory().follow(4, wait="1 s")
    assert next(following).version == 5
    seen: list[FeedEntry] = []

    def when_reserved(operation: str, path: str) -> None:
        if operation == "put_if_absent" and path == mark_path(2):
            place.before = lambda _operation, _path: None
            seen.extend(place.feed(5))

    place.before = when_reserved
    version = Adoption(place.store(), clock=place.clock, ids=place.ids).run()
    place.append("part-5")
    rest = list(following)
    assert [entry.version for entry in seen] == [version]
    assert [entry.version for entry in rest] == [version, version + 1]
    assert [told(entry) for entry in rest[:1]] == [told(entry) for entry in seen]


def test_a_path_that_is_written_anew_under_a_follower(place: Followed) -> None:
    """Its versions begin again: an error, not a version that was told before."""
    place.append("part-0")
    following = place.directory().follow(wait="forever")
    next(following)

    def meanwhile() -> None:
        place.clock.meanwhile = lambda: None
        for path in [path for path in place.files.files if path.startswith(DIRECTORY)]:
            del place.files.files[path]
        place.driver = None
        place.append("part-0")
        place.append("part-1")

    place.clock.meanwhile = meanwhile
    with pytest.raises(IdentityError) as caught:
        next(following)
    assert caught.value.code == "OTHER_INVENTORY"


def test_a_path_that_is_removed_under_a_follower(tmp_path: Path) -> None:
    """It does not wait for ever: within a minute it says that there is nothing."""
    written = Written(tmp_path / "base")
    written.write(records(1, "a"))
    site = Site(base_path=str(tmp_path / "base"), store=written.world.store(), clock=PassingClock(now=1))
    following = SinkDirectory(_site=site).follow(wait="forever")
    next(following)
    shutil.rmtree(tmp_path / "base")
    with pytest.raises(StateError) as caught:
        next(following)
    assert caught.value.code == "NO_INVENTORY"


def cut(data: bytes) -> bytes:
    """Without its end."""
    return data[:-5]


def flipped(data: bytes) -> bytes:
    """With another bit."""
    return data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]


@pytest.mark.parametrize("harm", [cut, flipped, lambda _data: b""])
@pytest.mark.parametrize("path", [entry_path(8), mark_path(2), "epochs", "files"])
def test_damage_is_named(place: Followed, path: str, harm: Callable[[bytes], bytes]) -> None:
    """An entry, a mark, a segment: the error is typed, and whoever reads on later gets no other answer."""
    for number in range(8):
        place.append(f"part-{number}")
    target = next(
        one for one in sorted(place.files.files, reverse=True) if one.endswith(path) and DIRECTORY in one
    )
    place.files.files[target].content = harm(place.files.files[target].content)
    for _ in range(2):
        with pytest.raises(StateCorruptError, match=target.rpartition("/")[2]):
            place.feed()


def test_a_gap_is_damage_after_a_while(place: Followed) -> None:
    """An entry that has gone is not passed over."""
    for number in range(8):
        place.append(f"part-{number}")
    del place.files.files[entry_path(7)]
    with pytest.raises(StateCorruptError, match=r"000000000007\.entry") as caught:
        place.feed(5)
    assert caught.value.code == "GAP"


def test_an_entry_of_another_path(place: Followed) -> None:
    """One that was copied here is not told."""
    other = Followed()
    other.ids.made = 1000
    for number in range(2):
        place.append(f"part-{number}")
        other.append(f"other-{number}")
    place.files.files[entry_path(2)] = other.files.files[entry_path(2)]
    with pytest.raises(StateCorruptError) as caught:
        place.feed()
    assert caught.value.code == "FOREIGN"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"after": 3}, "NO_VERSION"),
        ({"after": -1}, "BAD_VALUE"),
        ({"after": True}, "BAD_VALUE"),
        ({"after": "1"}, "BAD_VALUE"),
        ({"until": 1.0}, "BAD_VALUE"),
        ({"wait": "long"}, "BAD_VALUE"),
        ({"wait": None}, "BAD_VALUE"),
        ({"wait": -1}, "BAD_VALUE"),
        ({"wait": True}, "BAD_VALUE"),
    ],
)
def test_what_cannot_be_followed(place: Followed, arguments: dict[str, Any], code: str) -> None:
    """A version that is still to come, and what is no version and no duration."""
    place.append("part-0")
    with pytest.raises(ConfigError) as caught:
        place.feed(**arguments)
    assert caught.value.code == code


@pytest.mark.parametrize(("name", "code"), [("nothing", "NO_PATH"), ("plain", "NO_SINK")])
def test_a_path_that_is_no_sinks(tmp_path: Path, name: str, code: str) -> None:
    """It is said at once, not when the first entry is asked for."""
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "part-0.csv").touch()
    with pytest.raises(FilesinkError) as caught:
        filesink.follow(tmp_path / name)
    assert caught.value.code == code


def test_values_can_be_compared_and_kept(place: Followed) -> None:
    """Equal entries are one in a set, and stay what they are while the path goes on."""
    place.append("part-0", "part-1")
    (before,) = place.feed()
    place.append("part-2")
    assert {before, *place.feed(until=1)} == {before}
    assert before != place.feed(1)[0]
    assert before.added != before.removed
    with pytest.raises(AttributeError):
        before.removed = ()  # type: ignore[misc]


def entries_of(following: Iterator[FeedEntry], count: int) -> list[FeedEntry]:
    """The next so many."""
    return [next(following) for _ in range(count)]


def test_a_slow_follower_holds_nothing(place: Followed) -> None:
    """Between two entries everything is folded, merged and swept, again and again."""
    for number in range(4):
        place.append(f"part-{number}")
    following = place.directory().follow()
    found = entries_of(following, 2)
    for number in range(4, 200):
        place.append(f"part-{number}", removed=(f"part-{number - 4}",))
        place.clock.now += 3_600_000
    found += list(following)
    assert [told(entry) for entry in found] == [noted(draft) for draft in place.drafts]
    assert isinstance(place.snapshots().versions(0).files, pa.Table)
