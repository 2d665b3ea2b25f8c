"""Commands that read: what they print, how they end, and that they change nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import filesink
from filesink.cli.app import app
from filesink.cli.call import Call
from filesink.inventory.entry import Entry
from filesink.ledger.identity import batch_write
from filesink.save_mode import SaveMode
from filesink.storage.open import open_store
from filesink.system import SystemClock
from tests.cli.running import run
from tests.fakes import SettableClock, World
from tests.fakes import records as text_records
from tests.operations.broken_paths import (
    U,
    V,
    complete,
    entries,
    flip,
    newest,
    record,
    unfinished,
    whole,
    with_open_parts,
)
from tests.operations.test_fsck import everything
from tests.sink_directory.written import Written, records

READING = (
    ("status",), ("log",), ("ls",), ("files",), ("du",), ("schema",), ("schema", "--history"), ("fsck",),
    ("fsck", "--quick"), ("fsck", "--deep"),
)  # fmt: skip
OF_VERSIONS = (("show", "2"), ("diff", "1", "9"), ("ls", "--at", "4"), ("du", "--at", "1"))
PLANS = (("recover",), ("finish",), ("sweep",), ("compact",), ("adopt",), ("repair",))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path of several sinks; nobody may change it."""
    path = tmp_path_factory.mktemp("whole") / "base"
    whole(path)
    return path


def called(command: tuple[str, ...], path: Path, *more: str) -> tuple[str | Path, ...]:
    """A command with its path, then its other arguments."""
    name, *arguments = command
    return name, path, *arguments, *more


@pytest.mark.parametrize("command", [*READING, *OF_VERSIONS, *PLANS], ids=" ".join)
def test_a_table_has_a_hundred_columns(base: Path, command: tuple[str, ...]) -> None:
    """At most, and there is something in it; nothing is changed by looking, nor by a plan."""
    before = everything(base)
    ran = run(*called(command, base))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.strip()
    if command[0] != "files":  # these are for programs
        assert max(map(len, ran.out.splitlines())) <= 100
    assert everything(base) == before


@pytest.mark.parametrize("command", [*READING, *OF_VERSIONS, *PLANS], ids=" ".join)
def test_machines_get_json(base: Path, command: tuple[str, ...]) -> None:
    """An object in each line, and nothing else."""
    ran = run(*called(command, base, "--json"))
    assert ran.code == 0
    assert ran.lines
    assert all(isinstance(line, dict) for line in ran.lines)


def test_status(base: Path) -> None:
    """Version, files, rows and bytes are those of the newest snapshot; small files are counted."""
    found = run("status", base, "--json", "--small-below", "430b").json
    snapshot = filesink.open(base).snapshot()
    assert (found["version"], found["files"], found["rows"], found["bytes"]) == (
        snapshot.version, len(snapshot.files), snapshot.rows, snapshot.bytes,
    )  # fmt: skip
    small = [file for file in snapshot.files if file.size < 430]
    assert (found["small_files"], found["small_share"]) == (len(small), len(small) / len(snapshot.files))
    assert [sink["id"] for sink in found["sinks"]] == ["appends-u", "exclusive", "uid-u", "uid-v"]
    assert (found["held"], found["damage"]) == ([], [])


def test_status_tells_what_waits(tmp_path: Path) -> None:
    """Open parts by directory, and why readers do not see them."""
    with_open_parts(tmp_path / "base")
    (held,) = run("status", tmp_path / "base", "--json").json["held"]
    assert {name: held[name] for name in ("sink", "bucket", "kind", "files", "rows")} == {
        "sink": "uid-u", "bucket": "day=1", "kind": "open", "files": 2, "rows": 2,
    }  # fmt: skip
    out = run("status", tmp_path / "base").out
    assert "day=1" in out
    assert "open: " in out


def test_status_tells_what_is_kept_for_readers(tmp_path: Path) -> None:
    """How many files, and until when, for as long as they are kept; ``sweep`` does not take them."""
    now = SystemClock().now_ms()
    world = World(
        open_store=lambda: open_store(str(tmp_path), {}), clock=SettableClock(now), reader_grace_ms=3_600_000
    )
    for mode in (SaveMode.APPEND, SaveMode.OVERWRITE):
        sink_id, cause = batch_write(mode, world.uid, "", world.ids)
        world.driver(sink_id).run(cause, world.job(text_records(mode.value)))
    assert "replaced, and kept for readers until" in run("status", tmp_path).out
    found = run("status", tmp_path, "--json").json
    assert (found["files"], found["kept_files"]) == (1, 1)
    run("sweep", tmp_path, "--yes")
    assert run("status", tmp_path, "--json").json["kept_files"] == 1
    assert len(world.store().list("")) == 3


def test_status_tells_of_an_epoch_that_is_not_complete(tmp_path: Path) -> None:
    """And of the command that completes it."""
    unfinished(tmp_path / "base")
    ran = run("status", tmp_path / "base")
    assert "decided, not complete" in ran.out
    assert "filesink recover" in ran.out
    assert ran.code == 0  # its driver may be at work


def test_status_says_what_a_sink_without_a_name_is(base: Path) -> None:
    """``exclusive`` and ``appends`` are names that nobody has given."""
    assert "exclusive: batch writes that replace files" in run("status", base).out
    assert "appends:" not in run("status", base).out


def test_a_damaged_ledger_hides_no_other(base: Path, tmp_path: Path) -> None:
    """What can be read is shown, the rest is named; the exit code says that there is something."""
    copy = tmp_path / "base"
    shutil.copytree(base, copy)
    flip(record(copy, V, 1))
    ran = run("status", copy)
    assert ran.code == 1
    assert "uid-u" in ran.out
    assert "8 files" in ran.out
    assert f"damaged: {V}/000000000001.record" in ran.out
    assert "filesink fsck" in ran.out
    assert run("ls", copy).code == 0
    assert run("log", copy).code == 0


@pytest.mark.parametrize("lost", ["tail", "ledger"])
def test_a_ledger_that_is_older_than_the_inventory_is_told_of(base: Path, tmp_path: Path, lost: str) -> None:
    """It calls itself complete, and a restart would write again what is there."""
    copy = tmp_path / "base"
    shutil.copytree(base, copy)
    slot = newest(copy, V)
    if lost == "tail":
        record(copy, V, slot).unlink()
        complete(copy, V, slot).unlink()
    else:
        shutil.rmtree(copy / V)
    ran = run("status", copy)
    ends = f"ends with epoch {slot - 1}" if lost == "tail" else "is gone"
    assert ran.code == 1
    assert f"epoch {slot} of 'uid-v', whose ledger {ends}" in " ".join(ran.out.split())
    assert "filesink fsck" in ran.out
    assert run("status", base).code == 0


def test_a_damaged_inventory_is_told_of(base: Path, tmp_path: Path) -> None:
    """What needs it could not look; the status is shown all the same."""
    copy = tmp_path / "base"
    shutil.copytree(base, copy)
    for mark in copy.glob("_filesink/_inventory/*.mark"):
        flip(mark)
    assert run("status", copy).code == 1
    assert "uid-u" in run("status", copy).out
    ran = run("ls", copy)
    assert ran.code == 3
    assert "filesink fsck" in ran.err


def test_log_is_in_the_order_of_versions(base: Path) -> None:
    """Of all sinks, the newest so many; of one with its uid."""
    epochs = run("log", base, "--json").lines
    assert [epoch["version"] for epoch in epochs] == list(range(1, 10))
    assert [epoch["version"] for epoch in run("log", base, "-n", "2", "--json").lines] == [8, 9]
    assert {epoch["sink"] for epoch in run("log", base, "--uid", "v", "--json").lines} == {"uid-v"}
    assert [epoch["txn_id"] for epoch in epochs if epoch["txn_id"]] == ["january"]


def test_log_follows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What becomes visible is printed once, until it is interrupted."""
    written = whole(tmp_path / "base")

    def pauses() -> Iterator[None]:
        written.write(records(1, "more"))
        yield
        yield
        written.write(records(2, "and more"), uid="v")
        yield
        raise KeyboardInterrupt

    pause = pauses()
    monkeypatch.setattr(SystemClock, "sleep", lambda _self, _seconds: next(pause))
    ran = run("log", tmp_path / "base", "--follow", "-n", "1", "--json")
    assert [epoch["version"] for epoch in ran.lines] == [9, 10, 11]
    assert ran.code == 0


def test_ls_by_directory_and_version(base: Path) -> None:
    """The files of a snapshot, all or those of one directory, now or earlier."""
    directory = filesink.open(base)
    for version in (1, 4, 9):
        listed = run("ls", base, "--at", str(version), "--json").lines
        assert [file["path"] for file in listed] == [file.path for file in directory.snapshot(version).files]
    only = run("ls", base, "k=1", "--json").lines
    assert {file["bucket"] for file in only} == {"k=1"}
    assert {file["sink"] for file in run("ls", base, "--uid", "v", "--json").lines} == {"uid-v"}
    paths = run("files", base).out.splitlines()
    assert all(Path(path).is_file() for path in paths)
    assert len(paths) == 8


def test_du_adds_up(base: Path) -> None:
    """The directories together are the whole."""
    sums = run("du", base, "--json").lines
    assert sum(one["bytes"] for one in sums) == filesink.open(base).snapshot().bytes
    assert [one["bytes"] for one in sums] == sorted((one["bytes"] for one in sums), reverse=True)
    assert len(run("du", base, "--depth", "0", "--json").lines) == 1


def test_show_and_diff(base: Path) -> None:
    """The files that an overwrite has brought and removed; both ways between two versions."""
    shown = run("show", base, "2", "--json").json
    assert (len(shown["added"]), [file["bucket"] for file in shown["removed_files"]]) == (1, ["k=1"])
    there, back = (run("diff", base, *pair, "--json").json for pair in (("1", "4"), ("4", "1")))
    assert [file["path"] for file in there["added"]] == [file["path"] for file in back["removed"]]
    assert run("diff", base, "0", "1", "--json").json["columns"] == ["+ k: int32", "+ value: string"]
    assert run("diff", base, "3", "3", "--json").json["added"] == []


def test_schema(base: Path) -> None:
    """Columns of the data and of the directories; since when."""
    columns = run("schema", base, "--json").json["columns"]
    assert [(one["name"], one["type"]) for one in columns] == [("k", "int32"), ("value", "string")]
    (history,) = run("schema", base, "--history", "--json").lines
    assert history["since"] == 1


def test_fsck_ends_with_one_if_something_is_wrong(base: Path, tmp_path: Path) -> None:
    """It says what that means, and what to do, with the path to be pasted."""
    copy = tmp_path / "a b"
    shutil.copytree(base, copy)
    (copy / "k=1" / "mine.parquet").write_bytes(b"x")
    ran = run("fsck", copy)
    assert ran.code == 1
    assert "FILE_FOREIGN" in ran.out
    assert "k=1/mine.parquet" in ran.out
    (finding,) = run("fsck", copy, "--json").json["findings"]
    assert finding["severity"] == "warning"
    assert f"'{copy}'" in finding["mend"]
    for number in range(9):
        (copy / "k=1" / f"mine-{number}.parquet").write_bytes(b"x")
    assert "and 5 more" in run("fsck", copy).out
    assert "and 5 more" not in run("fsck", copy, "--all").out


def test_no_name_reaches_the_terminal_raw(base: Path, tmp_path: Path) -> None:
    """Control characters, reversed text and markup in names are spelled out, wherever they are printed."""
    copy = tmp_path / "base"
    shutil.copytree(base, copy)
    evil = "x\x1b[31m\r\n\u202e[bold]\x07.parquet"
    (copy / "k=1" / evil).write_bytes(b"x")
    (copy / "_filesink" / U.rpartition("/")[2] / "000000000000.record").write_bytes(b"\x1b[2J")
    for command in READING:
        ran = run(*called(command, copy))
        for text in (ran.out, ran.err):
            assert not {"\x1b", "\r", "\u202e", "\x07"} & set(text)
    assert r"x\x1b[31m\r\n\u202e[bold]\x07.parquet" in run("fsck", copy).out


def test_columns_with_evil_names_are_spelled_out(tmp_path: Path) -> None:
    """So are directories, whose names are values of a partition column."""
    import pyarrow as pa

    written = Written(tmp_path / "base", partitions=("k\x1b",))
    schema = pa.schema([("k\x1b", pa.string()), ("v\x9b", pa.int64())])
    written.write(pa.RecordBatch.from_pydict({"k\x1b": ["\u202ea"], "v\x9b": [1]}, schema=schema))
    for command in READING:
        assert not {"\x1b", "\x9b", "\u202e"} & set(run(*called(command, tmp_path / "base")).out)


def test_no_value_of_a_record_is_printed(base: Path, tmp_path: Path) -> None:
    """Statistics of columns are such values: least and greatest."""
    copy = tmp_path / "base"
    shutil.copytree(base, copy)
    path = entries(copy)[-1]
    entry = Entry.from_bytes(path.read_bytes(), where="")
    added = tuple(replace(file, statistics='{"value":{"min":"hunter2"}}') for file in entry.epoch.added)
    path.write_bytes(replace(entry, epoch=replace(entry.epoch, added=added)).to_bytes())
    assert "hunter2" in str(filesink.open(copy).snapshot().to_arrow()["statistics"].to_pylist())
    for command in [*READING, *OF_VERSIONS, ("show", "9"), ("diff", "8", "9"), *PLANS]:
        for more in ((), ("--json",)):
            ran = run(*called(command, copy, *more))
            assert "hunter2" not in ran.out + ran.err


def test_nothing_waits_for_a_terminal(base: Path) -> None:
    """A pipe gets no colours, and no bar."""
    ran = run("fsck", base)
    assert "\x1b" not in ran.out + ran.err


def test_options_never_show_in_a_repr() -> None:
    """They may be secret."""
    assert "hunter2" not in repr(Call(json=False, options={"secret": "hunter2"}))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(shell: str) -> None:
    """What begins like what was typed."""
    environment = {
        "_FILESINK_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": "filesink fs",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "COMP_WORDS": "filesink fs",
        "COMP_CWORD": "1",
    }
    done = CliRunner().invoke(app, prog_name="filesink", env=environment)
    assert "fsck" in done.stdout
    assert "status" not in done.stdout


@pytest.mark.parametrize("command", [("files",), ("files", "--json"), ("log", "--json"), ("ls",)])
def test_a_reader_may_go_away(tmp_path: Path, command: tuple[str, ...]) -> None:
    """As ``head`` does: no word about it, and the exit code that a shell knows, not that of a finding."""
    base = tmp_path / "base"
    whole(base)
    program = [sys.executable, "-m", "filesink", command[0], str(base), *command[1:]]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # noqa: S603 - ours
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 141
