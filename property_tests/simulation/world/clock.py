"""The clock and the ids of a simulated machine."""

from __future__ import annotations

from dataclasses import dataclass

from property_tests.simulation.world.world import World


@dataclass(frozen=True, slots=True)
class SimClock:
    """The clock of the machine; it moves only when somebody moves it, or sleeps.

    ``ahead_ms``: by how much that of this host is wrong; files are dated by the machine's.
    """

    world: World
    ahead_ms: int = 0

    def now_ms(self) -> int:
        """See ``filesink.ports.Clock``."""
        return self.world.now_ms + self.world.operations // 50 + self.ahead_ms

    def sleep(self, seconds: float) -> None:
        """See ``filesink.ports.Clock``."""
        self.world.now_ms += int(seconds * 1000)


class SimIds:
    """Version-4 UUIDs that count; never one twice in a history."""

    def __init__(self) -> None:
        self._made = 0

    def uuid(self) -> str:
        """See ``filesink.ports.Ids``."""
        self._made += 1
        return f"{self._made:08x}-5eed-4000-8000-{self._made:012x}"
