"""The page in a real browser."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.operations.broken_paths import whole

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("width", [400, 1200])
def test_a_browser_has_nothing_to_complain_of(tmp_path: Path, width: int) -> None:
    """Opened from a disk, in windows of either width: what its own policy refuses would be in the console."""
    program = shutil.which("chromium") or shutil.which("chrome")
    if program is None:
        pytest.skip("there is no chromium")
    whole(tmp_path / "base")
    page, picture = tmp_path / "page.html", tmp_path / "page.png"
    assert run("report", tmp_path / "base", "--html", page).code == 0
    command = [
        program, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
        f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},2000", f"--screenshot={picture}",
        page.as_uri(),
    ]  # fmt: skip
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)  # noqa: S603 - ours
    assert "CONSOLE" not in ran.stderr
    assert struct.unpack(">I", picture.read_bytes()[16:20]) == (width,)
