"""A trial on the user's own store: does the promise hold there, whenever a writer dies?

begin    a path of its own below the user's: ``_torture-…``, which readers of that path skip
trouble  writers are killed and started again; an observer lists all the while
peace    each is started once more, writes a new batch at least and ends its input
verdict  what the observer sees is what was written, ``fsck`` finds nothing, nothing hidden is left
clean    everything of the trial goes, unless the verdict is bad: then it stays as evidence
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final

from filesink.errors import FilesinkError, StorageError
from filesink.naming import join
from filesink.operations.fsck.check import fsck
from filesink.operations.torture.observer import Observer
from filesink.operations.torture.victims import Victim
from filesink.ports import Clock, Ids
from filesink.storage.api import Kind, Store
from filesink.storage.base_path import spelling
from filesink.storage.open import open_store

#: Told of seconds that are over, all seconds, and kills so far.
Progress = Callable[[int, int, int], object]
_PAUSE: Final = 0.2  # seconds between two looks
_MOMENTS: Final = 60  # of the chart
_PATIENCE: Final = 120  # seconds, until the time of a trial begins in any case


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """How far a trial was, ``seconds`` after its beginning."""

    seconds: int
    kills: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TortureReport:
    """What a trial has shown.

    Attributes:
        path: of the trial.
        seconds: how long writers were killed.
        writers: how many there were.
        starts, kills: of their processes.
        killed_while: how many were killed at which step.
        epochs: batches that were written.
        rows, files, bytes: that the observer has read.
        looks: how often it has listed everything.
        violations: what it has seen and must not be; at most 20.
        findings: what ``fsck`` has found that is more than a note.
        errors: with which writers have ended by themselves: of a store that does not answer, say.
        unfinished: writers that could not be started once more when nobody killed any more.
        moments: how far it was, over time.
        is_clean: whether everything of the trial is removed.
    """

    path: str
    seconds: int
    writers: int
    starts: int
    kills: int
    killed_while: Mapping[str, int]
    epochs: int
    rows: int
    files: int
    bytes: int
    looks: int
    violations: Sequence[str]
    findings: Sequence[str]
    errors: Sequence[str]
    unfinished: int
    moments: Sequence[Moment]
    is_clean: bool

    @property
    def is_good(self) -> bool:
        """Whether the promise held: nothing lost, nothing twice, nothing half, and it went on by itself."""
        return not (self.violations or self.findings or self.unfinished) and self.epochs > 0


@dataclass
class Torture:
    """One trial.

    Attributes:
        path: of the user; the trial has one of its own below it.
        options: of the store.
        seconds: how long writers are killed.
        writers: how many at a time.
    """

    path: str
    seconds: int
    clock: Clock
    ids: Ids
    writers: int = 2
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def run(self, progress: Progress = lambda _done, _all, _kills: None) -> TortureReport:
        """The whole trial. Whoever interrupts it ends its writers, and what is there stays."""
        path = f"{spelling(self.path).rstrip('/')}/_torture-{self.ids.uuid()[:8]}"
        store = open_store(path, self.options)
        store.prepare()
        observer, over = Observer(store), Event()
        victims = [
            Victim(writer=number, path=path, options=self.options, clock=self.clock, over=over)
            for number in range(self.writers)
        ]
        threads = [Thread(target=victim.run, daemon=True) for victim in victims]
        moments: list[Moment] = []
        try:
            for thread in threads:
                thread.start()
            self._trouble(observer, victims, moments, progress)
        finally:
            over.set()
            for victim, thread in zip(victims, threads, strict=True):
                victim.kill()
                thread.join()
        unfinished = sum(not victim.finish() for victim in victims)
        return self._verdict(path, observer, victims, unfinished, moments)

    def _trouble(
        self, observer: Observer, victims: Sequence[Victim], moments: list[Moment], progress: Progress
    ) -> None:
        self._wait_for(victims)
        began, every = self.clock.now_ms(), max(1, self.seconds // _MOMENTS)
        while (passed := (self.clock.now_ms() - began) // 1000) < self.seconds:
            # Read before the look: what is done by then must be seen. Those of even numbers keep parts open.
            done = {victim.writer: victim.done for victim in victims if victim.writer % 2}
            observer.look(done)
            kills = sum(victim.kills.total() for victim in victims)
            if not moments or passed >= moments[-1].seconds + every:
                moments.append(Moment(seconds=passed, kills=kills, rows=observer.rows))
            progress(passed, self.seconds, kills)
            self.clock.sleep(_PAUSE)

    def _wait_for(self, victims: Sequence[Victim]) -> None:
        """Until each writer has written a batch, or it is clear that one cannot."""
        for _ in range(_PATIENCE):
            if all(victim.done >= 0 or victim.errors for victim in victims):
                return
            self.clock.sleep(1)

    def _verdict(
        self,
        path: str,
        observer: Observer,
        victims: Sequence[Victim],
        unfinished: int,
        moments: Sequence[Moment],
    ) -> TortureReport:
        done = {victim.writer: victim.done for victim in victims}
        observer.look(done)
        observer.check_only(done)
        found = fsck(path, self.options, depth="deep")
        findings = [f"{one.code} {one.path}" for one in found.findings if one.severity != "note"]
        is_good = not (observer.violations or findings or unfinished)
        killed = sum((victim.kills for victim in victims), Counter[str]())
        return TortureReport(
            path=path,
            seconds=self.seconds,
            writers=len(victims),
            starts=sum(victim.starts for victim in victims),
            kills=killed.total(),
            killed_while=dict(sorted(killed.items())),
            epochs=sum(victim.done + 1 for victim in victims),
            rows=observer.rows,
            files=observer.files,
            bytes=observer.bytes,
            looks=observer.looks,
            violations=tuple(observer.violations),
            findings=tuple(findings),
            errors=tuple(error for victim in victims for error in victim.errors),
            unfinished=unfinished,
            moments=tuple(moments),
            is_clean=is_good and remove_all(observer.store, path),
        )


def remove_all(store: Store, path: str) -> bool:
    """Remove every file below a path that is ours alone, and its directories; whether nothing is left."""
    try:
        _remove_below(store, "", path)
        return not any(store.list(""))
    except FilesinkError:
        return False


def _remove_below(store: Store, directory: str, path: str) -> None:
    for entry in store.list(directory):
        below = join(directory, entry.name)
        if entry.kind is Kind.DIRECTORY:
            _remove_below(store, below, path)
        else:
            store.delete(below)
    _remove_directory(store, directory, path)


def _remove_directory(store: Store, directory: str, path: str) -> None:
    """Object stores have none."""
    try:
        if "://" not in path:
            Path(path, directory).rmdir()
        elif directory:
            store.delete(directory)
    except (OSError, StorageError):  # an empty directory does no harm
        return
