"""What tests need and cannot bring along: made once for an environment, and kept in it."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

_HOME = Path(sys.prefix) / "share" / "filesink-tests"
_ROOT = Path(__file__).parents[1]


def fetched(name: str, command: Callable[[Path], list[str]], *, home: Path = _HOME) -> Path:
    """As ``kept``, for programs from npm and Maven; skips the test where there is none to be had."""
    try:
        return kept(name, command, home=home)
    except subprocess.SubprocessError as error:
        pytest.skip(f"{name} cannot be fetched ({type(error).__name__})")


def kept(name: str, command: Callable[[Path], list[str]], *, home: Path = _HOME) -> Path:
    """A directory with what ``command`` makes; whoever comes first runs it, and others wait for that.

    What was begun and not finished is never taken for whole.

    Args:
        name: of what is made, with its version.
        command: makes it in a directory.
        home: where such directories are kept.

    Raises:
        subprocess.SubprocessError: it failed, and will be tried again.
    """
    home.mkdir(parents=True, exist_ok=True)
    found = home / name
    with (home / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not found.is_dir():
            _make(found, command)
    return found


def _make(found: Path, command: Callable[[Path], list[str]]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
    with tempfile.TemporaryDirectory(dir=found.parent) as directory:
        made = Path(directory) / "made"
        made.mkdir()
        subprocess.run(  # noqa: S603 - our own
            command(made), cwd=_ROOT, env=environment, capture_output=True, timeout=400, check=True
        )
        made.rename(found)
