"""Commands that read, on a file system that is mounted read-only."""

from __future__ import annotations

import errno
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.reading_commands import READING
from tests.operations.broken_paths import unfinished, whole, with_open_parts

#: A mount that nobody else sees, and that goes with the program.
_READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && exec "$2" -m "$3" "$1" "$4"'


def _on_a_read_only_mount(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = ["unshare", "-m", "sh", "-c", _READ_ONLY, "sh", *map(str, arguments)]
    return subprocess.run(program, capture_output=True, text=True, check=False)  # noqa: S603 - ours


@pytest.mark.slow
@pytest.mark.parametrize("make", [whole, unfinished, with_open_parts])
def test_commands_that_read_need_no_right_to_write(tmp_path: Path, make) -> None:
    """On a file system that is mounted read-only they say what they say elsewhere; root is no way around."""
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare(1), which gives a program mounts of its own")
    base, copy = tmp_path / "base", tmp_path / "copy"
    make(base)
    tried = _on_a_read_only_mount(base, shutil.which("true"), "", "")
    if tried.returncode:
        pytest.skip(f"this user may mount nothing: {tried.stderr.strip()}")
    module = "tests.cli.reading_commands"
    ran = _on_a_read_only_mount(base, sys.executable, module, copy)
    assert ran.returncode == 0, ran.stderr
    *commands, touched = map(json.loads, ran.stdout.splitlines())
    assert touched == ["touch", errno.EROFS, "OSError"]
    program = [sys.executable, "-m", module, base, copy]
    elsewhere = subprocess.run(program, capture_output=True, text=True, check=True)  # noqa: S603 - ours
    assert commands == [json.loads(line) for line in elsewhere.stdout.splitlines()]
    assert len(commands) == len(READING)
    # What is decided and not complete cannot be copied.
    assert {error for _, code, error in commands if code > 2} <= {"AT_WORK"}
