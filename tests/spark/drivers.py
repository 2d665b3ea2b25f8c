"""Driver processes that tests start, watch and kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Self

import psutil

_ROOT = Path(__file__).resolve().parents[2]


class Driver:
    """One run of a program below ``tests/spark/programs``, in a process group of its own.

    Args:
        program: its module.
        arguments: its command line.
        log: where its standard error goes.
    """

    def __init__(self, program: str, *arguments: object, log: Path) -> None:
        self._log = log
        with log.open("a") as errors:
            self._process = subprocess.Popen(  # noqa: S603 - our own programs
                [sys.executable, "-m", f"tests.spark.programs.{program}", *map(str, arguments)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
                cwd=_ROOT,
                env={**os.environ, "PYTHONPATH": str(_ROOT)},
            )
        self._seen: dict[int, psutil.Process] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End whatever is left of it."""
        self._look()
        self._process.kill()
        self._process.communicate()
        for process in self._seen.values():
            with suppress(psutil.NoSuchProcess):
                process.kill()  # psutil looks at the start time, so a reused pid is safe

    def wait_for(self, word: str) -> None:
        """Wait until the program has said ``word``."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.strip() == word:
                self._look()
                return
        raise AssertionError(f"ended without saying {word!r}:\n{self._log.read_text()[-5000:]}")

    def told(self, word: str) -> str:
        """Wait until the program has said ``word`` and something more; what that is."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            first, _, rest = line.strip().partition(" ")
            if first == word:
                self._look()
                return rest
        raise AssertionError(f"ended without saying {word!r}:\n{self._log.read_text()[-5000:]}")

    def ask(self) -> str:
        """Close its standard input and return what it says then."""
        output, _ = self._process.communicate()
        return output

    def wait(self) -> int:
        """Wait for its end; its exit status."""
        self._process.communicate()
        return self._process.returncode

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def kill(self) -> None:
        """SIGKILL for its process group: Python driver and JVM. Python workers are in another.

        It may have ended by itself meanwhile; so it may for ``kill_jvm``.
        """
        self._look()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self.wait()

    def kill_jvm(self) -> None:
        """SIGKILL for the JVM only; the Python driver goes on for as long as it can."""
        self._look()
        with suppress(psutil.NoSuchProcess, StopIteration):
            self._jvm().kill()

    def kill_a_worker(self) -> bool:
        """SIGKILL for a Python worker, if there is one right now."""
        self._look()
        with suppress(psutil.NoSuchProcess, StopIteration):  # it may end by itself while we look
            for daemon in self._jvm().children():
                for worker in daemon.children():
                    worker.kill()
                    return True
        return False

    def _jvm(self) -> psutil.Process:
        return next(
            process for process in psutil.Process(self._process.pid).children() if process.name() == "java"
        )

    def _look(self) -> None:
        """Remember all processes below it: after a kill they have no parent any more."""
        with suppress(psutil.NoSuchProcess):
            children = psutil.Process(self._process.pid).children(recursive=True)
            self._seen.update({child.pid: child for child in children})
