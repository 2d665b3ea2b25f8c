"""Receivers are told of every version, in order, whatever becomes of drivers and receivers."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import filesink
from filesink import (
    ConfigError,
    DeliveryError,
    ExportError,
    FunctionNotification,
    KafkaNotification,
    SnsNotification,
    SqsNotification,
    StateError,
    WebhookNotification,
)
from filesink.exports.api import ExportPlan
from filesink.exports.following import Exports
from filesink.exports.notifications import background
from filesink.exports.notifications.background import InBackground, notifying
from filesink.exports.notifications.notification import Notification
from filesink.ports import Ports, SerialRunner
from tests.exports.receivers import HurriedClock, Receiver, Told, first_of_each, half_of_the_time
from tests.inventory.place import DAY_MS
from tests.sink_directory.written import Written, records


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> HurriedClock:
    """That of notifications."""
    made = HurriedClock(now=1_700_000_000_000)
    monkeypatch.setattr(Notification, "clock", made)
    return made


@pytest.fixture
def place() -> Told:
    """A path in memory."""
    return Told()


class Killed(BaseException):
    """The driver dies."""


def test_each_version_once_if_all_is_well(place: Told) -> None:
    """Whoever brings it up to date, and however often; one small file says how far it is."""
    receiver = Receiver()
    for _ in range(5):
        place.epochs(3)
        place.tell(receiver.notification())
        place.tell(receiver.notification())
    assert receiver.versions == list(range(1, 16))
    assert receiver.told == list(place.directory().follow())
    assert [name.partition("-")[0] for name in place.cursors()] == ["f/000000000015"]


def test_a_receiver_that_fails_half_of_the_time(place: Told) -> None:
    """It has everything, in order, and the cursor is where it should be."""
    receiver = Receiver(fails=half_of_the_time(1))
    place.epochs(200)
    while receiver.notification().version(place.directory()) < 200:
        with suppress(DeliveryError):  # eleven times in a row
            place.tell(receiver.notification())
    assert receiver.versions == list(range(1, 201))
    assert receiver.notification().version(place.directory()) == 200


def test_a_receiver_that_is_away_gets_it_all_later(place: Told) -> None:
    """The error says what was not told, and what was is noted; nothing is left out."""
    receiver = Receiver(fails=lambda entry: entry.version == 3)
    place.epochs(5)
    with pytest.raises(DeliveryError, match=r"version 3.*not now") as caught:
        place.tell(receiver.notification())
    assert caught.value.code == "RETRIES"
    assert receiver.notification().version(place.directory()) == 2
    receiver.fails = lambda _entry: False
    place.epochs(20)
    place.tell(receiver.notification())
    assert receiver.versions == list(range(1, 26))


def test_a_driver_that_dies_at_any_call(place: Told) -> None:
    """Before it was sent, after that, while it is noted, while old notes go: none missed, few told again."""
    place.epochs(9)
    for at in itertools.count(1):
        receiver, name = Receiver(), f"r{at}"
        calls = itertools.count(1)

        def strike(_operation: str, _path: str, calls: Iterator[int] = calls, at: int = at) -> None:
            if next(calls) == at:
                raise Killed

        place.before = strike
        try:
            place.tell(receiver.notification(name=name))
            died = False
        except Killed:
            died = True
        place.before = lambda _operation, _path: None
        told_before = len(receiver.told)
        place.tell(receiver.notification(name=name))
        assert first_of_each(receiver.versions) == list(range(1, 10))
        assert len(receiver.told) in {9, told_before + 9}
        ids = {entry.version: entry.id for entry in receiver.told}
        assert {entry.id for entry in receiver.told} == set(ids.values())
        if not died:
            break
    assert at > 10


def test_two_drivers_at_once(place: Told) -> None:
    """Each sends in order what the other may have sent; the first of each version come in order."""
    place.epochs(60)
    receiver = Receiver()
    both = threading.Barrier(2)

    def drive() -> None:
        both.wait()
        place.tell(receiver.notification())

    threads = [threading.Thread(target=drive) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert first_of_each(receiver.versions) == list(range(1, 61))
    assert receiver.notification().version(place.directory()) == 60


def test_a_note_of_a_slower_driver_does_not_count(place: Told) -> None:
    """The greatest does, and the other goes with the next one."""
    place.epochs(5)
    receiver = Receiver()
    slow = place.directory()
    place.tell(receiver.notification())
    receiver.notification().bring_to(slow, 3)
    place.files.make("_filesink/_notifications/f/000000000002-00000000.told")
    assert receiver.notification().version(place.directory()) == 5
    place.epochs(1)
    place.tell(receiver.notification())
    assert receiver.versions == [1, 2, 3, 4, 5, 6]
    assert len(place.cursors()) == 1


def test_what_a_crash_has_left_goes(place: Told) -> None:
    """Hidden files of notes that were being put."""
    place.epochs(1)
    receiver = Receiver()
    left = "_filesink/_notifications/f/.000000000001-00000000.told.0123"
    place.files.make(left)
    place.epochs(1)
    place.tell(receiver.notification())
    assert left not in place.files.files


def test_where_a_new_receiver_begins(place: Told) -> None:
    """With all that is remembered, or behind a version; the same to go on behind what it refuses."""
    place.epochs(6)
    late, refusing = Receiver(), Receiver(fails=lambda entry: entry.version == 2)
    place.tell(late.notification(after=4))
    assert late.versions == [5, 6]
    with pytest.raises(DeliveryError):
        place.tell(refusing.notification(name="refusing"))
    place.tell(refusing.notification(name="refusing", after=2))
    place.tell(refusing.notification(name="refusing", after=2))
    assert refusing.versions == [1, 3, 4, 5, 6]
    place.tell(late.notification(name="later", after=99))
    assert late.versions == [5, 6]


def test_a_receiver_that_was_away_for_longer_than_is_remembered(place: Told) -> None:
    """It is an error, since something would be left out; whoever knows that goes on behind it."""
    place.driver = place.inventory(fold_every=2, history_ms=DAY_MS)
    receiver = Receiver()
    place.epochs(1)
    place.tell(receiver.notification())
    place.epochs(5)
    place.clock.now += 3 * DAY_MS
    place.epochs(20)
    with pytest.raises(StateError) as caught:
        place.tell(receiver.notification())
    assert caught.value.code == "HISTORY_EXPIRED"
    newest = place.directory().version
    place.tell(receiver.notification(after=newest - 1))
    assert receiver.versions == [1, newest]


def test_a_path_that_was_written_anew() -> None:
    """Its versions are others, and are told with other ids."""
    receiver = Receiver()
    first = Told()
    first.epochs(3)
    first.tell(receiver.notification())
    second = Told()
    second.ids.made = 1 << 40
    second.epochs(2)
    second.files.files.update({path: file for path, file in first.files.files.items() if "_notif" in path})
    second.tell(receiver.notification())
    assert receiver.versions == [1, 2, 3, 1, 2]
    assert len({entry.id for entry in receiver.told}) == 5
    assert len(second.cursors()) == 1


# In the background


class Patient:
    """A receiver that takes nothing before it may."""

    def __init__(self) -> None:
        self.may, self.asked, self.told = threading.Event(), threading.Event(), Receiver()

    def __call__(self, entry: filesink.FeedEntry) -> None:
        self.asked.set()
        assert self.may.wait(60)
        self.told(entry)


def until(condition: threading.Event) -> None:
    """Wait for another thread."""
    assert condition.wait(60)


def ended(exporter: InBackground) -> None:
    """Wait until its thread has nothing to do."""
    thread = exporter._thread
    if thread is not None:
        thread.join(60)


def test_an_epoch_does_not_wait_for_a_receiver_that_hangs(
    place: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not again either, as long as it hangs; and then it gets everything, in order."""
    monkeypatch.setattr(background, "HOLD_S", 0.01)
    patient = Patient()
    exporter = notifying(patient)
    for _ in range(3):
        place.epochs(1)
        with pytest.raises(ExportError) as caught:
            exporter.bring_to(place.directory(), place.directory().version)
        assert caught.value.code == "BUSY"
        until(patient.asked)
    assert exporter.version(place.directory()) == 0
    patient.may.set()
    ended(exporter)
    assert patient.told.versions == [1, 2, 3]
    assert exporter.version(place.directory()) == 3


def test_a_healthy_receiver_was_told_when_the_epoch_is_reported(place: Told) -> None:
    """A program may end after that."""
    receiver = Receiver()
    exporter = notifying(receiver)
    for version in range(1, 6):
        place.epochs(1)
        exporter.bring_to(place.directory(), version)
        assert receiver.versions == list(range(1, version + 1))
    ended(exporter)
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("filesink-")] == []


def test_a_receiver_that_is_back_is_told_without_an_epoch(
    place: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread tries again by itself; meanwhile each epoch hears at once what is wrong."""
    monkeypatch.setattr(background, "_FIRST_PAUSE_S", 0.01)
    is_away = threading.Event()
    is_away.set()
    receiver = Receiver(fails=lambda _entry: is_away.is_set())
    exporter = notifying(receiver)
    place.epochs(2)
    for _ in range(2):
        with pytest.raises((DeliveryError, ExportError)) as caught:
            exporter.bring_to(place.directory(), 2)
        assert caught.value.code in {"RETRIES", "BUSY"}
    is_away.clear()
    ended(exporter)
    assert receiver.versions == [1, 2]


def test_exports_say_how_far_behind_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """In the report of each epoch; the log says it once, and epochs go on."""
    written = Written(tmp_path / "base")
    receiver = Receiver(fails=lambda entry: entry.version == 2)
    exports = Exports(
        ExportPlan(exporters=(receiver.notification(name="f"),)),
        open_directory=lambda: filesink.open(tmp_path / "base"),
        ports=Ports(clock=written.world.clock, ids=written.world.ids, runner=SerialRunner()),
    )
    behind = []
    with caplog.at_level(logging.WARNING, logger="filesink"):
        for value in "abc":
            written.write(records(1, value))
            behind.append(exports.run()["f"])
    assert behind == [0, 1, 2]
    assert len([one for one in caplog.records if "export f failed" in one.getMessage()]) == 1
    report = filesink.export(tmp_path / "base", FunctionNotification(receiver.told.append, name="f"))
    assert (report.before, report.version) == (1, 3)
    assert receiver.versions == [1, 2, 3]
    assert filesink.fsck(tmp_path / "base").findings == ()


@pytest.mark.parametrize("name", ["Hook", "a/b", "..", "_x", "x" * 64, "ä", 7, None])
def test_names_that_cannot_be_directories(name: object) -> None:
    """A name is that of a directory, in any store."""
    with pytest.raises(ConfigError) as caught:
        FunctionNotification(print, name=name)  # type: ignore[arg-type]
    assert caught.value.code == "BAD_VALUE"


def test_receivers_have_names_of_their_own() -> None:
    """Two of a kind at one path share no notes; one has the same name each time, whatever its secrets."""

    def other(_entry: object) -> None:
        """Do nothing."""

    names = [
        FunctionNotification(print).name,
        FunctionNotification(other).name,
        WebhookNotification("https://a.example/x").name,
        WebhookNotification("https://b.example/x").name,
        SqsNotification("https://sqs.eu-central-1.amazonaws.com/1/a").name,
        SnsNotification("arn:aws:sns:eu-central-1:1:a").name,
        KafkaNotification("host:9092", "a").name,
        KafkaNotification("host:9092", "b").name,
    ]
    assert len(set(names)) == len(names)
    assert WebhookNotification("https://a.example/x?key=1").name == names[2] == "webhook-39021306"
    assert WebhookNotification("https://a.example/x", name="hook").name == "hook"


@pytest.mark.parametrize("function", [lambda _entry: None, partial(print, "told")])
def test_functions_without_a_name_of_their_own_need_one(function: Any) -> None:
    """Two of them would share how far they were told, and each epoch would reach one of the two."""
    with pytest.raises(ConfigError, match="name="):
        FunctionNotification(function)
    assert FunctionNotification(function, name="mine").name == "mine"


@pytest.mark.parametrize("after", [-1, True, "3", 1.0])
def test_places_that_are_no_versions(after: object) -> None:
    """As of ``follow``."""
    with pytest.raises(ConfigError) as caught:
        FunctionNotification(print, after=after)  # type: ignore[arg-type]
    assert caught.value.code == "BAD_VALUE"


@pytest.mark.parametrize("receiver", [None, "https://example.org", dict, 3])
def test_what_is_no_receiver(receiver: object) -> None:
    """An address is not one by itself."""
    with pytest.raises(ConfigError) as caught:
        notifying(receiver)  # type: ignore[arg-type]
    assert caught.value.code == "BAD_VALUE"
