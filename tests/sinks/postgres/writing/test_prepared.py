"""Rows that wait in prepared transactions."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from filesink import ConfigError, PostgresTable, StagedDataLost, StorageError
from filesink.ports import Losers
from tests.fakes import micro_batch
from tests.sinks.postgres.server import TestServer, running
from tests.sinks.postgres.site import Site, commit, rows


@pytest.fixture
def site(postgres: TestServer, tmp_path: Path) -> Site:
    """A table that is written to in prepared transactions."""
    return Site(postgres, tmp_path, options={"commit": "prepared"})


def test_a_stream_of_epochs(site: Site) -> None:
    """Each row is there once, each task has its row, and no transaction waits."""
    site.run(0, rows(1, 2), rows(3))
    site.run(1, rows(4))
    assert site.ids_there() == [1, 2, 3, 4]
    assert site.do("SELECT slot, rows FROM {s}.filesink_epochs ORDER BY slot, rows") == [
        (0, 1),
        (0, 2),
        (1, 1),
    ]
    assert site.leftovers() == []


def test_a_commit_may_be_called_again(site: Site) -> None:
    """What is committed already is done."""
    staged = site.staged(rows(1), rows(2))
    assert site.ids_there() == []
    for _ in range(3):
        assert commit(site, staged) == []
    assert site.ids_there() == [1, 2]


def test_one_that_was_half_done(site: Site) -> None:
    """Some transactions are committed, others wait."""
    staged = site.staged(rows(1), rows(2), rows(3))
    site.do(f"COMMIT PREPARED '{staged[1].name}'")
    assert commit(site, staged) == []
    assert site.ids_there() == [1, 2, 3]


def test_committers_at_the_same_time(site: Site) -> None:
    """Whoever is second finds it done, or comes again."""
    staged = site.staged(*(rows(one) for one in range(10)))

    def until_done() -> None:
        committer = site.tiers().create_committer()
        left = staged
        while left:
            left = committer.commit(left)

    threads = [threading.Thread(target=until_done) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert site.ids_there() == list(range(10))


def test_one_that_somebody_has_rolled_back_is_lost(site: Site) -> None:
    """It is not taken for committed, and none of the others is committed then."""
    staged = site.staged(rows(1), rows(2, 3))
    site.do(f"ROLLBACK PREPARED '{staged[1].name}'")
    with pytest.raises(StagedDataLost, match=r"2 rows of epoch 0 .* 1 of 2 prepared transactions"):
        commit(site, staged)
    assert site.ids_there() == []
    commit(site, staged[:1])
    assert site.ids_there() == [1]


def test_orphans_are_ended(site: Site) -> None:
    """Prepared by attempts for slots up to the last complete one; others are left alone."""
    orphan = site.staged(rows(9))[0].name
    later = site.staged(rows(8), epoch=5)[0].name
    assert orphan in site.leftovers()
    site.run(0, rows(1))
    assert site.leftovers() == [later]
    assert site.ids_there() == [1]
    site.do(f"ROLLBACK PREPARED '{later}'")


def test_twins_are_rolled_back(site: Site) -> None:
    """Of two attempts of a task one counts."""
    site.tiers().prepare(rows(1).schema)
    driver = site.driver()
    driver.run(micro_batch(0), site.job(rows(1)))
    job = site.job(rows(2), rows(3), attempts=[(0, 0), (0, 1), (1, 0)], twins=Losers.POSSIBLE)
    driver.run(micro_batch(1), job)
    assert site.ids_there() == [1, 2, 3]
    assert site.leftovers() == []


def test_a_task_that_fails_leaves_nothing(site: Site) -> None:
    """Prepared already, it is rolled back."""
    site.tiers().prepare(rows(1).schema)
    context = site.context()
    writer = site.tiers().create_writer(context)
    writer.write(rows(1), context)
    writer.prepare_commit(0)
    assert site.leftovers() != []
    writer.abort_prepare()
    writer.close()
    assert site.leftovers() == []


def test_abort_ends_what_tasks_have_reported(site: Site) -> None:
    """A second time as well."""
    staged = site.staged(rows(1), rows(2))
    for _ in range(2):
        site.tiers().create_committer().abort(staged)
    assert site.leftovers() == []


def test_a_crash_of_the_server_loses_nothing(site: Site) -> None:
    """What is prepared survives it, before the decision and after."""
    staged = site.staged(rows(1), rows(2))
    site.server.crash()
    assert commit(site, staged) == list(staged)
    site.server.start()
    assert commit(site, staged) == []
    assert site.ids_there() == [1, 2]


def test_a_row_that_another_task_holds(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """One unique key in two tasks: the second waits for the first, which waits for it, so it gives up."""
    monkeypatch.setattr("filesink.sinks.postgres.connection.LOCK_TIMEOUT", "200ms")
    site.do("CREATE UNIQUE INDEX ON {t} (id)")
    staged = site.staged(rows(1))
    with pytest.raises(StorageError, match=r"LockNotAvailable \(55P03\)"):
        site.staged(rows(1))
    commit(site, staged)
    assert site.ids_there() == [1]


def test_a_server_that_prepares_nothing_is_refused(tmp_path: Path) -> None:
    """At the start, with the setting to change; its default is 0."""
    with running(max_prepared_transactions="0") as server:
        site = Site(server, tmp_path, options={"commit": "prepared"})
        with pytest.raises(ConfigError, match="max_prepared_transactions = 0: set it") as raised:
            site.tiers().prepare(rows(1).schema)
    assert raised.value.code == "POSTGRES_PREPARED"


def test_a_server_that_prepares_too_few(tmp_path: Path) -> None:
    """It is no passing lack of memory: the message says what to change, and what may hold them."""
    with running(max_prepared_transactions="2") as server:
        site = Site(server, tmp_path, options={"commit": "prepared"})
        with pytest.raises(ConfigError, match=r"pg_prepared_xacts.*sweep\(\)") as raised:
            site.staged(rows(1), rows(2), rows(3))
        left = site.leftovers()
    assert (raised.value.code, raised.value.is_permanent, len(left)) == ("POSTGRES_PREPARED", True, 2)


def test_keys_are_refused() -> None:
    """Rows that two tasks update would lock each other out."""
    with pytest.raises(ConfigError, match=r"commit='prepared' has no keys"):
        PostgresTable("t", keys=["id"], commit="prepared")
