"""A Python in which filesink does not run is told so by ``import filesink``, in one sentence."""

from __future__ import annotations

import subprocess
import sys

import pytest

from filesink import VersionError, packages

WINDOWS = "import sys; sys.platform = 'win32'"
THREADS = "import sysconfig; sysconfig.get_config_var = lambda name: int(name == 'Py_GIL_DISABLED')"
TELL = """
try:
    import filesink
except ImportError as error:
    print(type(error).__name__, error)
"""


def test_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The way out is in the sentence, and it is an ``ImportError``."""
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(ImportError, match="WSL") as raised:
        packages.refuse_strange_pythons()
    assert isinstance(raised.value, VersionError)
    assert raised.value.code == "WINDOWS"


@pytest.mark.parametrize(("found", "is_refused"), [(1, True), (0, False), (None, False)])
def test_free_threads(monkeypatch: pytest.MonkeyPatch, found: int | None, *, is_refused: bool) -> None:
    """By how the Python was built; an older one does not know the word."""
    monkeypatch.setattr("sysconfig.get_config_var", {"Py_GIL_DISABLED": found}.get)
    if not is_refused:
        packages.refuse_strange_pythons()
        return
    with pytest.raises(VersionError, match="free-threaded") as raised:
        packages.refuse_strange_pythons()
    assert raised.value.code == "FREE_THREADED"


@pytest.mark.parametrize(("strange", "code"), [(THREADS, "FREE_THREADED"), (WINDOWS, "WINDOWS")])
def test_the_import_says_it(strange: str, code: str) -> None:
    """Before anything else is imported that would fail in another way."""
    program = f"{strange}\n{TELL}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603 - our own
    assert done.stdout.startswith(f"VersionError [{code}] ")
    assert len(done.stdout.splitlines()) == 1
