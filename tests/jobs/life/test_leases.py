"""Who runs a job, without Spark: leases after a long sleep, while a job starts, and with lost replies."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event as Flag

import pytest

from filesink.errors import JobError, StorageError
from filesink.jobs.life import lease as leases
from filesink.jobs.life.lease import LEASE_MS, Lease, holder
from filesink.jobs.life.store import JobStore
from filesink.storage.faulty import Fault, FaultyStore, Moment
from filesink.storage.memory import MemoryFiles, MemoryStore
from filesink.storage.retrying import RetryingStore
from tests.jobs.life.test_supervisor import WAIT_S, Clock, Site


def _slept(site: Site, renewals: int) -> tuple[Lease, Lease]:
    """One who slept until its lease was over, and who took over and has renewed since."""
    one, two = site.lease("one"), site.lease("two")
    one.take()
    site.clock.ms += LEASE_MS + 1
    two.take()
    for _ in range(renewals):
        two.renew()
    return one, two


@pytest.mark.parametrize("renewals", range(5))
def test_who_slept_is_told(renewals: int) -> None:
    """However many leases of the new holder are forgotten by then; and the new holder keeps the job."""
    site = Site()
    one, two = _slept(site, renewals)
    for _ in range(3):
        with pytest.raises(JobError, match="taken over"):
            one.renew()
        two.renew()
    one.give_back()
    assert holder(site.store, "job", site.clock.ms) == "u@two"


def test_who_sleeps_while_taking_is_told() -> None:
    """It has looked, and by the time that it takes the number, that of another is forgotten already."""
    site = Site()
    one, two = site.lease("one"), site.lease("two")
    append = site.store.append

    def asleep(job: str, name: str, number: int, value: dict[str, object]) -> bool:
        site.store.append = append  # type: ignore[method-assign]
        two.take()
        for _ in range(4):
            two.renew()
        return append(job, name, number, value)

    site.store.append = asleep  # type: ignore[method-assign]
    with pytest.raises(JobError, match="somebody else"):
        one.take()
    two.renew()


def test_a_lease_is_kept_while_a_job_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a thread, as long as the block lasts; what the store refuses once is tried again."""
    monkeypatch.setattr(leases, "_LOOK_S", 0.001)
    site = Site()
    lease, renewed, calls = site.lease("one"), Flag(), []
    lease.take()
    append = site.store.append

    def once_refused(job: str, name: str, number: int, value: dict[str, object]) -> bool:
        calls.append(number)
        if len(calls) == 1:
            raise StorageError("no answer", code="NETWORK")
        taken = append(job, name, number, value)
        renewed.set()
        return taken

    site.store.append = once_refused  # type: ignore[method-assign]
    with lease.kept():
        site.clock.ms += LEASE_MS - 1
        assert renewed.wait(WAIT_S)
    assert calls == [1, 1]
    site.clock.ms += LEASE_MS - 1
    with pytest.raises(JobError, match="is run by"):
        site.lease("two").take()


def test_a_lease_that_was_given_back_is_not_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if it is kept a little longer: the job is free at once, and stays free."""
    monkeypatch.setattr(leases, "_LOOK_S", 0.001)
    site = Site()
    lease, looked = site.lease("one"), Flag()
    lease.take()
    with lease.kept():
        lease.give_back()
        site.clock.ms += LEASE_MS
        looked.wait(0.05)
    assert holder(site.store, "job", site.clock.ms) == ""
    assert len(site.store.chain("job", "leases")) == 2


def _replies_lost(times: int) -> tuple[JobStore, Callable[[], int]]:
    """A store that creates files and whose reply is lost, a number of times; retried as that of jobs is."""
    lost: list[str] = []

    def plan(operation: str, path: str) -> Fault | None:
        if operation != "put_if_absent" or len(lost) >= times:
            return None
        lost.append(path)
        return Fault(moment=Moment.AFTER, error=StorageError("no answer", code="NETWORK"))

    store = FaultyStore(MemoryStore(MemoryFiles()), plan)
    return JobStore(RetryingStore(store, Clock()), "here"), lambda: len(lost)


@pytest.mark.parametrize("times", [1, 2])
def test_a_lost_reply_is_no_rival(times: int) -> None:
    """The file that is there after a retry is one's own; a rival's is told from it."""
    store, lost = _replies_lost(times)
    assert store.append("job", "events", 0, {"by": "one"})
    assert lost() == times
    assert not store.append("job", "events", 0, {"by": "two"})
