"""Starts writers, kills them, and starts them again."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from threading import Event, Timer
from typing import Any, Final

from filesink.operations.torture.writer import Task
from filesink.ports import Clock

#: What a writer was at when it was killed, by the last word that it has said.
STEPS: Final = {
    "ready": "reading the ledger",
    "began": "writing",
    "decided": "publishing",
    "visible": "completing",
    "complete": "tidying up",
    "done": "between epochs",
    "finished": "between epochs",
}
_LONGEST: Final = 20.0  # seconds until a writer is killed
_EPOCHS: Final = 5  # that a writer lives on average, or less


@dataclass
class Victim:
    """One stream of a trial, in a process at a time. ``run`` is for a thread of its own.

    Attributes:
        done: its last batch that was written, as a checkpoint would have it.
        kills: by what it was at.
        errors: of processes that ended by themselves.
    """

    writer: int
    path: str
    options: Mapping[str, Any] = field(repr=False)
    clock: Clock = field(repr=False)
    over: Event = field(repr=False)
    done: int = -1
    starts: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    _process: subprocess.Popen[str] | None = None
    _said: str = ""
    _epoch_ms: float = 300.0

    def run(self) -> None:
        """Start it, kill it, start it again, until the trial is over."""
        while not self.over.is_set():
            code, error = self._live(last=None)
            if code < 0:
                self.kills[STEPS.get(self._said, "starting")] += 1
            elif code and error not in self.errors:
                self.errors.append(error)
            if code >= 0 and not self.over.wait(1):
                continue

    def finish(self) -> bool:
        """One start that nobody kills: it writes a new batch at least, ends the input; whether it succeeded.

        The first batch after ``done`` may be complete and only repeat; what its writer had no time to remove
        goes with the next epoch.
        """
        code, error = self._live(last=self.done + 2)
        if code:
            self.errors.append(f"the start after the last kill failed: {error}")
        return code == 0

    def kill(self) -> None:
        """SIGKILL for the process that lives, if one does."""
        if self._process is not None:
            self._process.kill()

    def _live(self, last: int | None) -> tuple[int, str]:
        """The life of a process; how it ended, and its last line of errors. Below 0: it was killed."""
        task = Task(path=self.path, options=self.options, writer=self.writer, first=self.done + 1, last=last)
        self.starts, self._said = self.starts + 1, ""
        program = [sys.executable, "-m", "filesink.operations.torture.writer"]
        pipe = subprocess.PIPE
        with subprocess.Popen(program, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:  # noqa: S603
            self._process = process
            if self.over.is_set() and last is None:  # since nobody may have seen it
                process.kill()
            timer = Timer(self._delay(), process.kill)
            try:
                self._listen(process, task, timer if last is None else None)
                error = "" if process.stderr is None else process.stderr.read()
            finally:
                timer.cancel()
            code = process.wait()
        lines = error.strip().splitlines()
        return code, lines[-1] if lines else f"it ended with {code}"

    def _listen(self, process: subprocess.Popen[str], task: Task, timer: Timer | None) -> None:
        if process.stdin is None or process.stdout is None:
            return
        try:
            process.stdin.write(json.dumps(asdict(task)))
            process.stdin.close()
        except BrokenPipeError:  # it is dead already; its code says why
            return
        began = self.clock.now_ms()
        for text in process.stdout:
            self._said, _, number = text.strip().partition(" ")
            if self._said == "ready" and timer is not None:
                timer.start()
            elif self._said == "done":
                self.done = int(number)
                now = self.clock.now_ms()
                self._epoch_ms, began = (self._epoch_ms * 3 + now - began) / 4, now

    def _delay(self) -> float:
        """Seconds; spread evenly, so that each moment of an epoch gets its kill."""
        drawn = sha256(f"{self.path} {self.writer} {self.starts}".encode()).digest()
        share = int.from_bytes(drawn[:4]) / 2**32
        return share * min(_LONGEST, 2 * _EPOCHS * self._epoch_ms / 1000)
