"""A process that calls one thing once, beside whoever else is at work."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from filesink.errors import FilesinkError
from filesink.ports import Ports, SerialRunner
from property_tests.simulation.spark.machine import Machine
from property_tests.simulation.world.clock import SimClock
from property_tests.simulation.world.world import Process


class OneCall(ABC):
    """Runs ``call`` in a process of its own; a typed error is its caller's to read, any other a finding (I8).

    Args:
        machine: where it runs.
        name: of the process.
    """

    what: ClassVar[str]

    def __init__(self, machine: Machine, name: str) -> None:
        self.process = Process(name)
        self.error: Exception | None = None
        self.machine = machine
        self._done = False
        machine.world.spawn(self.process.name, self.process, self._main)

    @property
    def ended(self) -> bool:
        """Whether this process does nothing more."""
        return self.process.dead or self._done

    @abstractmethod
    def call(self, ports: Ports) -> None:
        """Do it, as this process."""

    def _main(self) -> None:
        world = self.machine.world
        ports = Ports(clock=SimClock(world), ids=self.machine.ids, runner=SerialRunner())
        try:
            self.call(ports)
        except FilesinkError as error:
            self.error = error
        except Exception as error:  # noqa: BLE001 - this is the check
            world.fail(f"I8: {self.what} raises {type(error).__name__}: {error}")
        self._done = True
