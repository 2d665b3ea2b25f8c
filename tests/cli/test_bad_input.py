"""What is typed wrong, is not there, or cannot be looked at: one sentence, and the right exit code."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

import pytest

import filesink
from filesink.errors import StorageError
from filesink.sink_directory import opening
from filesink.storage.faulty import Fault, FaultyStore, Moment
from filesink.storage.open import open_store
from tests.cli.running import run
from tests.operations.broken_paths import whole

COMMANDS = (
    "status", "log", "ls", "files", "du", "schema", "fsck", "repair", "recover", "finish", "sweep", "compact",
    "adopt",
)  # fmt: skip


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path that nobody changes."""
    path = tmp_path_factory.mktemp("whole") / "base"
    whole(path)
    return path


@pytest.mark.parametrize("command", COMMANDS)
def test_a_path_that_is_no_sink(base: Path, command: str) -> None:
    """It says what it has looked for, and names the nearest sink above."""
    ran = run(command, base / "k=1")
    assert ran.code == 2
    assert "_filesink" in ran.err
    assert f"'{base}'" in ran.err
    assert len(ran.err.splitlines()) == 1
    assert ran.out == ""


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("below", ["", "more"])
def test_the_path_of_a_file(base: Path, command: str, below: str) -> None:
    """It is live: nobody is told to move it away, but which path is meant."""
    ran = run(command, min(base.rglob("*.parquet")) / below)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)
    assert ran.err.endswith(
        f"is a file, or below one. Nothing was done; pass the base path '{base}' [NO_SINK]\n"
    )


def test_a_file_in_the_place_of_all_ledgers(tmp_path: Path) -> None:
    """That one may be moved away."""
    (tmp_path / "_filesink").write_text("?")
    ran = run("status", tmp_path)
    assert (ran.code, "move it away [WRONG_KIND]" in ran.err) == (3, True)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_path_above_a_sink(base: Path, command: str) -> None:
    """It names the one below."""
    ran = run(command, base.parent)
    assert (ran.code, f"'{base}'" in ran.err) == (2, True)


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_at_all(tmp_path: Path, command: str) -> None:
    """A path that does not exist is not made."""
    ran = run(command, tmp_path / "nothing", "--json")
    assert (ran.code, ran.json["code"]) == (2, "NO_PATH")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["status", "log", "ls"])
def test_a_uid_that_nobody_has(base: Path, command: str) -> None:
    """Those that are there are listed."""
    ran = run(command, base, "--uid", "w")
    assert ran.code == 2
    assert "'uid-u', 'uid-v'" in ran.err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("ls", "PATH", "--at", "99"), "NO_VERSION"),
        (("ls", "PATH", "--at", "-1"), "BAD_VALUE"),
        (("show", "PATH", "0"), "NO_VERSION"),
        (("show", "PATH", "10"), "NO_VERSION"),
        (("diff", "PATH", "1", "10"), "NO_VERSION"),
        (("log", "PATH", "-n", "-1"), "BAD_VALUE"),
        (("ls", "PATH", "k=7"), "NO_DIRECTORY"),
        (("du", "PATH", "--depth", "-1"), "BAD_VALUE"),
        (("status", "PATH", "--small-below", "many"), "BAD_VALUE"),
        (("fsck", "PATH", "--quick", "--deep"), "CONFLICT"),
        (("status", "PATH", "--storage-option", "key"), "BAD_VALUE"),
        (("status", "PATH", "--storage-option", "key=1"), "UNKNOWN_OPTION"),
        (("status", "PATH", "--storage-options", "/nothing/there"), "BAD_VALUE"),
        (("sweep", "PATH", "--older-than", "soon"), "BAD_VALUE"),
        (("compact", "PATH", "--target-size", "0"), "BAD_VALUE"),
        (("compact", "PATH", "--reader-grace=-1 days"), "BAD_VALUE"),
        (("compact", "PATH", "--reader-grace", "nan"), "BAD_VALUE"),
        (("retain", "PATH", "--keep", "99", "--reader-grace", "1 fortnight"), "BAD_VALUE"),
        (("compact", "PATH", "--bucket", "k=7"), "NO_DIRECTORY"),
        (("fsck", "PATH", "--metastore", "gleu", "--table", "a.b"), "METASTORE_URI"),
        (("publish", "PATH"), "CONFLICT"),
        (("publish", "PATH", "--table", "a.b"), "CONFLICT"),
        (("publish", "PATH", "k=7", "--success-file", "_DONE"), "NO_DIRECTORY"),
        (("status", "ftp://host/path"), "SCHEME"),
        (("status", ""), "PATH_REQUIRED"),
    ],
)
def test_what_cannot_be_meant(base: Path, arguments: tuple[str, ...], code: str) -> None:
    """Exit code 2, and one sentence with a code."""
    ran = run(*(str(base) if one == "PATH" else one for one in arguments))
    assert ran.code == 2
    assert ran.err.startswith("filesink: ")
    assert ran.err.rstrip().endswith(f"[{code}]")
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize("arguments", [("nope",), ("status",), ("show", "x", "y"), ("status", "x", "--nope")])
def test_what_is_no_command(arguments: tuple[str, ...]) -> None:
    """Typer says it, with the same exit code."""
    ran = run(*arguments)
    assert ran.code == 2
    assert "Traceback" not in ran.err


def test_a_version_that_is_forgotten(tmp_path: Path) -> None:
    """It is the caller who asks for what is not there any more; the oldest version is named."""
    whole(tmp_path / "base")
    filesink.adopt(tmp_path / "base")
    ran = run("ls", tmp_path / "base", "--at", "3")
    assert ran.code == 2
    assert "[HISTORY_EXPIRED]" in ran.err
    assert run("log", tmp_path / "base").code == 0


def test_a_store_that_does_not_answer(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 3, whatever was asked, and the sentence of the store."""
    fault = Fault(
        moment=Moment.BEFORE, error=StorageError("cannot list 'x': permission denied", code="PERMISSION")
    )

    def asked(path: str, options: dict[str, object]) -> FaultyStore:
        return FaultyStore(
            open_store(path, options), lambda operation, _: fault if operation == "list" else None
        )

    monkeypatch.setattr("filesink.storage.address.open_store", asked)
    for command in COMMANDS:
        ran = run(command, base)
        assert (ran.code, ran.err) == (3, "filesink: cannot list 'x': permission denied [PERMISSION]\n")


def test_a_defect_of_ours_is_a_sentence(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its text, which may hold a value; ``--debug`` has the traceback."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(opening, "site_of", broken)
    monkeypatch.setattr(filesink, "open", broken)
    ran = run("status", base)
    assert ran.code == 3
    assert "ZeroDivisionError" in ran.err
    assert "secret" not in ran.err
    with pytest.raises(ZeroDivisionError):
        run("status", base, "--debug")


def test_debug_shows_where_an_error_comes_from(tmp_path: Path) -> None:
    """Ours as well."""
    with pytest.raises(filesink.ConfigError, match="there is nothing"):
        run("status", tmp_path / "nothing", "--debug")


def test_options_of_the_store_come_from_a_file(tmp_path: Path) -> None:
    """So that no secret is among the arguments; what is given besides counts more. No value is shown."""
    file = tmp_path / "options.toml"
    file.write_text('key = "hunter2"\n')
    ran = run("status", tmp_path, "--storage-options", file)
    assert (ran.code, "UNKNOWN_OPTION" in ran.err, "hunter2" in ran.err) == (2, True, False)
    file.write_text('key = "hunter2\n')
    ran = run("status", tmp_path, "--storage-options", file)
    assert (ran.code, "hunter2" in ran.err) == (2, False)


NOBODY = 65_534


@contextmanager
def nobody() -> Iterator[None]:
    """This process has the rights of a user who owns nothing."""
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@pytest.fixture
def public(base: Path) -> Iterator[Path]:
    """A copy that everybody may read and only its owner may change."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        shutil.copytree(base, Path(name) / "base")
        yield Path(name) / "base"


@pytest.mark.parametrize("command", COMMANDS)
def test_reading_needs_no_right_to_write(public: Path, command: str) -> None:
    """Every command that reads, and every plan, prints the same to a user who may only read."""
    expected = run(command, public)  # imports what it needs, which that user may not read
    with nobody():
        ran = run(command, public)
    assert (ran.code, ran.out, ran.err) == (0, expected.out, "")


def test_no_permission(public: Path) -> None:
    """What may not be read could not be looked at; the sentence names it."""
    commands = ["ls", "fsck", "status"]
    for command in commands:
        run(command, public)
    (public / "_filesink/_inventory").chmod(0o700)
    with nobody():
        told = [run(command, public) for command in commands]
    assert [ran.code for ran in told] == [3, 3, 3]
    for ran in told:
        assert "_inventory" in ran.err
        assert ran.err.rstrip().endswith("[PERMISSION]")
        assert len(ran.err.splitlines()) == 1


def test_erase_says_that_it_may_not_read(public: Path) -> None:
    """And not that the file is damaged, or needs keys."""
    run("erase", public, "--where", "value = 'a'")
    (public / "k=1").chmod(0)
    with nobody():
        ran = run("erase", public, "--where", "value = 'a'")
    assert (ran.code, "'k=1" in ran.err or "/k=1" in ran.err, "[PERMISSION]" in ran.err) == (3, True, True)
    assert "Parquet" not in ran.err


def test_it_is_a_program(base: Path) -> None:
    """``python -m filesink``, whose reader may stop early."""
    command = [sys.executable, "-m", "filesink", "ls", str(base)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own
    assert "k=1/" in done.stdout


def test_it_tells_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the package which is installed; run from its sources, it has none."""
    monkeypatch.setattr(metadata, "version", lambda name: f"1.2.3 of {name}")
    ran = run("--version")
    assert (ran.code, ran.out, ran.err) == (0, "filesink 1.2.3 of filesink\n", "")

    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert run("--version").out == "filesink of no release\n"


def test_without_the_extra_it_says_so(tmp_path: Path) -> None:
    """One sentence names what is missing, and how to get it."""
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError(\"No module named 'typer'\", name='typer')")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-m", "filesink"], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 3
    assert done.stderr.strip().endswith("pip install 'filesink[cli]'")
    assert len(done.stderr.splitlines()) == 1
