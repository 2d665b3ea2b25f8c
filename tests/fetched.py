"""Programs that tests get from npm and Maven: fetched once for an environment, and kept in it."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

_HOME = Path(sys.prefix) / "share" / "filesink-tests"


def fetched(name: str, command: Callable[[Path], list[str]], *, home: Path = _HOME) -> Path:
    """The directory of a program; whoever comes first fetches it, and others wait for that.

    Skips the test where it cannot be fetched. What was begun and not finished is never taken for whole.

    Args:
        name: of the program, with its version.
        command: fetches it into a directory.
        home: where such directories are kept.
    """
    home.mkdir(parents=True, exist_ok=True)
    found = home / name
    with (home / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not found.is_dir():
            _fetch(found, command)
    return found


def _fetch(found: Path, command: Callable[[Path], list[str]]) -> None:
    with tempfile.TemporaryDirectory(dir=found.parent) as directory:
        made = Path(directory) / "made"
        made.mkdir()
        try:
            subprocess.run(command(made), capture_output=True, timeout=400, check=True)  # noqa: S603 - ours
        except subprocess.SubprocessError as error:
            pytest.skip(f"{found.name} cannot be fetched ({type(error).__name__})")
        made.rename(found)
