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


def test_retain_leaves_readers_their_time(tmp_path: Path) -> None:
    """The version before can be read as long as it was said."""
    base = tmp_path / "base"
    days(base)
    before = filesink.open(base).snapshot()
    ran = run("retain", base, *BY_DAY, "--keep", "1", "--reader-grace", "1h", "--yes")
    assert (ran.code, "Done: 2 files dropped, 2 of them kept until " in ran.out) == (0, True)
    assert before.dataset().count_rows() == 3
    assert rows(base) == 1
    assert run("fsck", base, "--deep").code == 0


def test_recover_names_what_it_removes_when_readers_have_had_their_time(tmp_path: Path) -> None:
    """In its plan and in its result; and a later retain does not call that a failure."""
    base = tmp_path / "base"
    days(base)
    done("retain", base, *BY_DAY, "--keep", "1", "--reader-grace", "1 ms")
    ran = run("recover", base)
    assert "2 dead files (" in ran.out
    assert run("recover", base, "--yes", "--json").json["result"]["swept"] == 2
    assert len(list(base.rglob("*.parquet"))) == 1
    ran = run("retain", base, *BY_DAY, "--keep", "1", "--yes")
    assert (ran.code, "could not be removed" in ran.err + ran.out) == (0, False)


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
        (("--keep", "1", "--table", "web.trips"), "a metastore and the name of a table go together"),
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
    ran = run("retain", base, "--max-bytes", "1B", "--yes")
    assert "and 5 more: were merged into files that would be dropped, and would go with them" in ran.err
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
    ran = run("retain", base, "--keep", "1", "--yes")
    assert (ran.code, "could not be removed before" in ran.err) == (0, True)
    assert len(list(base.rglob("*.parquet"))) == 1
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


def test_rollback_says_that_lists_show_rows_twice(tmp_path: Path) -> None:
    """What was kept for readers stays beside the copies until its grace is over."""
    base = tmp_path / "base"
    days(base)
    run("retain", base, *BY_DAY, "--keep", "1", "--reader-grace", "1h", "--yes")
    ran = planned("rollback", base, "--to", "3")
    assert "2 stay beside them until their grace is over" in " ".join(ran.out.split())
    run("rollback", base, "--to", "3", "--yes")
    assert rows(base) == 3
    assert len(list(base.rglob("*.parquet"))) == 3 + 2


@pytest.mark.parametrize("command", [("erase", "--where", "value = 'a'"), ("copy", "there")])
def test_a_lost_file_is_damage_in_the_way(tmp_path: Path, command: tuple[str, ...]) -> None:
    """It is no wrong use, and has its whole name."""
    base = tmp_path / "base"
    whole(base)
    lost = min(base.rglob("*.parquet"))
    lost.unlink()
    name, *more = command
    more = [str(tmp_path / one) if one == "there" else one for one in more]
    ran = run(name, str(base), *more)
    assert (ran.code, f"'{lost.relative_to(base)}'" in ran.err, "[FILE_LOST]" in ran.err) == (3, True, True)


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


def test_erase_takes_rows_out_and_certifies_it(tmp_path: Path) -> None:
    """The plan has files and numbers of rows; the certificate has no value; then nothing is left to erase."""
    base = tmp_path / "base"
    written = Written(base)
    for k in (1, 2):
        written.write(records(k, "secret", "kept"))
    ran = planned("erase", base, "--where", "value = 'secret'")
    assert "2 rows to erase from 2 files of 2" in ran.out
    result = done("erase", base, "--where", "value = 'secret'")
    assert result["certificate"]["rows_removed"] == 2  # type: ignore[index]
    assert "secret" not in str(result)
    assert rows(base) == 2
    assert run("fsck", base, "--deep").code == 0
    ran = run("erase", base, "--where", "value = 'secret'", "--yes")
    assert (ran.code, "0 rows erased; searched 2 files" in ran.out) == (0, True)
    assert not any(b"secret" in path.read_bytes() for path in base.rglob("*") if path.is_file())


def test_erase_ends_with_a_finding_as_long_as_something_is_left(tmp_path: Path) -> None:
    """It says where, and what to do; for machines, too."""
    base = tmp_path / "base"
    written = Written(base)
    written.write(records(1, "secret", "kept"))
    (file,) = base.rglob("*.parquet")
    (base / "_dead_letters").mkdir()
    (base / "_dead_letters" / "copy.parquet").write_bytes(file.read_bytes())
    ran = run("erase", base, "--where", "value = 'secret'", "--yes")
    assert ran.code == 1
    assert "not clean: dead letter _dead_letters/copy.parquet (1 row): " in ran.err
    ran = run("erase", base, "--where", "value = 'secret'", "--yes", "--json")
    assert (ran.code, ran.json["result"]["certificate"]) == (1, None)
    assert ran.json["result"]["left"][0]["kind"] == "dead letter"


@pytest.mark.parametrize("where", ["value = 7", "secret = 'secret'", "value = secret", "value = 'secret"])
def test_erase_refuses_what_it_does_not_understand(tmp_path: Path, where: str) -> None:
    """In one sentence, which has no literal in it."""
    base = tmp_path / "base"
    Written(base).write(records(1, "a"))
    ran = run("erase", base, "--where", where, "--yes")
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert "'secret" not in ran.err.replace("column 'secret'", "")


def test_copy_is_a_backup(tmp_path: Path) -> None:
    """The plan touches nothing; a second call of a copy that is done is refused."""
    base, copy = tmp_path / "base", tmp_path / "copy"
    whole(base)
    ran = run("copy", base, copy)
    assert (ran.code, copy.exists()) == (0, False)
    assert "8 files" in ran.out
    ran = run("copy", base, copy, "--yes", "--json")
    assert (ran.code, ran.json["result"]["files"]) == (0, 8)
    assert rows(copy) == rows(base)
    assert run("fsck", copy, "--deep").code == 0
    ran = run("copy", base, copy, "--yes")
    assert (ran.code, "[TARGET_NOT_EMPTY]" in ran.err) == (2, True)
    assert run("copy", base, copy, "--target-option", "nonsense").code == 2


def test_options_of_a_target_come_from_a_file(tmp_path: Path) -> None:
    """So that its secrets are in no list of processes; those of the source are not taken for it."""
    base, options = tmp_path / "base", tmp_path / "target.toml"
    whole(base)
    options.write_text('key = "hush"\n')
    ran = run("copy", base, tmp_path / "copy", "--target-options", options, "--yes")
    assert (ran.code, "[UNKNOWN_OPTION]" in ran.err, "hush" in ran.err) == (2, True, False)
    assert not (tmp_path / "copy").exists()
    options.write_text("")
    assert run("copy", base, tmp_path / "copy", "--target-options", options, "--yes").code == 0
