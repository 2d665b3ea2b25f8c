"""Rows that wait in tables of their own, and the transaction that moves them."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from filesink import CommitConflictError, IdentityError, StagedDataLost, StoreLedger
from filesink.errors import CommitFailedError
from filesink.ports import Losers
from filesink.sinks.postgres.target import epochs
from tests.fakes import micro_batch
from tests.sinks.postgres.site import Site, commit, rows


def test_a_stream_of_epochs(site: Site) -> None:
    """Each row is there once, each epoch has its row, and nothing else is left."""
    site.run(0, rows(1, 2), rows(3))
    site.run(1, rows(4))
    assert site.ids_there() == [1, 2, 3, 4]
    assert site.do("SELECT sink_id, target, slot, part, rows FROM {s}.filesink_epochs ORDER BY slot") == [
        ("uid-u", f"{site.schema}.goods", 0, "", 3),
        ("uid-u", f"{site.schema}.goods", 1, "", 1),
    ]
    assert site.leftovers() == []


def test_a_batch_write(site: Site) -> None:
    """Two writes are two epochs, each with an id of its own."""
    site.write(rows(1), rows(2))
    site.write(rows(1))
    assert site.ids_there() == [1, 1, 2]
    assert site.do("SELECT count(DISTINCT sink_id), max(slot) FROM {s}.filesink_epochs") == [(2, 0)]
    assert site.leftovers() == []


def test_an_epoch_without_rows_does_nothing(site: Site) -> None:
    """Neither a task without records nor an epoch without tasks."""
    site.run(0)
    site.run(1, rows())
    site.run(2, rows(1), rows())
    assert site.ids_there() == [1]
    assert site.do("SELECT slot FROM {s}.filesink_epochs") == [(2,)]


def test_until_the_commit_nobody_sees_a_row(site: Site) -> None:
    """A staged row is in a table of its own."""
    staged = site.staged(rows(1), rows(2))
    assert site.ids_there() == []
    assert sorted(site.leftovers()) == sorted(one.name for one in staged)
    assert commit(site, staged) == []
    assert site.ids_there() == [1, 2]


def test_staged_tables_are_logged(site: Site) -> None:
    """An unlogged one would be emptied by a crash."""
    site.staged(rows(1))
    found = site.do("SELECT relpersistence FROM pg_class WHERE relname LIKE 'filesink%' AND relkind = 'r'")
    assert set(found) == {("p",)}


def test_a_commit_may_be_called_again(site: Site) -> None:
    """By the same committer and by another one, with the same values in any order."""
    staged = site.staged(rows(1), rows(2))
    committer = site.tiers().create_committer()
    for _ in range(3):
        assert committer.commit(staged) == []
    assert commit(site, staged[::-1]) == []
    assert site.ids_there() == [1, 2]


def test_committers_at_the_same_time(site: Site) -> None:
    """One of them moves the rows, the others wait for it and find them moved."""
    staged = site.staged(*(rows(one) for one in range(5)))
    left: list[object] = []
    threads = [threading.Thread(target=lambda: left.extend(commit(site, staged))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert left == []
    assert site.ids_there() == list(range(5))


def test_a_committer_waits_for_one_that_may_still_commit(site: Site) -> None:
    """A zombie whose transaction is open holds the epoch; when it is rolled back, the other goes on."""
    staged = site.staged(rows(1))
    with site.connect() as zombie:
        zombie.autocommit = False
        epochs.note(zombie, staged[0].epoch, staged)
        done = threading.Thread(target=commit, args=(site, staged))
        done.start()
        done.join(0.5)
        assert done.is_alive()
        zombie.rollback()
        done.join()
    assert site.ids_there() == [1]


def test_rows_that_are_gone_are_told(site: Site) -> None:
    """A table that is not there, with an epoch that is not, is a loss; nothing of the epoch is inserted."""
    staged = site.staged(rows(1), rows(2, 3))
    site.do(f"DROP TABLE {site.schema}.{staged[1].name}")
    with pytest.raises(StagedDataLost, match=r"2 rows of epoch 0 of 'uid-u' for .* are gone: 1 of 2 tables"):
        commit(site, staged)
    assert site.ids_there() == []
    assert site.do("SELECT * FROM {s}.filesink_epochs") == []


def test_rows_that_somebody_has_removed_are_told(site: Site) -> None:
    """The number of rows is what the task has told."""
    staged = site.staged(rows(1, 2))
    site.do(f"TRUNCATE {site.schema}.{staged[0].name}")
    with pytest.raises(StagedDataLost, match="2 rows were staged"):
        commit(site, staged)
    assert site.ids_there() == []


def test_another_epoch_of_the_same_number_is_refused(site: Site) -> None:
    """A ledger that was begun anew does not pass for the old one, and loses nothing silently."""
    commit(site, site.staged(rows(1)))
    with pytest.raises(CommitConflictError, match="the ledger was begun anew"):
        commit(site, site.staged(rows(2)))
    assert site.ids_there() == [1]


def test_a_ledger_that_was_begun_anew_is_refused_at_once(site: Site, tmp_path: Path) -> None:
    """Before its tasks run."""
    site.run(0, rows(1))
    (tmp_path / "ledger").rename(tmp_path / "away")
    StoreLedger(tmp_path / "ledger").prepare()
    with pytest.raises(IdentityError, match="goes on with 0: the ledger is an older copy"):
        site.run(0, rows(1))
    assert site.ids_there() == [1]
    assert site.leftovers() == []


def test_abort_removes_what_tasks_have_reported(site: Site) -> None:
    """Of an epoch that was not decided; a second time as well."""
    staged = site.staged(rows(1), rows(2))
    for _ in range(2):
        site.tiers().create_committer().abort(staged)
    assert site.leftovers() == []


@pytest.mark.parametrize("moment", ["before the end", "after it"])
def test_a_task_that_fails_leaves_nothing(site: Site, moment: str) -> None:
    """Neither rows nor a table."""
    site.tiers().prepare(rows(1).schema)
    context = site.context()
    writer = site.tiers().create_writer(context)
    writer.write(rows(1), context)
    if moment == "after it":
        writer.prepare_commit(0)
    writer.abort_prepare()
    writer.close()
    assert site.leftovers() == []


def test_losers_are_swept(site: Site) -> None:
    """Tables of attempts for slots up to the last complete one, of this sink and target alone."""
    loser = site.staged(rows(9))[0].name
    later = site.staged(rows(9), epoch=5)[0].name
    other = f"filesink_{'0' * 12}_0_{'0' * 24}"
    site.do(f"CREATE TABLE {site.schema}.{other} (id int)")
    site.do(f"CREATE TABLE {site.schema}.filesink_of_somebody (id int)")
    assert loser in site.leftovers()
    site.run(0, rows(1))
    assert sorted(site.leftovers()) == sorted([later, other, "filesink_of_somebody"])
    assert site.ids_there() == [1]


def test_twins_are_swept_at_once(site: Site) -> None:
    """Of two attempts of a task one counts; the table of the other goes with the epoch."""
    site.tiers().prepare(rows(1).schema)
    driver = site.driver()
    driver.run(micro_batch(0), site.job(rows(1)))
    job = site.job(rows(2), rows(3), attempts=[(0, 0), (0, 1), (1, 0)], twins=Losers.POSSIBLE)
    driver.run(micro_batch(1), job)
    assert site.ids_there() == [1, 2, 3]
    assert site.leftovers() == []


def test_a_replay_with_other_partitions_inserts_nothing(site: Site) -> None:
    """The epoch is known by its number in the query, whatever its tasks are."""
    site.run(0, rows(1, 2), rows(3))
    site.driver().run(micro_batch(0), site.job(rows(3, 2, 1)))
    assert site.ids_there() == [1, 2, 3]
    assert site.leftovers() == []


def test_an_epoch_that_is_decided_is_committed_by_the_next_driver(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it was decided, also by a sink that is built otherwise."""
    site.tiers().prepare(rows(1).schema)
    with monkeypatch.context() as patch:
        patch.setattr("filesink.sinks.postgres.staging.move", _away)
        with pytest.raises(CommitFailedError, match="POSTGRES_AWAY"):
            site.driver().run(micro_batch(0), site.job(rows(1), rows(2)))
    assert site.ids_there() == []
    site.options = {"commit": "prepared"}
    site.run(1, rows(3))
    assert site.ids_there() == [1, 2, 3]
    assert site.leftovers() == []


def _away(*_: object) -> None:
    from psycopg import OperationalError

    raise OperationalError("gone")


def test_old_epochs_are_forgotten(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table stays small; a dead committer that comes with one of them doubles nothing."""
    monkeypatch.setattr("filesink.sinks.postgres.target.epochs._KEPT", 2)
    dead = site.staged(rows(0))
    commit(site, dead)
    for slot in range(1, 6):
        commit(site, site.staged(rows(slot), epoch=slot))
    assert site.do("SELECT slot FROM {s}.filesink_epochs ORDER BY slot") == [(3,), (4,), (5,)]
    with pytest.raises(StagedDataLost):
        commit(site, dead)
    assert site.ids_there() == list(range(6))
