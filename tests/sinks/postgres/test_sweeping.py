"""What batch writes have left behind that died."""

from __future__ import annotations

from typing import Any

import pytest

from filesink import CommitFailedError, PostgresSink, PostgresTable
from filesink.ledger.record import BatchWrite
from filesink.sinks.postgres.committables import EpochKey, new_name
from tests.sinks.postgres.site import SCHEMA, Site, rows

HOUR = 3_600_000
COMMITS: list[dict[str, Any]] = [{}, {"commit": "prepared"}]


@pytest.fixture(params=COMMITS, ids=["staged", "prepared"])
def site(request: pytest.FixtureRequest, site: Site) -> Site:
    """A table that batches are written to."""
    site.options, site.uid = request.param, None
    site.tiers().prepare(SCHEMA)
    return site


def attempt(site: Site, sink_id: str) -> str:
    """The name of what a task has left that nobody knows of."""
    from dataclasses import replace

    context = replace(site.context(), sink_id=sink_id)
    writer = site.tiers().create_writer(context)
    writer.write(rows(9), context)
    (left,) = writer.prepare_commit(0)
    writer.close()
    return left.name


def sink(site: Site) -> PostgresSink:
    """As a user makes it, with the clock of the test."""
    found = PostgresSink(
        site.conninfo,
        PostgresTable(f"{site.schema}.goods", **site.options),
        ledger=site.directory / "ledger",
        uid=site.uid,
    )
    object.__setattr__(found._tiers, "clock", site.clock)
    return found


def test_what_is_old_goes(site: Site) -> None:
    """Not what is younger, nor what a stream has left."""
    old = attempt(site, "batch-1")
    stream = attempt(site, "query-1")
    site.clock.now += 2 * HOUR
    young = attempt(site, "batch-2")
    assert sorted(site.leftovers()) == sorted([old, stream, young])
    assert sink(site).sweep("1 hour") == [old]
    assert sorted(site.leftovers()) == sorted([stream, young])
    assert sink(site).sweep("1 hour") == []


def test_what_is_decided_stays(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """However old it is; recover() commits it."""
    with monkeypatch.context() as patch:
        patch.setattr(
            "filesink.sinks.postgres.committer.PostgresCommitter.commit", lambda _, given: list(given)
        )
        with pytest.raises(CommitFailedError):
            site.driver("appends").run(BatchWrite(writer="batch-1"), site.job(rows(1), rows(2)))
    site.clock.now += 2 * HOUR
    assert sink(site).sweep("1 hour") == []
    assert site.ids_there() == []
    assert [report.rows for report in sink(site).recover()] == [2]
    assert site.ids_there() == [1, 2]


def test_a_batch_write_sweeps_its_own(site: Site) -> None:
    """Of two attempts of a task one counts."""
    cause = BatchWrite(writer="batch-1")
    job = site.job(rows(1), rows(2), attempts=[(0, 0), (0, 1), (1, 0)])
    site.driver("appends").run(cause, job)
    assert site.ids_there() == [1, 2]
    assert site.leftovers() == []


def test_a_batch_write_that_failed(site: Site) -> None:
    """Its own attempts go at once, however young; those of others stay."""
    attempt(site, "batch-1")
    other = attempt(site, "batch-2")
    site.tiers().abandon("batch-1")
    assert site.leftovers() == [other]


def test_a_stream_that_cannot_go_on(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has left goes by age as well, but not what it has decided, nor what another stream has left."""
    site.uid = "u"
    site.run(0, rows(1))
    old, stranger = attempt(site, "uid-u"), attempt(site, "uid-other")
    with monkeypatch.context() as patch:
        patch.setattr(
            "filesink.sinks.postgres.committer.PostgresCommitter.commit", lambda _, given: list(given)
        )
        with pytest.raises(CommitFailedError):
            site.run(1, rows(2))
    site.clock.now += 2 * HOUR
    assert sink(site).sweep("3 hours") == []
    assert sink(site).sweep("1 hour") == [old]
    assert stranger in site.leftovers()
    assert [report.rows for report in sink(site).recover()] == [1]
    assert site.ids_there() == [1, 2]


def test_names_fit(site: Site) -> None:
    """The server cuts names at 63 bytes, and would take two for one."""
    epoch = EpochKey(sink_id="uid-u", slot=10**12 - 1, target=site.tiers().target, schema="s")
    assert len(new_name(epoch, ids=site.ids, now_ms=2**60)) == 63
