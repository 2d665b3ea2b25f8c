"""For a while, or until peace, nobody may remove what is only to be cleaned away.

Refused are removals of visible files and of the inputs of merges. No epoch may fail for that.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

from property_tests.simulation.others.overwriter import Overwrites
from property_tests.simulation.stage import Stage
from property_tests.simulation.world.faults import Fault, Mode
from property_tests.simulation.world.listing import is_hidden
from property_tests.simulation.world.world import Plan

_WHILES = (100, 400, 10**9)  # calls
_REMOVALS = {"unlink": errno.EPERM, "delete": 403}


class Forbidden(Plan):
    """What another plan does, and removals that are refused.

    Args:
        stage: whose observer knows what was merged.
        plan: the other one; ``None`` for one that lets all go well.
        calls: how long; for ever by default.
    """

    def __init__(self, stage: Stage, plan: Plan | None = None, *, calls: int = 10**9) -> None:
        self._stage = stage
        self._plan = plan or Plan()
        self._end = stage.world.operations + calls
        self._is_mine = False

    @staticmethod
    def for_a_while(stage: Stage) -> None:
        """From now on, on top of what goes wrong anyway."""
        calls = stage.random.choice(_WHILES)
        stage.world.plan = Forbidden(stage, stage.world.plan, calls=calls)

    def fault(self, operation: str, path: str, number: int) -> Fault | None:
        """See ``Plan.fault``."""
        found = self._plan.fault(operation, path, number)
        self._is_mine = found is None and operation in _REMOVALS and number < self._end and self._waits(path)
        return Fault(Mode.ERROR, _REMOVALS[operation]) if self._is_mine else found

    def is_sticky(self) -> bool:
        """See ``Plan.is_sticky``."""
        return not self._is_mine and self._plan.is_sticky()

    def make_room(self) -> None:
        """See ``Plan.make_room``."""
        self._plan.make_room()

    def _waits(self, path: str) -> bool:
        if not is_hidden(path):
            return True
        chains = self._stage.observer.chains.values()
        return any(path in record.discards for chain in chains for record in chain.records.values())


def comes(stage: Stage, overwrites: Overwrites) -> None:
    """In peace: an overwrite is done all the same, says what it left, and the next one removes that (I15)."""
    world, replaced = stage.world, stage.observer.replaced
    world.plan = Forbidden(stage)
    for _ in range(stage.random.randint(1, 2)):
        outcome = overwrites.succeed()
        left, kept = (
            paths_of(outcome.left),
            paths_of(outcome.kept),
        )  # a grace may have begun late, or by a bad clock
        if left | kept != replaced.left or not left <= set(stage.observer.visible):
            world.fail(
                f"I15: {sorted(left | kept)} are said to be left, on record are {sorted(replaced.left)}"
            )
    world.plan = None
    outcome = overwrites.succeed()
    if outcome.left or replaced.left != paths_of(outcome.kept):
        world.fail(f"I15: everything may be removed, and {sorted(replaced.left)} are left")
    stage.observer.look_at_all()


def paths_of(committables: Sequence[object]) -> set[str]:
    """Of files that stay."""
    return {getattr(one, "path", "") for one in committables}
