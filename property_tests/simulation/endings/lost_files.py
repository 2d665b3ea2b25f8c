"""An operator decides about decided files that are gone: ``recover(lost=...)``, killed and called again.

What the observer asks at every change does not hold while an epoch is taken back, so it looks away. Two
things are asked instead: that is decided when what is held again is durably copied, and complete when what
is undone is gone for good. At the end the query goes on, and a reader counts: no row is there twice, none
is missing but those whose bytes were gone, and none of these if the batch could be replayed.
"""

from __future__ import annotations

import errno
from collections import Counter
from random import Random

from filesink.errors import CommitConflictError, FilesinkError, StagedDataLost
from filesink.file_sink.report import RecoveryReport
from filesink.ledger.record import MicroBatch
from filesink.operations.maintenance import Lost, Maintenance
from property_tests.simulation.spark.jobs import SparkError
from property_tests.simulation.stage import Stage
from property_tests.simulation.workload import rows_in
from property_tests.simulation.world.clock import SimClock
from property_tests.simulation.world.faults import APPLICABLE, FILE_CALLS, Fault, Mode
from property_tests.simulation.world.listing import is_hidden, visible_files
from property_tests.simulation.world.nodes import Directory, Inode
from property_tests.simulation.world.world import Plan, Process, World

_CALLS = 60  # of a recovery, about
_NAME = "operator-lost"
_DEATHS = (Mode.CRASH_BEFORE, Mode.CRASH_AFTER, Mode.POWER_ORDERED, Mode.POWER_WEAK)


class Death(Plan):
    """The process dies at the n-th call from now on, or at the n-th removal of a file that readers saw."""

    def __init__(self, calls: int, mode: Mode, *, removals: int | None = None) -> None:
        self._left = calls if removals is None else removals
        self._any = removals is None
        self._mode = mode

    def fault(self, operation: str, path: str, number: int) -> Fault | None:
        """See ``Plan.fault``."""
        del number
        if self._any or (operation in {"unlink", "delete"} and not is_hidden(path)):
            self._left -= 1
            return Fault(self._mode) if self._left == 0 else None
        return None


class Slow(Plan):
    """The n-th call from now on fails, and is carried out when its caller has gone on; of a disk's calls."""

    def __init__(self, calls: int) -> None:
        self._left = calls

    def fault(self, operation: str, path: str, number: int) -> Fault | None:
        """See ``Plan.fault``."""
        del path, number
        if operation not in FILE_CALLS or Mode.LATE not in APPLICABLE[operation]:
            return None
        self._left -= 1
        return Fault(Mode.LATE, errno.ETIMEDOUT) if self._left == 0 else None


class Calm(Plan):
    """Nothing goes wrong any more, and what was put off is carried out in its time."""


class Operator(Maintenance):
    """Knows the checkpoint of the history, which is no directory."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage.sink, clock=SimClock(stage.world), ids=stage.machine.ids)
        self._stage = stage

    def _check_replay(self, cause: MicroBatch, checkpoint: str | None) -> None:
        del checkpoint
        known = self._stage.checkpoint
        assert cause.batch_id in known.offsets
        assert cause.batch_id not in known.commits


def decide(stage: Stage, lost: set[str], before: set[str], *, replayed: bool) -> None:
    """Recover until it succeeds, start the query again, and count; calls of a slow server may come late.

    Args:
        stage: at peace, but for a decided file of its query that is gone.
        lost: the rows of that file.
        before: the rows that readers saw before, and must see again.
        replayed: whether the epoch that named the file is a micro-batch that wrote it.
    """
    stage.observer.look_away()
    stage.world.watch = TakingBack(stage.world)
    choice = stage.random.choice((Lost.REWRITE, Lost.ACCEPT))
    found, died = _recover(stage, choice)
    error = stage.run_query() if isinstance(found, RecoveryReport) else found
    if choice is Lost.REWRITE and isinstance(error, StagedDataLost | SparkError):
        choice = Lost.ACCEPT  # a part that was open: its rows came with an earlier epoch, and stay lost
        found, died = _recover(stage, choice)
        error = stage.run_query() if isinstance(found, RecoveryReport) else found
    _check_foreign(stage)
    if isinstance(error, CommitConflictError):
        return  # somebody else's file under the name of a part that was open: it is for them to move it
    if error is not None or not isinstance(found, RecoveryReport):
        stage.world.fail(f"I7: after recover(lost={choice.value!r}) the query fails: {error}")
        return
    stage.observer.inventory.check_files()
    stage.observer.inventory.check_versions()
    shown = rows_shown(stage)
    doubled = [row for row, times in shown.items() if times > 1]
    if doubled:
        stage.world.fail(f"I2: after recover(lost={choice.value!r}) row {doubled[0]} is there twice")
    missing = before - shown.keys()
    if missing - lost or (missing and choice is Lost.REWRITE and replayed):
        stage.world.fail(f"I1: after recover(lost={choice.value!r}) {len(missing)} rows are missing")
    if not died and choice is Lost.ACCEPT and found.lost_rows != len(missing):
        stage.world.fail(f"I8: {len(missing)} rows are lost, and {found.lost_rows} are reported")


class TakingBack:
    """What the operator may remove, when; called at every change.

    A power cut may not take the copies of what is held again, and may not bring back a file of an epoch that
    is undone.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._made: list[tuple[Process, str]] = []
        self._taken: list[str] = []

    def __call__(self, process: Process, operation: str, path: str) -> None:
        """Look at what the last call has changed."""
        del operation, path
        changes, self._world.disk.changed = self._world.disk.changed, []
        for kind, name, inode in changes:
            if process.name != _NAME or not isinstance(inode, Inode):
                continue
            if name.endswith(".record") and kind != "removed":
                self._check_copies(process, name)
            elif name.endswith(".complete") and kind != "removed":
                self._check_gone(name)
            elif kind == "removed" and not is_hidden(name):
                self._taken.append(name)
            elif kind != "removed" and ".inprogress." in name:
                self._made.append((process, name))

    def _check_copies(self, process: Process, record: str) -> None:
        for name in (name for maker, name in self._made if maker is process):
            directory, unsure = self._directory(name)
            inode = directory.entries.get(name.rpartition("/")[2])
            if isinstance(inode, Inode) and (name.rpartition("/")[2] in unsure or inode.synced != inode.data):
                self._world.fail(f"I1: {record} was decided before {name} is durable")

    def _check_gone(self, complete: str) -> None:
        for name in self._taken:
            if name.rpartition("/")[2] in self._directory(name)[1]:
                self._world.fail(f"I2: {complete} was made before {name} is gone for good")

    def _directory(self, name: str) -> tuple[Directory, set[str]]:
        """The directory of a file, and the names in it of which a power cut may change something."""
        directory = self._world.disk.directory(name.rpartition("/")[0])
        return directory, {change.name for change in directory.changes}


def _recover(stage: Stage, lost: Lost) -> tuple[RecoveryReport | FilesinkError | None, bool]:
    """What came of the call that nothing happened to, and whether others died before it."""
    deaths = stage.random.choice((0, 1, 1, 2))
    for _ in range(deaths):
        mode = stage.random.choice(_DEATHS)
        special = Random(f"removals {stage.world.operations}")
        removals = special.randint(1, 2) if special.random() < 0.3 else None
        stage.world.plan = Death(stage.random.randint(1, _CALLS), mode, removals=removals)
        if stage.machine.bucket is None and special.random() < 0.3:
            stage.world.plan = Slow(special.randint(1, _CALLS // 3))
        _call(stage, lost)
    stage.world.plan = Calm()
    return _call(stage, lost), deaths > 0


def _call(stage: Stage, lost: Lost) -> RecoveryReport | FilesinkError | None:
    """One call in a process of its own; ``None`` if it died."""
    process = Process(_NAME)
    ended: list[RecoveryReport | FilesinkError] = []

    def work() -> None:
        try:
            ended.append(Operator(stage).recover(lost, "checkpoint"))
        except FilesinkError as error:
            ended.append(error)

    actor = stage.world.spawn(process.name, process, work)
    stage.until(lambda: actor.done or process.dead)
    return ended[0] if ended else None


def rows_shown(stage: Stage) -> Counter[str]:
    """What a reader counts, whatever the observer has seen."""
    files = visible_files(stage.world.disk.root)
    # What offline compaction has merged stays for its grace, which may end in a far future if clocks jump.
    others = stage.observer.foreign.keys() | stage.observer.superseded.left_out()
    ours = {name: inode for name, inode in files.items() if name not in others}
    shown: Counter[str] = Counter()
    for name, inode in ours.items():
        try:
            shown.update(rows_in(bytes(inode.data), name))
        except ValueError as error:
            stage.world.fail(f"I3: {name} is no whole file: {error}")
    return shown


def _check_foreign(stage: Stage) -> None:
    """Files of others are what they were, under names of ours, too."""
    disk, replaced = stage.world.disk, stage.observer.replaced.files
    for name in stage.observer.foreign.keys() - replaced:
        inode = disk.find(name)
        if not isinstance(inode, Inode) or bytes(inode.data) != stage.observer.foreign[name]:
            stage.world.fail(f"I5: {name}, which is not ours, is gone after recover()")
