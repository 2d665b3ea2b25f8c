"""Commands that remove or replace what readers see: the plan first, and with ``--yes`` what the plan says."""

from __future__ import annotations

from pathlib import Path

import pytest

import compaction
import filesink
from filesink.storage.local.store import LocalStore
from filesink.storage.outcomes import Deletion
from tests.cli.running import run
from tests.cli.test_changing import done, planned, rows
from tests.operations.broken_paths import whole
from tests.sink_directory.written import Written, records


def days(base: Path) -> Written:
    """Directories by day."""
    written = Written(base)
    for day in (20260101, 20260102, 20260103):
        written.write(records(day, f"{day}"))
    return written


BY_DAY = ("--by", "partition-time", "--formatter", "'k='yyyyMMdd")


def test_retain_drops_old_directories(tmp_path: Path) -> None:
    """Those that the plan names; the log has it, and fsck finds nothing."""
    base = tmp_path / "base"
    days(base)
    ran = planned("retain", base, *BY_DAY, "--keep", "2")
    assert "1 file to drop" in ran.out
    assert "k=20260101" in ran.out
    result = done("retain", base, *BY_DAY, "--keep", "2")
    assert len(result["replaced"]) == 1  # type: ignore[index]
    assert sorted(path.parent.name for path in base.rglob("*.parquet")) == ["k=20260102", "k=20260103"]
    assert rows(base) == 2
    assert run("fsck", base, "--deep").code == 0
    assert "retain" in run("log", base).out
    assert "0 files to drop" in run("retain", base, *BY_DAY, "--keep", "2", "--yes").out


def test_retain_says_which_directories_stay_for_ever(tmp_path: Path) -> None:
    """Since their names tell no time."""
    base = tmp_path / "base"
    days(base).write(records(7, "x"))
    ran = run("retain", base, *BY_DAY, "--max-age", "1 d")
    assert (ran.code, ran.err) == (0, "k=7: tell no time and stay\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "needs a limit"),
        (("--keep", "0"), "above 0"),
        (("--keep", "1", "--extractor", "$k"), "by='partition time'"),
        (("--keep", "1", "--by", "partition-time"), "no time can be read"),
        (("--keep", "1", "--table", "web.trips"), "a metastore goes with"),
    ],
)
def test_retain_refuses_what_nobody_means(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    """In one sentence, as a wrong use; nothing is dropped."""
    base = tmp_path / "base"
    days(base)
    ran = run("retain", base, *arguments, "--yes")
    assert (ran.code, said in ran.err, len(ran.err.splitlines())) == (2, True, 1)
    assert rows(base) == 3


def test_files_that_are_merged_go_with_the_file_that_stands_for_them(tmp_path: Path) -> None:
    """Inputs of a compaction that wait for their readers: else their rows would come back."""
    base = tmp_path / "base"
    whole(base)
    compaction.compact(base, filesink.ParquetWriterFactory(), reader_grace="1 h")
    assert len(list(base.rglob("*.parquet"))) == 8 + 3
    done("retain", base, "--max-bytes", "1B")
    assert list(base.rglob("*.parquet")) == []
    assert compaction.files(base) == []
    assert rows(base) == 0
    assert run("fsck", base, "--deep").code == 0


def test_files_that_cannot_be_removed_are_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are named; the next call removes them."""
    base = tmp_path / "base"
    days(base)
    with monkeypatch.context() as patched:
        refused = filesink.StorageError("not yours", code="PERMISSION")

        def delete(*_args: object, **_options: object) -> Deletion:
            raise refused

        patched.setattr(LocalStore, "delete_if_unchanged", delete)
        ran = run("retain", base, "--keep", "1", "--yes")
    assert (ran.code, "2 of 2 files could not be removed" in ran.err) == (1, True)
    assert rows(base) == 1
    assert len(list(base.rglob("*.parquet"))) == 3
    done("retain", base, "--max-bytes", "1B")
    assert list(base.rglob("*.parquet")) == []


def test_rollback_brings_a_version_back(tmp_path: Path) -> None:
    """The plan has the epochs that are undone; readers of directories see the same."""
    base = tmp_path / "base"
    days(base)
    ran = planned("rollback", base, "--to", "1")
    assert "back to version 1 from 3: 2 files" in ran.out
    assert ran.out.count("micro-batch") == 2
    done("rollback", base, "--to", "1")
    assert [path.parent.name for path in base.rglob("*.parquet")] == ["k=20260101"]
    assert rows(base) == 1
    assert run("fsck", base, "--deep").code == 0
    assert "0 files (0 B) to remove" in run("rollback", base, "--to", "1", "--yes").out


def test_rollback_brings_back_what_a_compaction_has_merged(tmp_path: Path) -> None:
    """While its inputs stay for readers: as other files, each row once for all readers."""
    base = tmp_path / "base"
    whole(base)
    version = filesink.open(base).version
    compaction.compact(base, filesink.ParquetWriterFactory(), reader_grace="1 h")
    result = done("rollback", base, "--to", str(version))
    assert (len(result["replaced"]), len(result["files"])) == (11, 8)  # type: ignore[index]
    assert sorted(compaction.files(base)) == sorted(str(path) for path in base.rglob("*.parquet"))
    assert filesink.open(base).snapshot().dataset().to_table().num_rows == rows(base) == 14
    assert run("fsck", base, "--deep").code == 0


def test_rollback_names_what_is_gone(tmp_path: Path) -> None:
    """In one sentence, and a wrong use; as is a version that is none."""
    base = tmp_path / "base"
    whole(base)
    compaction.compact(base, filesink.ParquetWriterFactory())
    version = filesink.open(base).version - 1
    ran = run("rollback", base, "--to", str(version), "--yes")
    assert (ran.code, "8 of the files" in ran.err, "[FILES_GONE]" in ran.err) == (2, True, True)
    assert len(ran.err.splitlines()) == 1
    assert run("rollback", base, "--to", "99").code == 2
    assert run("rollback", base, "--to", "-1").code == 2
    assert rows(base) == 14
