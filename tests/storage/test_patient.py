"""The store that waits is a store otherwise, and waits only where that may help."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from filesink.errors import CommitConflictError, StagedDataLost, StorageError
from filesink.storage.api import PutResult, Store
from filesink.storage.faulty import Fault, FaultyStore, Moment
from filesink.storage.memory import MemoryFiles, MemoryStore
from filesink.storage.retrying import RetryingStore
from tests.contracts.store_contract import StoreContract
from tests.contracts.store_site import Site, stage
from tests.fakes import SettableClock
from tests.storage.test_memory import MemorySite


class PatientSite(MemorySite):
    """A place whose stores are wrapped."""

    def store(self) -> Store:
        return RetryingStore(super().store(), SettableClock())


class TestWithoutFailures(StoreContract):
    @pytest.fixture
    def site(self) -> Site:
        return PatientSite()


class Failing:
    """Fails the next ``times`` calls of an operation."""

    def __init__(self, operation: str, error: StorageError, times: int, moment: Moment) -> None:
        self.operation = operation
        self.error = error
        self.times = times
        self.moment = moment

    def __call__(self, operation: str, _path: str) -> Fault | None:
        if operation != self.operation or not self.times:
            return None
        self.times -= 1
        return Fault(moment=self.moment, error=self.error)


BUSY = StorageError("slow down", code="UNAVAILABLE")
CALLS: dict[str, Callable[[Store], object]] = {
    "put_if_absent": lambda store: store.put_if_absent("new", b"1"),
    "read": lambda store: store.read("old"),
    "list": lambda store: store.list(""),
    "delete": lambda store: store.delete("old"),
    "delete_if_unchanged": lambda store: store.delete_if_unchanged("old", size=1, version=""),
    "discard": lambda store: store.discard(".x"),
    "verify": lambda store: store.verify(stage(store, "y", b"1")),
    "is_published": lambda store: store.is_published(stage(store, "y", b"1"), "y"),
}


def store_that_fails(
    operation: str, error: StorageError, times: int, moment: Moment = Moment.BEFORE
) -> tuple[Store, SettableClock]:
    """A store with one file, ``old``, some of whose calls fail."""
    memory = MemoryStore(MemoryFiles())
    memory.put_if_absent("old", b"0")
    clock = SettableClock()
    return RetryingStore(FaultyStore(memory, Failing(operation, error, times, moment)), clock), clock


@pytest.mark.parametrize("operation", CALLS)
@pytest.mark.parametrize("moment", Moment)
def test_what_fails_for_the_moment_is_tried_again(operation: str, moment: Moment) -> None:
    """Of every call that may be repeated, whether or not it had taken effect."""
    store, clock = store_that_fails(operation, BUSY, 3, moment)
    CALLS[operation](store)
    assert clock.slept == [0.05, 0.1, 0.2]


@pytest.mark.parametrize("operation", CALLS)
@pytest.mark.parametrize(
    "error",
    [
        StorageError("no", code="PERMISSION"),
        CommitConflictError("no", code="EXISTS"),
        StagedDataLost("no", code="STAGED_DATA_LOST"),
    ],
)
def test_what_stays_is_raised_at_once(operation: str, error: StorageError) -> None:
    """There is no pause before somebody hears of it."""
    store, clock = store_that_fails(operation, error, 1)
    with pytest.raises(type(error)):
        CALLS[operation](store)
    assert clock.slept == []


def test_a_file_that_an_earlier_try_has_made_exists() -> None:
    """Whose it is the caller finds out, as after any lost reply."""
    store, _ = store_that_fails("put_if_absent", BUSY, 1, Moment.AFTER)
    assert store.put_if_absent("new", b"1") is PutResult.EXISTS
    assert store.read("new") == b"1"


def test_who_has_waited_in_vain_waits_again_after_a_success() -> None:
    """Not before: the calls that find out what an outage has left do not wait for it each."""
    store, clock = store_that_fails("read", BUSY, 11 + 1)
    for _ in range(2):
        with pytest.raises(StorageError):
            store.read("old")
    assert len(clock.slept) == 10
    assert store.read("old") == b"0"
