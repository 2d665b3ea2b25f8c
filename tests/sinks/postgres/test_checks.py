"""What is right before an epoch is decided."""

from __future__ import annotations

import pytest

from filesink import DataError
from tests.sinks.postgres.site import Site, rows


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE {t} ADD CHECK (id < 5)",
        "CREATE UNIQUE INDEX ON {t} ((id / 10))",
        "ALTER TABLE {t} ADD UNIQUE (name) DEFERRABLE INITIALLY DEFERRED",
        "ALTER TABLE {t} ADD EXCLUDE (name WITH =)",
        "CREATE TABLE {s}.other (id bigint PRIMARY KEY);"
        "INSERT INTO {s}.other VALUES (1), (2), (3);"
        "ALTER TABLE {t} ADD FOREIGN KEY (id) REFERENCES {s}.other",
        "CREATE FUNCTION {s}.no() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN IF NEW.id = 9 THEN RAISE EXCEPTION 'n9'; END IF; RETURN NEW; END $$;"
        "CREATE TRIGGER no BEFORE INSERT ON {t} FOR EACH ROW EXECUTE FUNCTION {s}.no()",
    ],
    ids=["check", "unique index", "deferred", "exclusion", "foreign key", "trigger"],
)
def test_a_row_that_the_table_would_refuse(site: Site, statement: str) -> None:
    """It fails its epoch before the decision: nothing is visible, nothing is left, and the stream can go on."""
    site.do(statement)
    site.do("DROP INDEX IF EXISTS {s}.nothing")
    own = {name for name in site.leftovers()}
    site.run(0, rows(1), rows(2)) if "/ 10" not in statement else site.run(0, rows(1), rows(20))
    name_of_one = rows(1) if "name" in statement else rows(9)
    with pytest.raises(DataError) as raised:
        site.run(1, rows(3), name_of_one)
    assert raised.value.code == "POSTGRES_VALUE"
    assert "n9" not in str(raised.value)
    assert set(site.leftovers()) == own
    site.run(1, rows(3) if "/ 10" not in statement else rows(30))
    assert len(site.ids_there()) == 3


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
    site.do(
        "CREATE FUNCTION {s}.odd() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN IF NEW.id % 2 = 0 THEN RETURN NULL; END IF; RETURN NEW; END $$;"
        "CREATE TRIGGER odd BEFORE INSERT ON {t} FOR EACH ROW EXECUTE FUNCTION {s}.odd()"
    )
    site.run(0, rows(1, 2, 3), rows(4))
    assert site.ids_there() == [1, 3]


def test_a_plain_table_is_written_to_once(site: Site) -> None:
    """There is nothing to rehearse."""
    site.run(0, rows(1, 2))
    assert site.do("SELECT count(*) FROM {t} WHERE xmin <> (SELECT min(xmin::text)::xid FROM {t})") == [(0,)]
    assert site.do("SELECT pg_relation_size('{t}')") == [(8192,)]
