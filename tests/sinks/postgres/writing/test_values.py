"""Values of every type arrive as they are; what a type cannot have is refused, and the value is not shown."""

from __future__ import annotations

import datetime as dt
import uuid
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from filesink import DataError
from filesink.sinks.postgres.copy import fields, wire
from tests.sinks.postgres.site import Site, commit

UTC = dt.UTC
DAY = dt.timedelta(days=1)
NAN = float("nan")

#: Arrow type, type of the column, values in Arrow, and what an observer sees where that differs.
CASES: dict[str, tuple[pa.DataType, str, list[Any], list[Any] | None]] = {
    "bool": (pa.bool_(), "boolean", [True, False], None),
    "int8": (pa.int8(), "smallint", [-128, 0, 127], None),
    "int16": (pa.int16(), "smallint", [-(2**15), 0, 2**15 - 1], None),
    "int32": (pa.int32(), "integer", [-(2**31), 0, 2**31 - 1], None),
    "int64": (pa.int64(), "bigint", [-(2**63), 0, 2**63 - 1], None),
    "widened": (pa.int8(), "bigint", [-128, 127], None),
    "float": (pa.float32(), "real", [0.5, -1.25, float("inf")], None),
    "double": (pa.float64(), "double precision", [1e-300, -0.1, float("-inf")], None),
    "widened float": (pa.float32(), "double precision", [0.5, -1.25], None),
    "decimal": (pa.decimal128(38, 7), "numeric", [Decimal("-1.0000001"), Decimal(10**30), Decimal(0)], None),
    "small decimal": (pa.decimal128(9, 2), "numeric(9,2)", [Decimal("-1234567.89"), Decimal("0.01")], None),
    "fraction": (pa.decimal128(5, 5), "numeric", [Decimal("0.00001"), Decimal("-0.99999")], None),
    "whole decimal": (pa.decimal128(38, 0), "numeric(38)", [Decimal(10**38 - 1), Decimal(1 - 10**38)], None),
    "int as numeric": (pa.int64(), "numeric(19,0)", [-(2**63), 2**63 - 1, 10_000], None),
    "text": (pa.string(), "text", ["", "a\tb\\N\n", "ßλ🦆", "'\""], None),
    "large text": (pa.large_string(), "text", ["", "ab"], None),
    "varchar": (pa.string(), "varchar(3)", ["", "abc"], None),
    "char": (pa.string(), "char(3)", ["a", "abc"], ["a  ", "abc"]),
    "json": (pa.string(), "json", ['{"a": [1]}'], [{"a": [1]}]),
    "jsonb": (pa.string(), "jsonb", ['{"a": [1]}', "null"], [{"a": [1]}, None]),
    "uuid": (pa.string(), "uuid", ["00112233-4455-6677-8899-AABBCCDDEEFF", "{" + "0" * 32 + "}"],
             [uuid.UUID("00112233-4455-6677-8899-aabbccddeeff"), uuid.UUID(int=0)]),
    "enum": (pa.string(), "{s}.mood", ["sad", "happy"], None),
    "domain": (pa.int32(), "{s}.positive", [1, 2], None),
    "binary": (pa.binary(), "bytea", [b"", b"\x00\xff"], None),
    "date": (pa.date32(), "date", [dt.date(1, 1, 1), dt.date(1999, 12, 31), dt.date(9999, 12, 31)], None),
    "timestamp": (pa.timestamp("us", "Europe/Berlin"), "timestamptz",
                  [dt.datetime(1, 1, 2, tzinfo=UTC), dt.datetime(2026, 3, 29, 1, 30, 0, 123456, UTC)], None),
    "local": (pa.timestamp("us"), "timestamp", [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23)], None),  # noqa: DTZ001
    "time": (pa.time64("us"), "time", [dt.time(0), dt.time(23, 59, 59, 999999)], None),
    "interval": (pa.duration("us"), "interval", [dt.timedelta(microseconds=-1), 400 * DAY], None),
    "array": (pa.list_(pa.int64()), "bigint[]", [[], [1, None], [2, 3, 4]], None),
    "array of text": (pa.list_(pa.string()), "text[]", [[""], ["a", None, "{}"]], None),
    "array of decimals": (pa.list_(pa.decimal128(5, 2)), "numeric(5,2)[]", [[Decimal("1.25")], []], None),
}  # fmt: skip


def arrived(site: Site, column: pa.Array[Any]) -> list[Any]:
    """What an observer sees of ``column`` when it was written to the column ``v``."""
    assert commit(site, site.staged(pa.record_batch({"v": column}))) == []
    return [value for (value,) in site.do("SELECT v FROM {t}")]


def site_of(site: Site, sql_type: str) -> Site:
    """A table with one column of this type."""
    own = site.beside(ddl="")
    own.do("CREATE TYPE {s}.mood AS ENUM ('sad', 'happy')")
    own.do("CREATE DOMAIN {s}.positive AS integer CHECK (VALUE > 0)")
    own.do(f"CREATE TABLE {{t}} (v {sql_type})")
    return own


@pytest.mark.parametrize("name", CASES)
def test_a_type(site: Site, name: str) -> None:
    """Every value arrives as it is."""
    kind, sql_type, values, seen = CASES[name]
    assert arrived(site_of(site, sql_type), pa.array(values, kind)) == (values if seen is None else seen)


@pytest.mark.parametrize("name", CASES)
def test_a_slice(site: Site, name: str) -> None:
    """Of a longer array, which shares its buffers, with nulls."""
    kind, sql_type, values, seen = CASES[name]
    own = site_of(site, sql_type)
    column = pa.array([None, *values, None, *values], kind).slice(1, len(values) + 1)
    assert arrived(own, column) == [*(values if seen is None else seen), None]


def test_not_a_number(site: Site) -> None:
    """NaN is a value of both kinds of floats."""
    assert [str(one) for one in arrived(site_of(site, "real"), pa.array([NAN], pa.float32()))] == ["nan"]


#: What the type of the column cannot have: Arrow type, type of the column, a value.
REFUSED: dict[str, tuple[pa.DataType, str, Any]] = {
    "U+0000": (pa.string(), "text", "secret\0"),
    "too long": (pa.string(), "varchar(3)", "secret"),
    "no json": (pa.string(), "jsonb", "secret"),
    "no uuid": (pa.string(), "uuid", "secret"),
    "no member": (pa.string(), "{s}.mood", "secret"),
    "outside of a domain": (pa.int32(), "{s}.positive", -77123),
    "too early a day": (pa.int32(), "date", -(2**31)),
    "too early": (pa.int64(), "timestamp", -(2**63)),
    "null": (pa.string(), "text NOT NULL", None),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_value_that_is_refused(site: Site, name: str) -> None:
    """In the task, before anything is decided. The message names the column and never the value."""
    kind, sql_type, value = REFUSED[name]
    own = site_of(site, sql_type)
    column: Any = pa.array([value], kind)
    if sql_type in {"date", "timestamp"}:
        column = column.view(pa.date32() if sql_type == "date" else pa.timestamp("us"))
    with pytest.raises(DataError) as raised:
        own.staged(pa.record_batch({"v": column}))
    assert raised.value.code == "POSTGRES_VALUE"
    assert "'v'" in str(raised.value) or name == "outside of a domain"
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__
    assert "secret" not in str(raised.value)
    assert "77123" not in str(raised.value)
    assert own.leftovers() == []


unscaled = st.integers(1 - 10**38, 10**38 - 1)


@given(st.integers(0, 38), st.lists(st.none() | unscaled, min_size=1))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_decimal(site: Site, scale: int, numbers: list[int | None]) -> None:
    """Whatever its scale and size."""
    values = [None if one is None else Decimal(f"{one}E-{scale}") for one in numbers]
    own = site.beside(ddl="v numeric")
    assert arrived(own, pa.array(values, pa.decimal128(38, scale))) == values


COLUMNS = {
    "i": (pa.int64(), "bigint", st.integers(-(2**63), 2**63 - 1)),
    "s": (pa.string(), "text", st.text(st.characters(codec="utf-8", exclude_characters="\0"))),
    "b": (pa.binary(), "bytea", st.binary()),
    "d": (pa.date32(), "date", st.dates()),
    "a": (pa.list_(pa.int32()), "integer[]", st.lists(st.none() | st.integers(-(2**31), 2**31 - 1))),
}


@given(st.lists(st.tuples(*(st.none() | values for _, _, values in COLUMNS.values())), min_size=1))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_rows(site: Site, rows: list[tuple[Any, ...]]) -> None:
    """Columns of one width and of any, with and without nulls, beside each other."""
    own = site.beside(ddl=", ".join(f"{name} {sql_type}" for name, (_, sql_type, _) in COLUMNS.items()))
    columns = {
        name: pa.array([row[place] for row in rows], kind)
        for place, (name, (kind, _, _)) in enumerate(COLUMNS.items())
    }
    commit(own, own.staged(pa.record_batch(columns)))
    assert Counter(map(repr, own.do("SELECT * FROM {t}"))) == Counter(map(repr, rows))


def test_the_bytes_of_a_row() -> None:
    """As the manual of PostgreSQL has them."""
    row = [fields.number(">i4", pa.int32())(pa.array([7], pa.int32())), fields.text(pa.array(["ab"]))]
    assert wire.rows(row, 1).to_pybytes() == bytes.fromhex("0002 00000004 00000007 00000002 6162")
    assert wire.rows(row[:1], 1).to_pybytes() == bytes.fromhex("0001 00000004 00000007")


def test_a_large_batch_goes_in_pieces(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Offsets have 32 bits."""
    monkeypatch.setattr("filesink.sinks.postgres.writer._AT_ONCE", 64)
    own = site.beside(ddl="v text")
    assert arrived(own, pa.array([f"{one:09}" for one in range(100)])) == [f"{one:09}" for one in range(100)]
