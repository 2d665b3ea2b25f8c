"""The takeover of what earlier code has left is killed at each of its steps, and called again.

Recovery and the end of input, without Spark, on the states of ``tests/golden/states``; rows are read by the
names of files alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from filesink.commit.epoch import EpochLoop
from filesink.commit.replay import EpochOptions
from filesink.file_sink.tiers import FileTiers
from filesink.ledger.directory import ledger_ids
from filesink.operations.maintenance import Lost, Maintenance
from filesink.ports import Ports, SerialRunner
from filesink.storage.api import Store
from filesink.storage.faulty import Fault, FaultyStore, Moment
from filesink.system import SystemClock, SystemIds
from tests.golden.states import reading
from tests.golden.states.frozen import FROZEN, Frozen

PORTS = Ports(clock=SystemClock(), ids=SystemIds(), runner=SerialRunner())
#: What changes something on disk.
STEPS = frozenset({"publish", "put_if_absent", "delete", "discard", "release", "concat", "promote", "close"})


class Killed(BaseException):
    """The end of the process; nothing catches it."""


@dataclass(kw_only=True)
class Kill:
    """Ends the process at the step with this number; ``None`` lets it live. Counts the steps."""

    at: int | None = None
    moment: Moment = Moment.BEFORE
    steps: list[str] = field(default_factory=list)

    def plan(self, operation: str, path: str) -> Fault | None:
        """As ``FaultyStore`` asks for it."""
        if operation not in STEPS:
            return None
        self.steps.append(f"{operation} {path}")
        return Fault(moment=self.moment, error=Killed()) if len(self.steps) - 1 == self.at else None


@dataclass(frozen=True)
class Fragile:
    """Opens the store of a sink, with a kill in it."""

    address: Callable[[], Store]
    kill: Kill

    def __call__(self) -> Store:
        """See ``FileTiers.address``."""
        return FaultyStore(self.address(), self.kill.plan)


def take_over(tiers: FileTiers) -> None:
    """What was decided is completed, and the input of every stream has ended."""
    Maintenance(tiers, clock=PORTS.clock, ids=PORTS.ids).recover(Lost.RAISE, None)
    for sink_id in ledger_ids(tiers.address()):
        if sink_id.startswith(("uid-", "query-")):
            loop = EpochLoop(tiers, tiers.open_ledger(sink_id), ports=PORTS, options=EpochOptions())
            try:
                loop.finish()
            finally:
                loop.close()


def killed(frozen: Frozen, sink: Path, kill: Kill) -> bool:
    """Whether the takeover has met its end."""
    tiers = frozen.builder(sink).tiers()
    try:
        take_over(replace(tiers, address=Fragile(tiers.address, kill)))
    except Killed:
        return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("stride", [5, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("moment", Moment)
@pytest.mark.parametrize("frozen", FROZEN, ids=str)
def test_a_takeover_that_is_killed_is_called_again(
    frozen: Frozen, moment: Moment, stride: int, tmp_path: Path
) -> None:
    """Wherever it dies: in the end each row is there once, and nothing hidden is left."""
    whole = Kill()
    assert not killed(frozen, frozen.unpacked(tmp_path / "whole"), whole)
    expected = sorted([*frozen.known["recovered"], *frozen.known["held"]])
    for step, name in list(enumerate(whole.steps))[::stride]:
        sink = frozen.unpacked(tmp_path / str(step))
        assert killed(frozen, sink, Kill(at=step, moment=moment)), name
        take_over(frozen.builder(sink).tiers())
        assert reading.visible_ids(sink / "base") == expected, name
        assert reading.dead_letters(sink / "base") == frozen.known["dead_letters"], name
        assert [path for path in (sink / "base").rglob(".*") if path.is_file()] == [], name


def test_most_takeovers_have_steps_to_be_killed_at(tmp_path: Path) -> None:
    """The test above is of something."""
    steps = 0
    for frozen in FROZEN:
        kill = Kill()
        killed(frozen, frozen.unpacked(tmp_path / str(frozen)), kill)
        steps += len(kill.steps)
    assert steps > 100
