"""Real processes, a real file system, SIGKILL at each call: the simulation's claims, once more for real."""

from __future__ import annotations

import gc
import os
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from filesink.commit.epoch import EpochLoop
from filesink.commit.replay import EpochOptions
from filesink.errors import ConfigError
from filesink.file_sink.tiers import FileTiers
from filesink.ledger.identity import batch_write
from filesink.ledger.record import MicroBatch
from filesink.operations.maintenance import Maintenance
from filesink.ports import Losers, Ports, SerialRunner
from filesink.save_mode import SaveMode
from filesink.storage.address import StoreAddress
from filesink.storage.local.posix import PosixFs
from filesink.storage.local.store import LocalStore
from filesink.system import SystemClock, SystemIds
from property_tests.simulation.workload import SCHEMA, Shape, plan_of, rows_in

BATCHES = [[f"{batch:02d}-{n:04d}" for n in range(6)] for batch in range(4)]
#: A change tries a kill at some calls only, a night at each of them.
EVERY = pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.nightly)])
STEPS = {"mkdir", "create_exclusive", "write", "copy", "fsync", "close", "link", "unlink", "fsync_directory"}


class KillingFs(PosixFs):
    """Kills its own process before the changing call with a given number; 0 for never."""

    def __init__(self, base: str, deadline: list[int]) -> None:
        super().__init__(base)
        self._deadline = deadline

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name in STEPS:
            self._deadline[0] -= 1
            if self._deadline[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return found


class Job:
    """A batch in two partitions, run in this process; implements ``WriteJob``."""

    time_zone = "UTC"
    offsets = ""
    schema = SCHEMA

    def __init__(self, rows: list[str], run_id: str) -> None:
        self._rows = rows
        self.run_id = run_id

    def write(self, task: Callable[[int, int, Iterable[pa.RecordBatch]], bytes]) -> list[bytes]:
        return [task(subtask, 0, [self._batch(self._rows[subtask::2])]) for subtask in range(2)]

    def count_rows(self) -> int:
        return len(self._rows)

    def digest(self) -> str:
        """See ``WriteJob.digest``."""
        return ""

    def losers(self) -> Losers:
        return Losers.NONE

    def is_wanted(self) -> bool:
        return True

    def bucket_of(self, row: str) -> str:
        return "a" if int(row[-1]) % 2 else "b/c"

    def _batch(self, rows: list[str]) -> pa.RecordBatch:
        buckets = [self.bucket_of(row) for row in rows]
        return pa.RecordBatch.from_arrays([pa.array(buckets), pa.array(rows)], schema=SCHEMA)


def killing_sink(base: Path, deadline: int, shape: Shape) -> FileTiers:
    """A sink whose process dies before its n-th change."""
    countdown = [deadline]
    return FileTiers(
        address=lambda: LocalStore(
            KillingFs(str(base / "out"), countdown), runner=SerialRunner(), ids=SystemIds()
        ),
        plan=plan_of(shape),
        uid="s",
    )


def run_query(base: Path, batches: list[list[str]], *, deadline: int = 0) -> None:
    """The query from its checkpoint to its end, as one driver process would."""
    sink = killing_sink(base, deadline, Shape())
    sink.prepare(SCHEMA)
    ports = Ports(clock=SystemClock(), ids=SystemIds(), runner=SerialRunner())
    loop = EpochLoop(sink, sink.open_ledger("uid-s"), ports=ports, options=EpochOptions())
    for number, rows in enumerate(batches):
        done = base / f"commit-{number}"
        if not done.exists():
            cause = MicroBatch(query_id="q", batch_id=number, fingerprint=str(number))
            loop.run(cause, Job(rows, f"run-{os.getpid()}"))
            done.touch()
    loop.finish()


def in_a_process(body: Callable[[], None]) -> int:
    """Fork, run ``body``, and return the signal that ended it; 0 if it came to its end."""
    child = os.fork()
    if child == 0:
        # What other tests have left is not collected here: a client's threads are not in this process,
        # and its end would wait for them.
        gc.freeze()
        status = 1
        try:
            body()
            status = 0
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def visible_rows(base: Path) -> Counter[str]:
    """What a reader sees: every file whose path has no name that begins with a dot or an underscore."""
    files = [path for path in base.rglob("*") if path.is_file()]
    seen = [path for path in files if not any(part[0] in "._" for part in path.relative_to(base).parts)]
    return Counter(row for path in seen for row in rows_in(path.read_bytes(), path.name))


def left_over(base: Path) -> list[str]:
    return [str(path) for path in base.rglob(".*") if ".probe." not in path.name]


@pytest.mark.slow
@EVERY
def test_a_kill_at_any_call_loses_and_doubles_nothing(tmp_path: Path, every: int) -> None:
    """A process killed before its n-th change and started again: each row once, and no garbage."""
    for deadline in range(1, 10_000, every):
        if not survives_a_kill(tmp_path / str(deadline), deadline):
            break
    assert deadline > 60


def survives_a_kill(base: Path, deadline: int) -> bool:
    """One kill and one restart; false if the query came to its end before."""
    base.mkdir()
    first = in_a_process(lambda: run_query(base, BATCHES[:3], deadline=deadline))
    killed = first == signal.SIGKILL
    expected = Counter(row for rows in BATCHES for row in rows)
    assert visible_rows(base / "out") <= expected
    in_a_process(lambda: run_query(base, BATCHES))  # one more: garbage lives until a good epoch
    assert visible_rows(base / "out") == expected
    assert left_over(base / "out") == []
    return killed


def overwrite(base: Path, mode: SaveMode, txn_id: str, rows: list[str], *, deadline: int = 0) -> None:
    """A batch job that replaces files."""
    sink = killing_sink(base, deadline, Shape())
    sink.prepare(SCHEMA)
    sink_id, cause = batch_write(mode, sink.uid, txn_id, SystemIds())
    ports = Ports(clock=SystemClock(), ids=SystemIds(), runner=SerialRunner())
    EpochLoop(sink, sink.open_ledger(sink_id), ports=ports, options=EpochOptions()).run(cause, Job(rows, ""))


def sweep(base_path: Path) -> None:
    """By hand, as if it were long ago."""
    sink = FileTiers(address=StoreAddress(base_path=str(base_path)), plan=plan_of(Shape()))
    maintenance = Maintenance(sink, clock=SystemClock(), ids=SystemIds())
    time.sleep(0.002)  # times are in milliseconds
    maintenance.sweep(0)


@pytest.mark.slow
@EVERY
@pytest.mark.parametrize("mode", [SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS])
def test_an_overwrite_killed_at_any_call_is_never_neither(tmp_path: Path, mode: SaveMode, every: int) -> None:
    """Killed before its n-th change: all old rows are there, or all new ones; repeated: only the new."""
    old, new = (Counter(rows) for rows in BATCHES[:2])
    for deadline in range(1, 10_000, every):
        base = tmp_path / str(deadline)
        base.mkdir()
        overwrite(base, SaveMode.OVERWRITE, "old", BATCHES[0])
        killed = in_a_process(lambda: overwrite(base, mode, "new", BATCHES[1], deadline=deadline))  # noqa: B023
        assert visible_rows(base / "out") >= old or visible_rows(base / "out") >= new
        in_a_process(lambda: overwrite(base, mode, "new", BATCHES[1]))  # noqa: B023
        assert visible_rows(base / "out") == new
        in_a_process(lambda: overwrite(base, mode, "newer", BATCHES[2]))  # noqa: B023
        assert visible_rows(base / "out") == Counter(BATCHES[2])
        sweep(base / "out")  # what a write has left that was not decided bears a tag that nobody else has
        assert left_over(base / "out") == []
        if killed != signal.SIGKILL:
            break
    assert deadline > 20


@pytest.mark.slow
@EVERY
def test_a_first_write_killed_at_any_call_is_not_taken_for_old_data(tmp_path: Path, every: int) -> None:
    """``error_if_data_exists``, killed before its n-th change: repeated, its rows once; others refused."""
    mode, rows = SaveMode.ERROR_IF_DATA_EXISTS, Counter(BATCHES[0])
    for deadline in range(1, 10_000, every):
        base = tmp_path / str(deadline)
        base.mkdir()
        killed = in_a_process(lambda: overwrite(base, mode, "first", BATCHES[0], deadline=deadline))  # noqa: B023
        assert visible_rows(base / "out") <= rows
        in_a_process(lambda: overwrite(base, mode, "first", BATCHES[0]))  # noqa: B023
        assert visible_rows(base / "out") == rows
        with pytest.raises(ConfigError) as caught:
            overwrite(base, mode, "second", BATCHES[1])
        assert caught.value.code == "DATA_EXISTS"
        assert visible_rows(base / "out") == rows
        if killed != signal.SIGKILL:
            break
    assert deadline > 20
