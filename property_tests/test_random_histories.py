"""Random histories, and those that have once found something."""

from __future__ import annotations

import logging
import os
import subprocess
import sys

import pytest

from filesink.ledger import folding
from filesink.storage.local import sync as local_sync
from property_tests.regressions.seeds import SEEDS
from property_tests.simulate import run_seed, run_seeds
from property_tests.simulation.endings import epilogue
from property_tests.simulation.history import History
from property_tests.simulation.scenario import Scenario
from property_tests.simulation.world.world import World

_CHUNK = 500


@pytest.mark.slow
def test_random_histories_keep_every_promise() -> None:
    """A hundred seeds; ``make soak`` goes on for as long as it is let."""
    tally = run_seeds(range(100))
    assert not tally.violations, tally.violations[:5]


@pytest.mark.nightly
@pytest.mark.parametrize("chunk", range(20))
def test_ten_thousand_random_histories_keep_every_promise(chunk: int) -> None:
    """In pieces, so that a violation is told soon."""
    tally = run_seeds(range(chunk * _CHUNK, (chunk + 1) * _CHUNK))
    assert not tally.violations, tally.violations[:5]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_that_found_something_stays_quiet(seed: int) -> None:
    """What was found once and fixed does not come back."""
    assert run_seed(seed).violation is None


def test_a_seed_is_the_whole_history() -> None:
    """The same integer gives the same calls with the same answers, one by one."""
    for seed in (3, 17, 121):
        first: list[str] = []
        second: list[str] = []
        run_seed(seed, first.append)
        run_seed(seed, second.append)
        assert first == second
        assert len(first) > 50


@pytest.mark.parametrize("seed", [89, pytest.param(193, marks=pytest.mark.nightly)])
def test_a_seed_is_the_whole_history_in_every_process(seed: int) -> None:
    """No order of calls comes from the hashes of texts, which differ from process to process."""
    command = [sys.executable, "-m", "property_tests.simulate", "--seed", str(seed), "--trace"]
    runs = [
        subprocess.Popen(  # noqa: S603 - our own interpreter and module
            command, env={**os.environ, "PYTHONHASHSEED": hashes}, stdout=subprocess.PIPE
        )
        for hashes in ("1", "2")
    ]
    first, second = (run.communicate(timeout=120)[0] for run in runs)
    assert first == second
    assert len(first.splitlines()) > 50


@pytest.mark.parametrize(
    ("where", "what"), [(History, "_trouble"), (History, "_peace"), (epilogue, "ask"), (World, "end")]
)
def test_a_history_leaves_the_product_as_it_was(
    where: object, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Constants and log are a history's own only until its end, even if the simulation has a defect."""

    def defect(*_: object) -> None:
        changed.append((folding._FOLD_EVERY, local_sync.MAX_UNSYNCED, sys.unraisablehook))
        assert logging.getLogger("filesink").disabled
        raise ZeroDivisionError

    changed: list[tuple[object, ...]] = []
    before = (folding._FOLD_EVERY, local_sync.MAX_UNSYNCED, sys.unraisablehook)
    monkeypatch.setattr(where, what, defect)
    with pytest.raises(ZeroDivisionError):
        History(0, Scenario()).run()
    assert not set(before) & set(changed[0]), "the history has its own"
    assert (folding._FOLD_EVERY, local_sync.MAX_UNSYNCED, sys.unraisablehook) == before
    assert not logging.getLogger("filesink").disabled
