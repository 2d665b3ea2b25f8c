"""Real errors of a real kernel: strace fails or kills a writer at its n-th system call of a kind.

Whatever the call and the error, the restarted writer ends with every row once, with no file touched
that was visible before, and with nothing hidden left behind.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from itertools import product
from pathlib import Path

import pytest

from property_tests.real_epochs import FORMATS, expected, hidden_files, main, rows_of, visible_files
from property_tests.test_kills import in_a_process, sweep

#: Only what is traced stops for strace; it sends no signals then.
FAST = "--seccomp-bpf"
CALLS = ("fsync", "linkat", "unlinkat", "mkdirat")
FAULTS = ("error=EIO", "error=ENOSPC", "signal=KILL")
#: What is tried at one point of each call for a change; by night each fault at many points of each call.
CHOSEN = {"fsync": "error=EIO", "linkat": "signal=KILL", "unlinkat": "error=EIO", "mkdirat": "error=ENOSPC"}
MANY = 10

pytestmark = [
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed (apt install strace)"),
    pytest.mark.slow,
]


def run(base: Path, *tracing: str) -> int:
    """The exit code of one run of the writer, under strace if ``tracing`` says so."""
    strace = ["strace", "-f", "-qqq", *tracing] if tracing else []
    command = [*strace, sys.executable, "-m", "property_tests.real_epochs", str(base)]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, timeout=120, check=False)  # noqa: S603 - ours
    return done.returncode


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Counter[str]:
    """How often an undisturbed run makes each call."""
    directory = tmp_path_factory.mktemp("count")
    log = directory / "log"
    code = run(directory / "base", FAST, "-e", f"trace={','.join(CALLS)}", "-o", str(log))
    text = log.read_text()
    if code and "ptrace" in text:
        pytest.skip("tracing is not permitted here")
    assert code == 0
    found = re.findall(r"^([0-9]+) +([a-z]+)\(", text, re.MULTILINE)
    assert len({thread for thread, _ in found}) == 1, "strace counts calls by thread"
    return Counter(call for _, call in found)


@pytest.mark.parametrize(
    ("call", "fault", "points"),
    [
        *((call, fault, 1) for call, fault in CHOSEN.items()),
        *(pytest.param(*each, MANY, marks=pytest.mark.nightly) for each in product(CALLS, FAULTS)),
    ],
)
def test_a_failing_call_costs_no_row(
    call: str, fault: str, points: int, calls: Counter[str], tmp_path: Path
) -> None:
    """After any error or kill at any call a restart completes the input, exactly once."""
    assert calls[call], "the writer makes no such call"
    spread = min(points, calls[call])
    shift = FAULTS.index(fault) + 1
    for point in range(spread):
        nth = max(1, (calls[call] * (4 * point + shift)) // (4 * spread))
        base, log = tmp_path / f"{nth}", tmp_path / f"{nth}.log"
        fast = [FAST] if fault.startswith("error=") else []
        code = run(
            base, *fast, "-o", str(log), "-e", f"trace={call}", "-e", f"inject={call}:{fault}:when={nth}"
        )
        if fault == "signal=KILL":
            assert code == -signal.SIGKILL, "nothing was killed"
        else:
            assert "(INJECTED)" in log.read_text(), "no call has failed"
        if code == 0:
            check_rows(base)  # who reports success has written everything
        check_restart(base)


def check_restart(base: Path) -> None:
    """Restart until it succeeds, then look as an outside reader."""
    for name in FORMATS:
        for path in visible_files(base / name):
            rows_of(path)
    before = {path: path.stat() for name in FORMATS for path in visible_files(base / name)}
    assert in_a_process(lambda: main(str(base))) == 0, "a restart without faults succeeds at once"
    for path, stat in before.items():
        now = path.stat()
        assert (now.st_ino, now.st_size, now.st_mtime_ns) == (stat.st_ino, stat.st_size, stat.st_mtime_ns)
    check_rows(base)
    listing = sorted(base.rglob("*"))
    assert in_a_process(lambda: main(str(base))) == 0
    assert sorted(base.rglob("*")) == listing, "a further run finds everything committed"
    for name in FORMATS:  # what could not be removed held up nothing, and no epoch came after it
        sweep(base / name)
    left = [path for name in FORMATS for path in hidden_files(base / name)]
    assert left == [], "nothing hidden is left"


def check_rows(base: Path) -> None:
    """A reader finds every row once."""
    for name in FORMATS:
        found = sorted(row for path in visible_files(base / name) for row in rows_of(path))
        assert found == expected(), f"{name}: every row once"
