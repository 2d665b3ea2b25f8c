"""Every single fault at every call of the canonical histories, and sampled faults in the recovery."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from property_tests.exhaustive import CANON, Case, calls, pairs, singles
from property_tests.simulate import Tally
from property_tests.simulation.faults import APPLICABLE, Mode

pytestmark = pytest.mark.slow


def check(cases: Iterable[Case]) -> Tally:
    tally = Tally()
    for case in cases:
        case.run(tally)
    assert not tally.cases, "\n".join(tally.cases[:5])
    return tally


@pytest.mark.parametrize("canon", CANON)
def test_every_single_fault_is_survived(canon: str) -> None:
    """Whatever goes wrong with any one call, once or until a restart: every promise holds."""
    check(case for case in singles() if case.canon == canon)


def test_faults_in_the_recovery_are_survived() -> None:
    """A crash anywhere, and something else that goes wrong while it is recovered from."""
    check(pairs(1000))


def test_the_canonical_histories_use_every_call() -> None:
    """No call of the port is left out of the exhaustive search."""
    used = {operation for canon in CANON for operation in calls(canon)}
    assert used == set(APPLICABLE)


def test_every_mode_applies_somewhere() -> None:
    """No kind of fault is without a call that it can strike; a full disk comes in random histories."""
    assert {case.fault.mode for case in singles()} == set(Mode) - {Mode.FULL}
