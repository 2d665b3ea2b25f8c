"""Run a job file from Kafka into files, a stream to a savepoint, in a session that has Spark's own source.

Arguments: the job file, the path of the jobs, how many rows to wait for. After a first time it is restored.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from threading import Thread

from filesink.jobs import Jobs, RunOptions

_PATIENCE_S = 120.0


def main() -> None:
    """Wait for the rows, or for the job's end, whichever comes first."""
    file, jobs, rows = Path(sys.argv[1]), Jobs(sys.argv[2]), int(sys.argv[3])
    options = RunOptions(master="local[2]", say=lambda _: None)
    if jobs.list():
        thread = Thread(target=jobs.restore, args=["job"], kwargs={"options": options})
    else:
        thread = Thread(target=jobs.run, args=[file], kwargs={"name": "job", "options": options})
    thread.start()
    end = time.monotonic() + _PATIENCE_S
    while thread.is_alive() and time.monotonic() < end:
        if sum(text.count("\n") for text in _texts(file.parent / "out")) >= rows:
            break
        time.sleep(0.1)
    if thread.is_alive():
        jobs.savepoint("job")
    thread.join()


def _texts(directory: Path) -> list[str]:
    """Those of visible files."""
    found = [one for one in directory.rglob("*.json") if "_filesink" not in one.parts]
    return [one.read_text() for one in found if not one.name.startswith(".")]


if __name__ == "__main__":
    main()
