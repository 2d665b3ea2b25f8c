"""What all processes of a history share, and how a process reaches its store."""

from __future__ import annotations

from dataclasses import dataclass

from filesink.ports import SerialRunner
from filesink.storage.api import Store
from filesink.storage.local.store import LocalStore
from property_tests.simulation.observer.observer import Observer
from property_tests.simulation.world.bucket import Bucket
from property_tests.simulation.world.clock import SimIds
from property_tests.simulation.world.disk import Disk
from property_tests.simulation.world.sim_fs import SimFs
from property_tests.simulation.world.sim_objects import open_sim_store
from property_tests.simulation.world.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """How likely Spark makes trouble by itself; each a probability per occasion."""

    task_fails: float = 0.0
    twin: float = 0.0
    result_lost: float = 0.0
    upkeep: float = 0.3
    jvm_dies: float = 0.0
    clock_jumps: float = 0.0
    second_driver: float = 0.0
    operator: float = 0.0
    overwrites: float = 0.0  # batch jobs that replace files
    crowds: float = 0.0  # three batch jobs at once, some of which append
    tidies: float = 0.0  # offline compaction
    operations: float = 0.0  # retention, rollback and erasure
    erases: float = 0.0  # which of these are erasures, in files of Parquet
    forbids: float = 0.0  # somebody takes the right to remove files
    overwrites_end: float = 0.7  # as does offline compaction, before the query goes on
    workers_die: float = 0.5  # with their driver


@dataclass(slots=True)
class Machine:
    """What all processes of a history share."""

    world: World
    observer: Observer
    ids: SimIds
    trouble: Trouble
    bucket: Bucket | None = None  # where files live instead of the disk
    workers_disk: Disk | None = None  # if workers do not see the driver's
    spoiled: bool = False  # whether somebody has tampered with files

    def chance(self, probability: float) -> bool:
        """Whether something of this probability happens now."""
        return probability > 0 and self.world.random.random() < probability


@dataclass(frozen=True, slots=True)
class Address:
    """Opens the store in whatever process asks for it."""

    machine: Machine

    def __call__(self) -> Store:
        """The store."""
        world, machine = self.machine.world, self.machine
        if machine.bucket is not None:
            return open_sim_store(world, machine.bucket, machine.ids)
        own = machine.workers_disk if world.current.lineage is not None else None
        fs = SimFs(world, world.current, own or world.disk)
        return LocalStore(fs, runner=SerialRunner(), ids=machine.ids)


class SimLock:
    """A lock between the threads of a simulated process; waiting lets others go on."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._taken = False

    def acquire(self, *, blocking: bool = True) -> bool:
        """See ``threading.Lock``."""
        if self._taken and not blocking:
            return False
        self._world.wait(lambda: not self._taken)
        self._taken = True
        return True

    def release(self) -> None:
        """See ``threading.Lock``."""
        self._taken = False

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()
