"""Drivers that are killed, each a fork of one process that has imported everything.

That process reads one order as JSON from each line of standard input, forks, and says how the fork has ended:
what ``drive`` returned, or ``killed``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def serve(drive: Callable[[dict[str, Any]], str]) -> None:
    """Have each order driven by a fork, until standard input ends. No thread may run by then."""
    for line in sys.stdin:
        reader, writer = os.pipe()
        if (child := os.fork()) == 0:
            os.close(reader)
            os.write(writer, drive(json.loads(line)).encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as answer:
            said = answer.read()
        os.waitpid(child, 0)
        print(said or "killed", flush=True)  # noqa: T201 - how it answers


@contextmanager
def drivers(module: str) -> Iterator[Callable[[Any], str]]:
    """A function that has the process of ``module`` drive a dataclass, and says how that ended."""
    with subprocess.Popen(  # noqa: S603 - ours
        [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None

        def driver(run: Any) -> str:
            print(json.dumps(asdict(run)), file=process.stdin, flush=True)
            return process.stdout.readline().strip()

        yield driver
        process.stdin.close()
