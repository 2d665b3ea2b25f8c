"""Drivers and tasks that die at any call, of files and of the smallest sink; and what torture finds."""

from __future__ import annotations

import pytest

from filesink import StoreLedger
from property_tests.torture.destination import Delivery, Place, Promise
from property_tests.torture.destinations import DESTINATIONS
from property_tests.torture.destinations.files import Files
from property_tests.torture.destinations.toy import ToyTable, watch_databases
from property_tests.torture.kills import few_and_many, survives
from property_tests.torture.steps import Steps
from property_tests.torture.torture import torture
from property_tests.torture.verdict import Found, Verdict, table
from tests.sinks.broken import EagerSink, ForgetfulSink

_ENOUGH = 3  # kills of each, after which a defect has shown itself


@few_and_many
@pytest.mark.slow
@pytest.mark.parametrize("destination", [Files, ToyTable])
def test_every_row_once_whoever_dies(destination: type[Files | ToyTable], kills: int) -> None:
    """Of files of each kind, in parts that stay open, rolled and merged; and of a sink of 40 lines."""
    survives(destination(), kills=kills)


class Broken(ToyTable):
    """A place of a broken sink. Nobody dies where the defect would not be seen."""

    batches = 1

    def watch(self, steps: Steps) -> None:
        watch_databases(steps)


class Eager(Broken):
    """Of the eager sink."""

    def sink(self, place: Place) -> EagerSink:
        return EagerSink(ledger=StoreLedger(place["directory"]), uid=place["directory"])


class Forgetful(Broken):
    """Of the forgetful sink."""

    def sink(self, place: Place) -> ForgetfulSink:
        return ForgetfulSink(ledger=StoreLedger(place["directory"]), uid="ids")


@pytest.mark.slow
def test_the_torture_finds_a_sink_that_writes_too_early() -> None:
    """Its rows are there again when a task is."""
    verdict = torture(Eager(), kills=_ENOUGH, seed=1)
    assert verdict.doubled > 0
    assert verdict.wrong != ()


@pytest.mark.slow
def test_the_torture_finds_a_sink_that_forgets() -> None:
    """Its rows are missing if a driver has died between the note and the deed."""
    verdicts = (torture(Forgetful(), kills=_ENOUGH, seed=seed) for seed in range(10))
    found = next(verdict for verdict in verdicts if verdict.lost)  # only some deaths fall between the two
    assert found.wrong != ()


def test_what_is_found_is_counted() -> None:
    """Lost, strange, doubled, and doubled under one key; no key is none."""
    found = Found.of([Delivery(0, "a"), Delivery(0, "a"), Delivery(1, "a"), Delivery(1, "b"), Delivery(7)], 3)
    assert found == Found(lost=(2,), strange=(7,), doubled=2, one_key=1)
    assert Found.of([Delivery(0), Delivery(0)], 1) == Found(lost=(), strange=(), doubled=1, one_key=0)


def test_verdicts_are_added_up() -> None:
    """And shown in a table that has a row for each destination."""
    one = Verdict(histories=1, kills={"driver": 2}, rows=1_000, wrong=("this",))
    two = one + Verdict(histories=2, kills={"task": 1, "driver": 1}, lost=3)
    assert two == Verdict(histories=3, kills={"driver": 3, "task": 1}, rows=1_000, lost=3, wrong=("this",))
    lines = table({"files": one, "kafka": two}).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert [line.split("|")[1].strip() for line in lines[2:]] == ["files", "kafka"]
    assert "1,000" in lines[2]


def test_at_least_once_is_promised_by_requests_alone() -> None:
    """All other destinations have to take each row once."""
    weaker = {name for name, made in DESTINATIONS.items() if made().promise is not Promise.ONCE}
    assert weaker == {"http"}
