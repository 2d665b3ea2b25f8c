"""Questions for the end of a history: replays, a disk that is not shared, files that somebody spoils.

Each is asked of a sink at peace, with its own driver process, and has one right answer.
"""

from __future__ import annotations

import errno
from random import Random

from filesink.errors import (
    CheckpointMismatchError,
    CommitConflictError,
    ConfigError,
    ReplayMismatchError,
    StagedDataLost,
)
from property_tests.simulation.endings import another_query, away, lost_files, tampering
from property_tests.simulation.observer.reading import Record
from property_tests.simulation.others import forbidden
from property_tests.simulation.others.overwriter import Overwrites
from property_tests.simulation.picture import expect, picture
from property_tests.simulation.stage import Stage
from property_tests.simulation.workload import rows_in_segment
from property_tests.simulation.world.bucket import DAY_MS, Bucket
from property_tests.simulation.world.disk import Disk
from property_tests.simulation.world.faults import Fault, Mode
from property_tests.simulation.world.world import Plan


def ask(stage: Stage, overwrites: Overwrites) -> None:
    """One of the questions, or none."""
    which = stage.random.random()
    if which < 0.4:
        replays(stage)
    elif which < 0.5:
        if stage.machine.bucket is None:
            not_shared(stage)
        else:
            expired(stage, stage.machine.bucket)
    elif which < 0.7:
        spoiled(stage)
    elif which < 0.8 and overwrites.processes:
        overwrites.edited()
    elif 0.8 <= which < 0.9:
        if stage.world.operations % 2:
            another_query.comes(stage)
        else:
            another_query.replaces(stage)
    elif which >= 0.9 and stage.machine.bucket is None and stage.sink.publishing is None:
        away.goes(stage)


def ask_more(stage: Stage, overwrites: Overwrites) -> None:
    """Of some whose files are all as they were: by a source of chance of its own."""
    which = Random(f"more {stage.world.operations}").random()
    if stage.machine.spoiled:
        return
    if which < 0.2:
        tampering.meets(stage, overwrites)
    elif which < 0.4 and overwrites.processes:
        forbidden.comes(stage, overwrites)


def replays(stage: Stage) -> None:
    """Replays of the same rows, of other rows, of rows from other offsets (I9, I14)."""
    last, checkpoint = len(stage.source.batches) - 1, stage.checkpoint
    before = picture(stage)
    fingerprint, rows = checkpoint.offsets[last]
    error = _replay(stage, last)
    if error is not None or picture(stage) != before:
        stage.world.fail(f"I9: a replay of batch {last} was not a no-op: {error}")
    stage.source.buckets["no-0000"] = ""
    checkpoint.offsets[last] = (fingerprint, [*rows, "no-0000"])
    expect(stage, _replay(stage, last), ReplayMismatchError)
    checkpoint.offsets[last] = (f"{fingerprint}'", rows)
    expect(stage, _replay(stage, last), CheckpointMismatchError)
    checkpoint.offsets[last] = (fingerprint, rows)
    if picture(stage) != before:
        stage.world.fail("I14: a refused replay has changed something")


def not_shared(stage: Stage) -> None:
    """Workers write to a disk of their own: nothing may be decided."""
    before = dict(stage.observer.visible)
    stage.machine.spoiled = True
    stage.machine.workers_disk = Disk()
    stage.one_more_batch("98")
    error = stage.run_query()
    stage.machine.workers_disk = None
    expect(stage, error, StagedDataLost)
    if stage.observer.visible != before:
        stage.world.fail("I8: files were published that the driver has never seen")


def expired(stage: Stage, bucket: Bucket) -> None:
    """A rule that aborts uploads too soon is refused; and an epoch waits for longer than any rule allows."""
    bucket.life_days = 1
    expect(stage, stage.run_query(), ConfigError)
    bucket.life_days = 7
    plan = DiesWhenDecided(stage)
    stage.world.plan = plan
    stage.machine.spoiled = True
    stage.one_more_batch("96")
    stage.run_query()
    stage.world.plan = None
    if plan.record is None:
        return
    visible = dict(stage.observer.visible)
    stage.world.now_ms += (bucket.life_days + 1) * DAY_MS
    expect(stage, stage.run_query(), StagedDataLost)
    if stage.observer.visible != visible:
        stage.world.fail("I8: files of an epoch were published although others of it are lost")


class DiesWhenDecided(Plan):
    """The driver dies as soon as it has decided an epoch that publishes something."""

    def __init__(self, stage: Stage) -> None:
        self._chain = stage.observer.chains["uid-s"]
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


def spoiled(stage: Stage) -> None:
    """Somebody removes a decided file, or puts another under its final name, or both."""
    ways = [("hidden",), ("final",), ("hidden", "final")]
    if stage.machine.bucket is not None:
        ways.append(("part",))
    plan = Spoiler(stage, stage.random.choice(ways))
    stage.world.plan = plan
    stage.machine.spoiled = True
    stage.one_more_batch("97")
    before = {*stage.observer.rows, *stage.source.batches[-1]}
    error = stage.run_query()
    stage.world.plan = None
    if plan.record is None:
        return
    if not isinstance(error, StagedDataLost | CommitConflictError):
        stage.world.fail(f"I8: a decided file was spoiled and the driver says {error}")
    chain = stage.observer.chains["uid-s"]
    if plan.record.slot in chain.complete:
        stage.world.fail("I8: an epoch whose file was spoiled is complete")
    stage.observer.look_at_all()
    # The metastore's own checks follow what the observer sees, who will look away.
    if plan.lost and isinstance(error, StagedDataLost) and stage.sink.publishing is None:
        lost_files.decide(stage, plan.lost, before, replayed=plan.replayed)


class Spoiler(Plan):
    """Spoils one file of the next record that publishes something, before it is published.

    In half of all histories it cannot be published until then, while others of the epoch are.
    """

    def __init__(self, stage: Stage, what: tuple[str, ...]) -> None:
        self._stage = stage
        self._chain = stage.observer.chains["uid-s"]
        self._after = self._chain.newest_slot()
        self._what = what
        self._patience = stage.random.randrange(12)  # calls between the record and the crime
        special = Random(f"held up {stage.world.operations}")
        self._held_up = special.random() < 0.5
        self._slow = special.random() < 0.5 and stage.machine.bucket is None
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
            if self._patience < 0 and target not in self._stage.observer.visible:
                self.record = newest
                self._spoil(target, entry)
            elif self._held_up and (operation, path) == ("link", target):
                return Fault(Mode.ERROR, errno.EIO)
            elif self._held_up and self._slow and operation == "link" and path in newest.pending:
                return Fault(Mode.LATE, errno.ETIMEDOUT, delay=300)
        return None

    def _spoil(self, target: str, entry: dict[str, dict[str, str | int]]) -> None:
        disk, observer = self._stage.world.disk, self._stage.observer
        if "hidden" in self._what and self.record is not None:
            self.lost = set(rows_in_segment(observer.staged_bytes(entry) or b""))
            self.replayed = self.record.cause["kind"] == "micro-batch" and self.lost <= set(
                self._stage.source.batches[-1]
            )
        bucket = self._stage.machine.bucket
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
        disk, bucket = self._stage.world.disk, self._stage.machine.bucket
        if bucket is not None:
            bucket.place(target, content, "another", None)
            return
        handle = disk.create(target, None, 1)
        disk.write(handle, content, 1)
        disk.fsync(handle)
        disk.close(handle)
        disk.fsync_directory(target.rpartition("/")[0])


def _replay(stage: Stage, batch: int) -> Exception | None:
    stage.checkpoint.commits.discard(batch)
    error = stage.run_query()
    stage.checkpoint.commits.add(batch)
    return error
