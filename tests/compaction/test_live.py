"""Offline compaction takes only what an epoch has made visible, as it has, and where it has."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import compaction
import filesink
from filesink.operations.fsck.finding import FsckReport
from formats import Encoder
from tests.cli.running import run
from tests.compaction.test_finished import filled

TEXT = Encoder.simple_string_encoder()


def first(base: Path) -> Path:
    """A live file of the bucket x."""
    return min((base / "x").glob("part-*"))


def copied(base: Path) -> Path:
    """Into another bucket, as with ``cp -p``."""
    return Path(shutil.copy2(first(base), base / "y"))


def made_up(base: Path) -> Path:
    """Under a name that looks like ours."""
    name = first(base).name.replace(first(base).name.split("-")[1], "deadbeef", 1)
    parts = name.split("-")
    parts[2:4] = ["0000", "8000"]  # slot 0 of a sink that nobody knows, as an older release's batch write
    return Path(shutil.copy2(first(base), base / "x" / "-".join(parts)))


def moved(base: Path) -> Path:
    """Into another bucket."""
    return Path(shutil.move(first(base), base / "y"))


def grown(base: Path) -> Path:
    """Somebody has written to it."""
    with first(base).open("a") as file:
        file.write("forged\n")
    return first(base)


def codes(report: FsckReport) -> set[str]:
    """What was found."""
    return {finding.code for finding in report.findings}


@pytest.mark.parametrize("put", [copied, made_up, moved, grown], ids=lambda one: one.__name__)
def test_what_no_epoch_wrote_is_not_merged(tmp_path: Path, put: Callable[[Path], Path]) -> None:
    """It stays where it is, ``fsck`` finds it before and after, and no row becomes live twice."""
    filled(tmp_path)
    stranger = put(tmp_path)
    content = stranger.read_bytes()
    before = codes(filesink.fsck(tmp_path))
    plan = compaction.plan(tmp_path)
    assert plan.left_out == (str(stranger.relative_to(tmp_path)),)
    assert plan.files == (5 if put in (copied, made_up) else 4)
    compaction.compact(tmp_path, TEXT)
    assert stranger.read_bytes() == content
    assert before
    # When its original is merged, only its name tells what it is a copy of.
    merged = {copied: {"FILE_RETURNED"}, made_up: {"FILE_UNKNOWN"}}
    assert codes(filesink.fsck(tmp_path)) == merged.get(put, before)
    assert filesink.open(tmp_path).snapshot().rows == 6


def test_nothing_but_what_no_epoch_wrote(tmp_path: Path) -> None:
    """Then nothing is merged, though names would do."""
    filled(tmp_path, files=1)
    copied(tmp_path)
    assert compaction.plan(tmp_path).groups == ()
    assert compaction.compact(tmp_path, TEXT) is None


def test_a_path_without_inventory_is_merged_by_names(tmp_path: Path) -> None:
    """As it is in a path of an older release, and nothing is said to be left out."""
    filled(tmp_path)
    shutil.rmtree(tmp_path / "_filesink" / "_inventory")
    plan = compaction.plan(tmp_path)
    assert (plan.files, plan.left_out) == (5, ())
    compaction.compact(tmp_path, TEXT)
    assert len(list((tmp_path / "x").glob("part-*"))) == 1


def test_the_command_says_what_it_leaves_out(tmp_path: Path) -> None:
    """With their number, and who tells more."""
    filled(tmp_path)
    copied(tmp_path)
    for arguments in ((), ("--yes",)):
        told = run("compact", tmp_path, "--format", "txt", *arguments).err
        assert "no version of the inventory" in " ".join(told.split())
        assert "y/part-" in told
        assert "filesink fsck" in told
