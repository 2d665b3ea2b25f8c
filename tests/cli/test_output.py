"""What becomes of a command whose output nobody takes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import filesink
from tests.cli.running import run
from tests.operations.broken_paths import whole

COMMANDS = (("status", "PATH"), ("status", "PATH", "--json"), ("ls", "PATH"), ("files", "PATH"), ("--help",))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path that nobody changes."""
    path = tmp_path_factory.mktemp("whole") / "base"
    whole(path)
    return path


def ended(base: Path, arguments: tuple[str, ...], shell: str) -> tuple[int, str]:
    """Exit code and standard error of ``filesink <arguments>`` as a program, which ``shell`` starts."""
    words = [str(base) if one == "PATH" else one for one in arguments]
    done = subprocess.run(  # noqa: S603 - our own
        ["/bin/sh", "-c", shell, "sh", sys.executable, "-m", "filesink", *words],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
@pytest.mark.parametrize("arguments", [*COMMANDS, ("status", "--help"), ("status", "/nothing", "--json")])
def test_a_full_disk_is_told(base: Path, arguments: tuple[str, ...]) -> None:
    """What was found was not seen, so it is no success, and no defect either."""
    told = "filesink: the output cannot be written: No space left on device [NOT_WRITTEN]\n"
    assert ended(base, arguments, '"$@" >/dev/full') == (3, told)


@pytest.mark.parametrize("arguments", COMMANDS)
def test_an_output_that_is_closed_from_the_start_is_told(base: Path, arguments: tuple[str, ...]) -> None:
    """Before anything is done."""
    told = "filesink: the output cannot be written: it is closed [NOT_WRITTEN]\n"
    assert ended(base, arguments, '"$@" >&-') == (3, told)


@pytest.mark.parametrize("arguments", [("--help",), ("status", "--help"), ("stauts", "--json")])
def test_a_reader_of_help_may_go_away(arguments: tuple[str, ...]) -> None:
    """As that of any command."""
    program = [sys.executable, "-m", "filesink", *arguments]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # noqa: S603 - ours
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
def test_notes_that_cannot_be_written_change_nothing(base: Path) -> None:
    """The exit code is that of the command."""
    assert ended(base, ("status", "PATH"), '"$@" >/dev/null 2>/dev/full') == (0, "")
    assert ended(base, ("status", "/nothing"), '"$@" 2>/dev/full') == (2, "")


@pytest.mark.parametrize(
    "arguments", [("status",), ("stauts", "PATH"), ("status", "PATH", "--jsno"), ("show", "PATH", "x")]
)
def test_a_wrong_use_is_an_object_for_programs(base: Path, arguments: tuple[str, ...]) -> None:
    """As every other error; people get the usage."""
    words = [str(base) if one == "PATH" else one for one in arguments]
    ran = run(*words, "--json")
    assert (ran.code, ran.err, ran.json["code"]) == (2, "", "USAGE")
    ran = run(*words)
    assert (ran.code, ran.out, "Usage:" in ran.err) == (2, "", True)


def test_commands_name_the_metastore_that_was_asked(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fsck advises can be pasted; without quoting, a name of two words would be two arguments."""
    finding = filesink.Finding(code="PARTITION_MISSING", base_path=str(base), path="k=1", detail="not there")
    report = filesink.FsckReport(path=str(base), version=1, files=1, opened=0, findings=[finding])
    monkeypatch.setattr(filesink, "fsck", lambda *_, **__: report)
    asked = ("--metastore", "thrift://host:9083", "--table", "db.a b")
    told = f"filesink publish {base} --metastore thrift://host:9083 --table 'db.a b' --yes"
    assert f"-> {told}\n" in run("fsck", base, *asked).out
    assert run("fsck", base, *asked, "--json").json["findings"][0]["mend"] == told
