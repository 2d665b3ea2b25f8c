"""Questions for the end of a history: replays, a disk that is not shared, files that somebody spoils.

Each is asked of a sink at peace, with its own driver process, and has one right answer.
"""

from __future__ import annotations

import errno
from random import Random
from typing import TYPE_CHECKING

from filesink.errors import (
    CheckpointMismatchError,
    CommitConflictError,
    ConfigError,
    FilesinkError,
    ReplayMismatchError,
    StagedDataLost,
)
from property_tests.simulation import another_query, away, forbidden, lost_files, tampering
from property_tests.simulation.bucket import DAY_MS, Bucket
from property_tests.simulation.disk import Disk
from property_tests.simulation.faults import Fault, Mode
from property_tests.simulation.reading import Record, all_files
from property_tests.simulation.workload import rows_in_segment
from property_tests.simulation.world import Plan

if TYPE_CHECKING:
    from property_tests.simulation.history import History

Picture = dict[str, tuple[int, int, bytes]]


def ask(history: History) -> None:
    """One of the questions, or none."""
    which = history.random.random()
    if which < 0.4:
        replays(history)
    elif which < 0.5:
        if history.machine.bucket is None:
            not_shared(history)
        else:
            expired(history, history.machine.bucket)
    elif which < 0.7:
        spoiled(history)
    elif which < 0.8 and history.overwrites.processes:
        history.overwrites.edited()
    elif 0.8 <= which < 0.9:
        another_query.comes(history)
    elif which >= 0.9 and history.machine.bucket is None and history.sink.publishing is None:
        away.goes(history)


def ask_more(history: History) -> None:
    """Of some whose files are all as they were: by a source of chance of its own."""
    which = Random(f"more {history.world.operations}").random()
    if history.machine.spoiled:
        return
    if which < 0.2:
        tampering.meets(history)
    elif which < 0.4 and history.overwrites.processes:
        forbidden.comes(history)


def replays(history: History) -> None:
    """Replays of the same rows, of other rows, of rows from other offsets (I9, I14)."""
    last, checkpoint = len(history.source.batches) - 1, history.checkpoint
    before = picture(history)
    fingerprint, rows = checkpoint.offsets[last]
    error = _replay(history, last)
    if error is not None or picture(history) != before:
        history.world.fail(f"I9: a replay of batch {last} was not a no-op: {error}")
    history.source.buckets["no-0000"] = ""
    checkpoint.offsets[last] = (fingerprint, [*rows, "no-0000"])
    expect(history, _replay(history, last), ReplayMismatchError)
    checkpoint.offsets[last] = (f"{fingerprint}'", rows)
    expect(history, _replay(history, last), CheckpointMismatchError)
    checkpoint.offsets[last] = (fingerprint, rows)
    if picture(history) != before:
        history.world.fail("I14: a refused replay has changed something")


def not_shared(history: History) -> None:
    """Workers write to a disk of their own: nothing may be decided."""
    before = dict(history.observer.visible)
    history.machine.spoiled = True
    history.machine.workers_disk = Disk()
    history.one_more_batch("98")
    error = _run(history)
    history.machine.workers_disk = None
    expect(history, error, StagedDataLost)
    if history.observer.visible != before:
        history.world.fail("I8: files were published that the driver has never seen")


def expired(history: History, bucket: Bucket) -> None:
    """A rule that aborts uploads too soon is refused; and an epoch waits for longer than any rule allows."""
    bucket.life_days = 1
    expect(history, _run(history), ConfigError)
    bucket.life_days = 7
    plan = DiesWhenDecided(history)
    history.world.plan = plan
    history.machine.spoiled = True
    history.one_more_batch("96")
    _run(history)
    history.world.plan = None
    if plan.record is None:
        return
    visible = dict(history.observer.visible)
    history.world.now_ms += (bucket.life_days + 1) * DAY_MS
    expect(history, _run(history), StagedDataLost)
    if history.observer.visible != visible:
        history.world.fail("I8: files of an epoch were published although others of it are lost")


class DiesWhenDecided(Plan):
    """The driver dies as soon as it has decided an epoch that publishes something."""

    def __init__(self, history: History) -> None:
        self._chain = history.observer.chains["uid-s"]
        self._after = self._chain.newest_slot()
        self.record: Record | None = None

    def fault(self, operation: str, path: str, number: int) -> Fault | None:
        """See ``Plan.fault``."""
        del operation, path, number
        newest = self._chain.newest()
        if self.record is None and newest is not None and newest.slot > self._after and newest.pending:
            self.record = newest
            return Fault(Mode.CRASH_BEFORE)
        return None


def spoiled(history: History) -> None:
    """Somebody removes a decided file, or puts another under its final name, or both."""
    ways = [("hidden",), ("final",), ("hidden", "final")]
    if history.machine.bucket is not None:
        ways.append(("part",))
    plan = Spoiler(history, history.random.choice(ways))
    history.world.plan = plan
    history.machine.spoiled = True
    history.one_more_batch("97")
    before = {*history.observer.rows, *history.source.batches[-1]}
    error = _run(history)
    history.world.plan = None
    if plan.record is None:
        return
    if not isinstance(error, StagedDataLost | CommitConflictError):
        history.world.fail(f"I8: a decided file was spoiled and the driver says {error}")
    chain = history.observer.chains["uid-s"]
    if plan.record.slot in chain.complete:
        history.world.fail("I8: an epoch whose file was spoiled is complete")
    history.observer.look_at_all()
    # The metastore's own checks follow what the observer sees, who will look away.
    if plan.lost and isinstance(error, StagedDataLost) and history.sink.publishing is None:
        lost_files.decide(history, plan.lost, before, replayed=plan.replayed)


class Spoiler(Plan):
    """Spoils one file of the next record that publishes something, before it is published.

    In half of all histories it cannot be published until then, while others of the epoch are.
    """

    def __init__(self, history: History, what: tuple[str, ...]) -> None:
        self._history = history
        self._chain = history.observer.chains["uid-s"]
        self._after = self._chain.newest_slot()
        self._what = what
        self._patience = history.random.randrange(12)  # calls between the record and the crime
        special = Random(f"held up {history.world.operations}")
        self._held_up = special.random() < 0.5
        self._slow = special.random() < 0.5 and history.machine.bucket is None
        if self._held_up:
            self._patience *= 4
        self.record: Record | None = None
        self.lost: set[str] = set()  # rows whose bytes are gone
        self.replayed = False  # whether they are those of a batch that comes again

    def fault(self, operation: str, path: str, number: int) -> Fault | None:
        """See ``Plan.fault``; but for a link, nothing fails, and something is not what it was."""
        del number
        newest = self._chain.newest()
        if self.record is None and newest is not None and newest.slot > self._after and newest.pending:
            self._patience -= 1
            target, entry = next(iter(newest.pending.items()))
            if self._patience < 0 and target not in self._history.observer.visible:
                self.record = newest
                self._spoil(target, entry)
            elif self._held_up and (operation, path) == ("link", target):
                return Fault(Mode.ERROR, errno.EIO)
            elif self._held_up and self._slow and operation == "link" and path in newest.pending:
                return Fault(Mode.LATE, errno.ETIMEDOUT, delay=300)
        return None

    def _spoil(self, target: str, entry: dict[str, dict[str, str | int]]) -> None:
        disk, observer = self._history.world.disk, self._history.observer
        if "hidden" in self._what and self.record is not None:
            self.lost = set(rows_in_segment(observer.staged_bytes(entry) or b""))
            self.replayed = self.record.cause["kind"] == "micro-batch" and self.lost <= set(
                self._history.source.batches[-1]
            )
        bucket = self._history.machine.bucket
        if "final" in self._what:  # first, so that it does not take the number of the hidden file
            content = b"x" * int(entry["staged"]["size"])
            self._occupy(target, content)
            observer.foreign[target] = content
        if "hidden" in self._what and bucket is not None and entry["staged"]["kind"] == "upload":
            del bucket.uploads[str(entry["staged"]["upload_id"])]
        elif "part" in self._what and bucket is not None and entry["staged"]["kind"] == "upload":
            bucket.uploads[str(entry["staged"]["upload_id"])].parts[1] = ("another", b"x")
        elif "hidden" in self._what:
            disk.unlink(str(entry["staged"]["path"]))
        disk.changed.clear()
        observer.look_at_all()

    def _occupy(self, target: str, content: bytes) -> None:
        """Somebody else's file under the final name."""
        disk, bucket = self._history.world.disk, self._history.machine.bucket
        if bucket is not None:
            bucket.place(target, content, "another", None)
            return
        handle = disk.create(target, None, 1)
        disk.write(handle, content, 1)
        disk.fsync(handle)
        disk.close(handle)
        disk.fsync_directory(target.rpartition("/")[0])


def picture(history: History) -> Picture:
    """Every file with its number, time and bytes; a start may remove old probes."""
    files = all_files(history.world.disk.root)
    return {
        name: (inode.number, inode.mtime_ns, bytes(inode.data))
        for name, inode in files.items()
        if ".probe." not in name
    }


def _replay(history: History, batch: int) -> Exception | None:
    history.checkpoint.commits.discard(batch)
    error = _run(history)
    history.checkpoint.commits.add(batch)
    return error


def _run(history: History) -> Exception | None:
    driver = history.start()
    history.until(lambda: driver.ended)
    history.end_process(driver, workers=True)
    return driver.error


def expect(history: History, error: Exception | None, kind: type[FilesinkError]) -> None:
    """Fail unless ``error`` is of ``kind``."""
    if not isinstance(error, kind):
        history.world.fail(f"I14: {kind.__name__} was due, and there was {type(error).__name__}: {error}")
