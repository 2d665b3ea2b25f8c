"""Single faults at the calls of the canonical histories, and sampled faults in the recovery.

A change is tried at each fault point and at every fortieth case of it; a night tries all cases.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from property_tests.exhaustive import CANON, Case, calls, pairs, points, sampled, singles
from property_tests.regressions.seeds import CASES
from property_tests.simulate import Tally
from property_tests.simulation.world.faults import APPLICABLE, Mode

STRIDE = 40


def check(cases: Iterable[Case]) -> Tally:
    tally = Tally()
    for case in cases:
        case.run(tally)
    assert not tally.cases, "\n".join(tally.cases[:5])
    return tally


@pytest.mark.slow
@pytest.mark.parametrize("canon", CANON)
def test_a_fault_at_every_point_is_survived(canon: str) -> None:
    """Whatever goes wrong with a call of each kind, once or until a restart: every promise holds."""
    check(case for case in sampled(STRIDE) if case.canon == canon)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("canon", CANON)
def test_every_single_fault_is_survived(canon: str) -> None:
    """Whatever goes wrong with any one call, once or until a restart: every promise holds."""
    check(case for case in singles() if case.canon == canon)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case_that_found_something_stays_quiet(case: Case) -> None:
    """What was found once and fixed does not come back; each of its faults strikes."""
    assert sum(check([case]).fired.values()) >= (1 if case.then is None else 2)


@pytest.mark.slow
def test_faults_in_the_recovery_are_survived() -> None:
    """A crash anywhere, and something else that goes wrong while it is recovered from."""
    check(pairs(50))


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_many_faults_in_the_recovery_are_survived() -> None:
    """Of all crashes and what may follow, a hundred times as many."""
    check(pairs(5_000))


def test_the_canonical_histories_use_every_call() -> None:
    """No call of the port is left out of the exhaustive search."""
    used = {operation for canon in CANON for operation, _ in calls(canon)}
    assert used == set(APPLICABLE)


def test_every_mode_applies_somewhere() -> None:
    """No kind of fault is without a call that it can strike; a full disk comes in random histories."""
    assert {case.fault.mode for case in singles()} == set(Mode) - {Mode.FULL}


def test_the_sample_leaves_no_fault_point_out() -> None:
    """Nor a call, nor a history; and it is a small part of all."""
    every, chosen = dict(points()), set(sampled(STRIDE))
    assert {every[case] for case in chosen} == set(every.values())
    assert {case.canon for case in chosen} == set(CANON)
    assert len(chosen) < len(every) / 10
