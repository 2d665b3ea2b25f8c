"""What is right before an epoch is decided."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from filesink import DataError
from tests.sinks.postgres.site import Site, rows

_TRIGGER = """
    CREATE FUNCTION {{s}}.judge() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN IF NEW.id = {} THEN {}; END IF; RETURN NEW; END $$;
    CREATE TRIGGER judge BEFORE INSERT ON {{t}} FOR EACH ROW EXECUTE FUNCTION {{s}}.judge()
"""
_FOREIGN_KEY = """
    CREATE TABLE {s}.known (id bigint PRIMARY KEY);
    INSERT INTO {s}.known VALUES (10), (20), (30);
    ALTER TABLE {t} ADD FOREIGN KEY (id) REFERENCES {s}.known
"""


@dataclass(frozen=True)
class Guard:
    """What a table has to refuse rows: 10, 20 and 30 are welcome, ``bad`` is not, or not after 10."""

    statement: str
    bad: int


GUARDS = {
    "check": Guard("ALTER TABLE {t} ADD CHECK (id <> 99)", bad=99),
    "unique index": Guard("CREATE UNIQUE INDEX ON {t} ((id / 10))", bad=11),
    "deferred": Guard("ALTER TABLE {t} ADD UNIQUE (name) DEFERRABLE INITIALLY DEFERRED", bad=10),
    "exclusion": Guard("ALTER TABLE {t} ADD EXCLUDE (name WITH =)", bad=10),
    "foreign key": Guard(_FOREIGN_KEY, bad=99),
    "trigger": Guard(_TRIGGER.format(99, "RAISE EXCEPTION 'n99'"), bad=99),
    "trigger with a state of its own": Guard(
        _TRIGGER.format(99, "RAISE EXCEPTION 'n99' USING ERRCODE = 'U0099'"), bad=99
    ),
}


@pytest.mark.parametrize("name", GUARDS)
def test_a_row_that_the_table_would_refuse(site: Site, name: str) -> None:
    """It fails its epoch before the decision: nothing is visible or left, and the stream can go on."""
    site.do(GUARDS[name].statement)
    before = site.leftovers()
    site.run(0, rows(10), rows(20))
    bad = GUARDS[name].bad
    with pytest.raises(DataError) as raised:
        site.run(1, rows(30), rows(bad))
    assert raised.value.code == "POSTGRES_VALUE"
    assert f"n{bad}" not in str(raised.value)
    assert site.leftovers() == before
    site.run(1, rows(30))
    assert site.ids_there() == [10, 20, 30]


def test_a_partitioned_table(site: Site) -> None:
    """A row without a partition is refused before the decision, all others find theirs."""
    own = site.beside(ddl="")
    own.do("CREATE TABLE {t} (id bigint, name text) PARTITION BY RANGE (id)")
    own.do("CREATE TABLE {s}.p PARTITION OF {t} FOR VALUES FROM (0) TO (10)")
    own.run(0, rows(1))
    with pytest.raises(DataError):
        own.run(1, rows(11))
    assert own.ids_there() == [1]


def test_a_trigger_that_leaves_rows_out(site: Site) -> None:
    """They are not taken for lost."""
    site.do(_TRIGGER.format(2, "RETURN NULL"))
    site.run(0, rows(1, 2, 3), rows(2))
    assert site.ids_there() == [1, 3]


def test_a_plain_table_is_written_to_once(site: Site) -> None:
    """There is nothing to rehearse: after two rows there is one page, and two places in it."""
    site.run(0, rows(1, 2))
    assert site.do("SELECT max(ctid::text) FROM {t}") == [("(0,2)",)]


def test_a_rehearsal_may_be_left_out(site: Site) -> None:
    """Then a row that the table refuses stops the epoch after the decision."""
    site.do("ALTER TABLE {t} ADD CHECK (id <> 99)")
    site.run(0, rows(1, 2), rehearsal="never")
    assert site.do("SELECT max(ctid::text) FROM {t}") == [("(0,2)",)]
    with pytest.raises(DataError):
        site.run(1, rows(99), rehearsal="never")
    assert len(site.leftovers()) == 1
