"""Batch jobs while a query goes on, in any mode; most of them replace files.

Each write has a ``txn_id`` and is started again until it has succeeded, as a scheduler would.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, replace
from random import Random

from filesink.commit.epoch import EpochLoop
from filesink.commit.outcome import Outcome
from filesink.commit.replay import EpochOptions
from filesink.errors import FilesinkError
from filesink.file_sink.tiers import FileTiers
from filesink.ledger.identity import batch_write
from filesink.parts.committables import Committable
from filesink.ports import Ports, SerialRunner
from filesink.save_mode import SaveMode
from property_tests.simulation.observer.view import EXCLUSIVE
from property_tests.simulation.picture import picture
from property_tests.simulation.spark.jobs import SimJob, SparkError
from property_tests.simulation.spark.machine import Machine
from property_tests.simulation.stage import Stage
from property_tests.simulation.workload import SCHEMA, Source
from property_tests.simulation.world.clock import SimClock
from property_tests.simulation.world.listing import all_files
from property_tests.simulation.world.nodes import Inode
from property_tests.simulation.world.world import Plan, Process

_UNFINISHED = re.compile(r"(?P<directory>_filesink/_txns/[^/]+/)\.(?P<name>[0-9]+\.[a-z]+)\.put\.")
_SWEPT = 0.2  # of all times: somebody sweeps meanwhile
_BEHIND_MS = 1000  # the clock of the store, behind that of drivers, at most
_MODES = (SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS, SaveMode.OVERWRITE_PARTITIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One batch of new rows and what it replaces."""

    txn_id: str
    mode: SaveMode
    rows: list[str]


class Overwriter:
    """One process that carries out one write; the driver of a ``SimJob``."""

    def __init__(self, machine: Machine, sink: FileTiers, *, source: Source, write: Write, keep: int) -> None:
        self.machine = machine
        self.source = source
        self.process = Process(f"overwriter-{write.txn_id}")
        self.error: Exception | None = None
        self.outcome: Outcome[Committable] | None = None
        self._sink = sink
        self._write = write
        self._keep = keep
        machine.world.spawn(self.process.name, self.process, self._main)

    @property
    def ended(self) -> bool:
        """Whether this process does nothing more."""
        return self.process.dead or self.error is not None or self.outcome is not None

    def require_jvm(self) -> None:
        """See ``jobs.Owner``; this one lives as long as its process."""

    def _main(self) -> None:
        try:
            self.outcome = self._run()
        except (FilesinkError, SparkError) as error:
            self.error = error
        except Exception as error:  # noqa: BLE001 - this is the check
            self.machine.world.fail(f"I8: an overwrite raises {type(error).__name__}: {error}")

    def _run(self) -> Outcome[Committable]:
        machine, write = self.machine, self._write
        machine.observer.replacements.begin(self.process)
        self._sink.prepare(SCHEMA)
        sink_id, cause = batch_write(write.mode, self._sink.uid, write.txn_id, machine.ids)
        ports = Ports(clock=SimClock(machine.world), ids=machine.ids, runner=SerialRunner())
        options = EpochOptions(keep_batches=self._keep)
        loop = EpochLoop(self._sink, self._sink.open_ledger(sink_id), ports=ports, options=options)
        outcome = loop.run(cause, SimJob(self, write.rows, run_id=""))
        if write.mode is SaveMode.APPEND:
            machine.observer.check_success({"sink": sink_id, "slot": outcome.slot}, write.rows)
        else:
            machine.observer.replacements.check_success(write.txn_id, write.rows)
        return outcome


class Overwrites:
    """All batch writes of a history.

    Args:
        stage: whose; its observer learns of their rows.
    """

    def __init__(self, stage: Stage) -> None:
        self.source = Source(stage.scenario.shape)
        self.processes: list[Overwriter] = []
        self.grace_ms = stage.scenario.grace_ms
        self._stage = stage
        self._writes: list[Write] = []
        stage.observer.sources.append(self.source)

    def start_one(self) -> Overwriter:
        """A new write that replaces files, beside whatever runs."""
        return self.run(self.new_write())

    def new_write(self, mode: SaveMode | None = None) -> Write:
        """New rows for a write that nobody has begun; in any mode that replaces files if none is given."""
        random, number = self._stage.random, len(self._writes)
        name = f"{'wxyzuv'[number // 10]}{number % 10}"  # two characters that no other batch has
        self.source.add_batch(name, self._stage.scenario.shape.rows, random)
        rows = self.source.batches[-1]
        self._writes.append(Write(txn_id=f"txn{number}", mode=mode or random.choice(_MODES), rows=rows))
        return self._writes[-1]

    def beside(self) -> None:
        """One or two writes while the query runs; they may outlive it."""
        stage = self._stage
        started = [self.start_one()]
        if stage.random.random() < 0.3:
            started.append(self.start_one())
        if Random(f"sweeper {stage.world.operations}").random() < _SWEPT:
            stage.operate("sweep")
        if stage.machine.chance(stage.machine.trouble.overwrites_end):
            stage.until(lambda: all(process.ended for process in started))

    def repeat_all(self) -> None:
        """In peace every write succeeds, and is done once (I7, I9)."""
        if not self._writes:
            return
        writes = list(self._writes)
        self._stage.random.shuffle(writes)
        for write in writes:
            self._finish(self.run(write))
        self._stage.metastore.carry_out_late(sys.maxsize)
        self._end_graces()
        self._finish(self.start_one())  # removes what those before it have left
        if any(write.mode is SaveMode.APPEND for write in writes):
            self._finish(self.run(self.new_write(SaveMode.APPEND)))  # sees to what is stuck
        self._check_statistics()
        before = picture(self._stage)
        again = self._finish(self.run(self._stage.random.choice(writes)))
        if not again.replayed or picture(self._stage) != before:
            self._stage.world.fail("I9: a write with a txn_id was repeated")
        files = all_files(self._stage.world.disk.root)
        if any(self._is_late(files, path) for path in files):
            self._stage.operate("sweep")
            self._stage.until(lambda: not self._stage.world._actors)

    def _end_graces(self) -> None:
        """From now on there are none, and those that were are over; maybe somebody else comes first."""
        stage, grace_ms = self._stage, self.grace_ms
        if not grace_ms:
            return
        self.grace_ms = 0
        stage.world.now_ms += grace_ms + _BEHIND_MS
        if Random(f"graces {stage.world.operations}").random() < 0.5:
            stage.operate("recover")
            here = sorted(stage.observer.graces.until.keys() & stage.observer.visible.keys())
            if here and stage.observer.graces.clock_is_sound:
                stage.world.fail(f"I20: {here[0]} is still there")

    def _check_statistics(self) -> None:
        record = self._stage.observer.chains[EXCLUSIVE].newest()
        if record is not None and self._stage.sink.publishing is not None:
            self._stage.metastore.check_statistics(record)

    def _is_late(self, files: dict[str, Inode], path: str) -> bool:
        """Whether a zombie was noting a txn_id that its successor had noted: no later epoch looks there."""
        found = _UNFINISHED.match(path)
        if found is None:
            return False
        noted = files.get(found["directory"] + found["name"])
        jumps = self._stage.scenario.trouble.clock_jumps > 0  # then times tell nothing
        return jumps or (noted is not None and noted.mtime_ns < files[path].mtime_ns)

    def succeed(self) -> Outcome[Committable]:
        """One more write that replaces files; in peace."""
        return self._finish(self.start_one())

    def edited(self) -> None:
        """Somebody replaces a file, under its own name, that is about to be removed: it stays (I15)."""
        stage = self._stage
        stage.machine.spoiled = True
        plan = stage.world.plan = Editor(stage)
        self._finish(self.start_one())
        stage.world.plan = None
        if plan.path and stage.world.disk.find(plan.path) is None:
            stage.world.fail(f"I15: {plan.path} was changed by somebody else and removed")

    def run(self, write: Write) -> Overwriter:
        """A process that is at ``write``; an earlier one may have been, too."""
        stage = self._stage
        keep = stage.scenario.shape.keep_batches
        sink = replace(stage.sink, reader_grace_ms=self.grace_ms)
        process = Overwriter(stage.machine, sink, source=self.source, write=write, keep=keep)
        self.processes.append(process)
        return process

    def _finish(self, process: Overwriter) -> Outcome[Committable]:
        self._stage.until(lambda: process.ended)
        if process.outcome is None:
            self._stage.world.fail(f"I7: without faults an overwrite fails: {process.error}")
        assert process.outcome is not None
        return process.outcome


class Editor(Plan):
    """Puts another file in the place of one that the next record replaces, before it is removed."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._done = stage.observer.chains["exclusive"].newest_slot()
        self._patience = stage.random.randrange(6)
        self.path = ""

    def fault(self, operation: str, path: str, number: int) -> None:
        """See ``Plan.fault``; nothing fails, but something is not what it was."""
        del operation, number
        newest = self._stage.observer.chains["exclusive"].newest()
        if self.path or newest is None or newest.slot <= self._done:
            return
        self._patience -= 1
        # Between the look at a file and its removal no change can be noticed; see ``delete_if_unchanged``.
        there = sorted(newest.replaced & set(self._stage.observer.visible) - {path})
        if (
            self._patience < 0
            and there
            and newest.slot not in self._stage.observer.chains["exclusive"].complete
        ):
            self._edit(there[0])

    def _edit(self, path: str) -> None:
        self.path = path
        observer, disk = self._stage.observer, self._stage.world.disk
        size = len(disk.file(path).data)
        inode = disk.file(path)
        handle = disk.create("edited", None, 1)  # first, so that it does not take the number of the old one
        disk.write(handle, b"x" * size, inode.mtime_ns)
        disk.close(handle)
        disk.unlink(path)
        disk.link("edited", path)
        disk.unlink("edited")
        disk.changed.clear()
        observer.edit(path, b"x" * size)
