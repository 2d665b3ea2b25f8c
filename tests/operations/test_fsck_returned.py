"""Files that come back, or are copied, after what has removed them: ``fsck`` finds them all."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import compaction
import filesink
from formats import Encoder
from tests.compaction.test_finished import filled
from tests.fakes import micro_batch, records

TEXT = Encoder.simple_string_encoder()


def found(base: Path) -> dict[str, str]:
    """Codes of what was found, by path."""
    return {finding.path: finding.code for finding in filesink.fsck(base, depth="quick").findings}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A base path, beside which there is room."""
    path = tmp_path / "base"
    path.mkdir()
    return path


def backed_up(base: Path) -> Path:
    """A copy of all, with the times of its files."""
    return Path(shutil.copytree(base, base.with_name("backup")))


@pytest.mark.parametrize("copy", [shutil.copy, shutil.copy2], ids=["with its time", "with a new time"])
@pytest.mark.parametrize("rounds", [1, 2])
def test_what_was_merged_is_brought_back(base: Path, copy: Callable[[Path, Path], Path], rounds: int) -> None:
    """After one compaction and after the next: who lists the directory sees its rows twice."""
    world = filled(base)
    backup = backed_up(base)
    for number in range(rounds):
        compaction.compact(base, TEXT)
        assert found(base) == {}
        world.driver().run(micro_batch(6 + number), world.job(records("more", bucket="y")))
    path = min((backup / "x").glob("part-*"))
    copy(path, base / "x")
    assert found(base) == {f"x/{path.name}": "FILE_RETURNED"}
    (base / "x" / path.name).write_text("other bytes")
    assert found(base) == {f"x/{path.name}": "FILE_RETURNED"}


def test_inputs_that_stay_for_their_readers_are_no_fault(base: Path) -> None:
    """As long as they are promised, and until the next call removes them."""
    filled(base)
    compaction.compact(base, TEXT, reader_grace="1 h")
    assert len(list((base / "x").glob("part-*"))) == 6
    assert found(base) == {}


def test_without_what_they_were_merged_into_they_are_data_again(base: Path) -> None:
    """A merged file is lost, and its inputs are brought back: nobody is told to move these away."""
    filled(base)
    backup = backed_up(base)
    compaction.compact(base, TEXT)
    (merged,) = (base / "x").glob("part-*")
    merged.unlink()
    shutil.copytree(backup / "x", base / "x", dirs_exist_ok=True)
    assert found(base) == {f"x/{merged.name}": "FILE_LOST"}


def test_a_copy_whose_original_is_gone(base: Path) -> None:
    """Its name tells: no two files of sinks have the same."""
    filled(base)
    copied = Path(shutil.copy(min((base / "x").glob("part-*")), base / "y"))
    compaction.compact(base, TEXT)
    assert found(base) == {f"y/{copied.name}": "FILE_RETURNED"}


def test_a_name_that_a_live_file_has(base: Path) -> None:
    """Also with other bytes it is no file of an epoch."""
    filled(base)
    copied = base / "y" / min((base / "x").glob("part-*")).name
    copied.write_text("other bytes")
    assert found(base) == {f"y/{copied.name}": "FILE_DOUBLED"}
