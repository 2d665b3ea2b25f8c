"""``fsck`` finds every kind of damage, and nothing where nothing is wrong."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import filesink
from filesink.operations.at_path import operations_at
from filesink.operations.fsck.check import Check
from filesink.operations.fsck.finding import FsckReport
from filesink.operations.fsck.kinds import KINDS
from filesink.sink_directory.opening import site_of
from filesink.system import SystemClock
from tests.fakes import SettableClock
from tests.golden.states.frozen import FROZEN, Frozen
from tests.operations.broken_paths import unfinished, whole, with_open_parts
from tests.operations.damage import DAMAGES, Damage
from tests.operations.damage_to_state import epoch_unfinished
from tests.sink_directory.written import Written

MAKERS = (whole, with_open_parts, unfinished)


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[Callable[[Path], Written], Path]:
    """Each path is written once, and copied for each damage."""
    made = {}
    for make in MAKERS:
        base = tmp_path_factory.mktemp(make.__name__) / "base"
        make(base)
        made[make] = base
    return made


@pytest.fixture
def copied(originals: dict[Callable[[Path], Written], Path], tmp_path: Path) -> Callable[[object], Path]:
    """Makes a copy of a path, to be damaged."""

    def copy(make: object) -> Path:
        shutil.copytree(originals[make].parent, tmp_path / "copy")  # type: ignore[index]
        return tmp_path / "copy" / "base"

    return copy


def check(base: Path, depth: str = "deep", now_ms: int | None = None) -> FsckReport:
    """As ``filesink.fsck``, and nobody waits for what is damaged to come back."""
    clock = SettableClock(SystemClock().now_ms() if now_ms is None else now_ms)
    store = site_of(base, None).store
    return Check(store=store, clock=clock, progress=lambda *_: None).run(str(base), depth)  # type: ignore[arg-type]


def everything(base: Path) -> dict[str, tuple[bytes, int]]:
    """Bytes and times of all files."""
    files = (path for path in base.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


@pytest.mark.parametrize("make", [whole, with_open_parts])
@pytest.mark.parametrize("depth", ["quick", "ends", "deep"])
def test_nothing_is_found_where_nothing_is_wrong(copied, make: object, depth: str) -> None:
    """Not even a note, at any depth, on sinks with overwrites, folds and open parts; a copy is fine."""
    base = copied(make)
    report = filesink.fsck(base, depth=depth)
    assert report.findings == ()
    assert report.is_good
    assert report.opened == (0 if depth == "quick" else report.files)
    assert report.version == filesink.open(base).version


@pytest.mark.parametrize("damage", DAMAGES, ids=str)
def test_every_damage_is_found(copied, damage: Damage) -> None:
    """By its code, with the file that it is about; what is found besides follows from it. Nothing changes."""
    base = copied(damage.on)
    path = damage.make(base)
    before = everything(base)
    report = check(base)
    found = {(finding.code, finding.path) for finding in report.findings}
    assert (damage.code, str(path.relative_to(base))) in found
    assert {code for code, _ in found} <= {damage.code, *damage.also}
    assert everything(base) == before


def test_every_kind_has_its_damage() -> None:
    """No row of the table is without a test."""
    missing = KINDS.keys() - {damage.code for damage in DAMAGES}
    # Below, in test_at_path.py, test_fsck_contents.py, and in tests/exports.
    assert missing == {
        "FILE_UNREAD",
        "EPOCH_AT_WORK", "PARTITION_MISSING", "PARTITION_ELSEWHERE",
        "EXPORT_BEHIND", "EXPORT_DISAGREES", "EXPORT_FOREIGN",
    }  # fmt: skip


def test_an_epoch_at_work_is_no_fault(copied) -> None:
    """For ten minutes after it was decided: its driver may just be there."""
    base = copied(unfinished)
    record = epoch_unfinished(base)
    decided = filesink.open(base).sinks()[0].decided
    assert decided is not None
    report = check(base, now_ms=int(decided.timestamp() * 1000) + 599_000)
    assert [(one.code, one.severity, base / one.path) for one in report.findings] == [
        ("EPOCH_AT_WORK", "note", record)
    ]
    assert report.is_good


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_each_kind_says_what_it_means_and_what_to_do(kind) -> None:
    """In sentences, and with commands that exist."""
    assert kind.meaning.endswith(".")
    assert kind.mend
    assert not kind.mend.endswith(".")
    assert f"filesink {kind.command}" in kind.mend if kind.command else True


def test_what_to_do_can_be_pasted_into_a_shell() -> None:
    """Names are quoted, and a path that holds our own words stays as it is."""
    finding = filesink.Finding(code="FILE_LOST", base_path="/data/FILE of PATH", path="a b/x'y", detail="")
    assert "'/data/FILE of PATH'" in finding.mend
    assert "'a b/x'\"'\"'y'" in finding.mend
    assert "FILE" in finding.mend_all


def test_what_only_a_listing_shows_is_found_quickly(copied) -> None:
    """Without opening a file: lost, cut off, foreign; what is inside of a file is not seen."""
    quick = {
        damage.code: damage
        for damage in DAMAGES
        if damage.code in {"FILE_LOST", "FILE_RESIZED", "FILE_FOREIGN"}
    }
    base = copied(whole)
    quick["FILE_RESIZED"].make(base)
    quick["FILE_FOREIGN"].make(base)
    report = check(base, "quick")
    assert {finding.code for finding in report.findings} == {"FILE_RESIZED", "FILE_FOREIGN"}
    assert report.opened == 0


def test_a_byte_in_the_middle_is_found_by_reading_all(copied) -> None:
    """Where the format tells: the codec of a page notices, or the number of its bytes."""
    base = copied(whole)
    path = max(base.glob("k=*/*.parquet"), key=lambda one: one.stat().st_size)
    data = bytearray(path.read_bytes())
    data[4:24] = b"\xff" * 20
    path.write_bytes(data)
    assert check(base, "ends").findings == ()
    assert [finding.code for finding in check(base, "deep").findings] == ["FILE_TORN"]


@pytest.mark.parametrize("frozen", FROZEN, ids=str)
def test_states_of_older_releases_are_no_damage(frozen: Frozen, tmp_path: Path) -> None:
    """They lack an inventory, and some were left by a driver that died; adopted, they are whole."""
    base = frozen.unpacked(tmp_path) / "base"
    codes = {finding.code for finding in check(base).findings}
    assert codes <= {"INVENTORY_MISSING", "EPOCH_UNFINISHED"}
    operations_at(str(base)).recover(announce="skip")
    filesink.adopt(base)
    # Unpacked, the inputs of a compaction are not what they were: it does not remove them.
    unpacked = {"FILE_RETURNED"} if frozen.name == "compaction-decided" else set()
    assert {finding.code for finding in check(base).findings} == unpacked


class _WritesMeanwhile:
    """A store under which a sink writes whenever a directory is listed."""

    def __init__(self, store: object, write: Iterator[None]) -> None:
        self._store = store
        self._write = write

    def __getattr__(self, name: str) -> object:
        if name in {"list", "read"}:
            next(self._write, None)
        return getattr(self._store, name)


def test_a_live_writer_is_no_fault(tmp_path: Path) -> None:
    """Appends, overwrites and another sink, between any two calls of a check: nothing is found."""
    written = whole(tmp_path / "base")

    def write() -> Iterator[None]:
        from tests.sink_directory.written import records

        for number in range(40):
            if number % 7 == 3:
                written.overwrite(records(1, f"over {number}"))
            else:
                written.write(records(number % 3, f"row {number}"), uid="uv"[number % 2])
            for _ in range(9):
                yield

    store = _WritesMeanwhile(site_of(tmp_path / "base", None).store, write())
    clock = SettableClock(written.world.clock.now)
    report = Check(store=store, clock=clock, progress=lambda *_: None).run("base", "deep")  # type: ignore[arg-type]
    assert [(one.code, one.path, one.detail) for one in report.findings if one.severity != "note"] == []
