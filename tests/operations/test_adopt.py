"""What an adoption makes live, and what not: its plan says so, and no row becomes live twice."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import filesink
from filesink.errors import StateError
from filesink.operations.open_path import plan_adopt
from tests.cli.running import run
from tests.compaction.test_finished import filled
from tests.compaction.test_live import copied, first, made_up, moved


def codes(base: Path) -> set[str]:
    """What ``fsck`` finds."""
    return {finding.code for finding in filesink.fsck(base).findings}


def inventory(base: Path) -> Path:
    """The directory of it."""
    return base / "_filesink" / "_inventory"


def live(base: Path) -> set[str]:
    """Paths of the newest version."""
    return {file.path for file in filesink.open(base).snapshot().files}


def no_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all that names files were folded away."""
    monkeypatch.setattr("filesink.inventory.chains.kept_rows", lambda _store: {})


@pytest.mark.parametrize("records", ["kept", "folded"])
@pytest.mark.parametrize("times", [1, 2])
def test_a_copy_stays_out(tmp_path: Path, records: str, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the records, and without them by the inventory; ``fsck`` goes on to find it."""
    filled(tmp_path)
    if records == "folded":
        no_records(monkeypatch)
    copy = str(copied(tmp_path).relative_to(tmp_path))
    for _ in range(times):
        plan = plan_adopt(tmp_path)
        assert (plan.files, plan.added, plan.gone, plan.elsewhere) == (6, [], [], [copy])
        filesink.adopt(tmp_path)
    assert (copy in live(tmp_path), len(live(tmp_path))) == (False, 6)
    assert codes(tmp_path) == {"FILE_DOUBLED"}


def test_without_an_inventory_records_tell(tmp_path: Path) -> None:
    """Which of two is the copy."""
    filled(tmp_path)
    copy = copied(tmp_path)
    shutil.rmtree(inventory(tmp_path))
    plan = plan_adopt(tmp_path)
    assert (plan.files, len(plan.added)) == (6, 6)
    assert plan.elsewhere == [str(copy.relative_to(tmp_path))]
    filesink.adopt(tmp_path)
    assert len(live(tmp_path)) == 6


def test_where_nobody_tells_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until people have moved one away."""
    filled(tmp_path)
    copy = copied(tmp_path)
    shutil.rmtree(inventory(tmp_path))
    no_records(monkeypatch)
    for call in (plan_adopt, filesink.adopt):
        with pytest.raises(StateError, match=r"'x/part-.*' and 'y/part-") as caught:
            call(tmp_path)
        assert caught.value.code == "DOUBLED"
    copy.unlink()
    filesink.adopt(tmp_path)
    assert codes(tmp_path) == set()


def test_a_moved_file_stays_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its rows would get another partition; brought back, it is adopted."""
    filled(tmp_path)
    before = first(tmp_path)
    there = moved(tmp_path)
    plan = plan_adopt(tmp_path)
    assert (plan.gone, plan.elsewhere) == (
        [str(before.relative_to(tmp_path))],
        [str(there.relative_to(tmp_path))],
    )
    filesink.adopt(tmp_path)
    assert len(live(tmp_path)) == 5
    assert codes(tmp_path) == {"FILE_MISPLACED"}
    assert "are not adopted" in caplog.text
    there.rename(before)
    filesink.adopt(tmp_path)
    assert (len(live(tmp_path)), codes(tmp_path)) == (6, set())


def test_a_made_up_name_is_planned(tmp_path: Path) -> None:
    """Nobody can tell it from a file of an old batch write; so people are told."""
    filled(tmp_path)
    path = str(made_up(tmp_path).relative_to(tmp_path))
    assert plan_adopt(tmp_path).added == [path]
    ran = run("adopt", tmp_path)
    assert "1 more and 0 less than now" in " ".join(ran.out.split())
    assert "would be added" in ran.out
    assert path.partition("-")[0] in ran.out


@pytest.mark.parametrize("before", ["folded", "in entries"])
def test_readers_go_on_without_what_is_lost(tmp_path: Path, before: str) -> None:
    """As the runbook says; the plan names it."""
    filled(tmp_path)
    if before == "folded":
        filesink.adopt(tmp_path)
    path = first(tmp_path)
    path.unlink()
    assert plan_adopt(tmp_path).gone == [str(path.relative_to(tmp_path))]
    assert "would go" in run("adopt", tmp_path, "--yes").out
    assert codes(tmp_path) == set()
    assert filesink.open(tmp_path).snapshot().rows == 5
    assert plan_adopt(tmp_path).gone == []


def test_what_came_back_is_adopted_again(tmp_path: Path) -> None:
    """A backup was found after all."""
    filled(tmp_path)
    path = first(tmp_path)
    kept = path.read_bytes()
    path.unlink()
    filesink.adopt(tmp_path)
    path.write_bytes(kept)
    assert codes(tmp_path) != set()
    filesink.adopt(tmp_path)
    assert (codes(tmp_path), filesink.open(tmp_path).snapshot().rows) == (set(), 6)
