"""Where processes come from: a program without threads that has imported everything, and forks.

    python -m property_tests.torture.nursery module:Destination

Reads a ``Life`` as JSON from each line of standard input, and prints its ``End``. Of each life there are two
forks: the *driver*, and the *host* of its tasks, which forks once more for each attempt. Both have no threads
when they fork.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from property_tests.torture.destination import Destination, name_of, named
from property_tests.torture.life import Answer, End, Life, Order, attempt, live

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def nursery(destination: Destination) -> Iterator[Callable[[Life], End]]:
    """A function that has a life lived by other processes, and says how it has ended."""
    with subprocess.Popen(  # noqa: S603 - ours
        [sys.executable, "-m", __name__, name_of(destination)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:  # fmt: skip

        def run(life: Life) -> End:
            assert process.stdin is not None
            assert process.stdout is not None
            print(life.to_json(), file=process.stdin, flush=True)
            return End(**json.loads(process.stdout.readline()))

        try:
            yield run
        finally:
            assert process.stdin is not None
            process.stdin.close()


def main(name: str) -> None:
    """Have each life lived, until standard input ends."""
    destination = named(name)
    before = 0
    for line in sys.stdin:
        end, host = _lived(destination, Life.from_json(line))
        _end(before)  # tasks of the life before that went on
        before = host
        print(json.dumps(asdict(end)), flush=True)
    _end(before)


def _lived(destination: Destination, life: Life) -> tuple[End, int]:
    """How it has ended, and the group of its tasks, some of which may go on."""
    to_host, of_driver = Pipe()
    host = _forked(lambda: _host(destination, of_driver), to_host)
    os.setpgid(host, host)
    reader, writer = Pipe(duplex=False)
    driver = _forked(lambda: writer.send(live(destination, life, to_host)), of_driver, reader)
    for end in (to_host, of_driver, writer):
        end.close()
    said = _received(reader)
    os.waitpid(driver, 0)
    return said if isinstance(said, End) else End(how="killed"), host


def _host(destination: Destination, driver: Connection) -> None:
    """Run attempts of tasks, until the driver is gone."""
    while isinstance(order := _received(driver, close=False), Order):
        reader, writer = Pipe(duplex=False)
        task = _forked(lambda: writer.send(attempt(destination, order)), reader, driver)  # noqa: B023
        writer.close()
        answer = _received(reader)
        os.waitpid(task, 0)
        with contextlib.suppress(BrokenPipeError):  # the driver has died meanwhile
            driver.send(answer if isinstance(answer, Answer) else Answer())


def _forked(body: Callable[[], object], *foreign: Connection) -> int:
    """A process that runs ``body``; ``foreign`` are ends of pipes that it must not keep open."""
    if (child := os.fork()) == 0:
        status = 1
        try:
            for end in foreign:
                end.close()
            body()
            status = 0
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(status)
    return child


def _received(end: Connection, *, close: bool = True) -> Any:
    """What comes, or ``None`` if whoever was to send it is gone."""
    try:
        return end.recv()
    except (EOFError, ConnectionResetError):
        return None
    finally:
        if close:
            end.close()


def _end(group: int) -> None:
    """Kill whoever is left of a life."""
    if group:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
        os.waitpid(group, 0)


if __name__ == "__main__":
    main(sys.argv[1])
