"""Conditions: which rows they name, and that nothing of them is told."""

from __future__ import annotations

import pyarrow as pa
import pytest

from filesink.errors import ConfigError
from filesink.operations.erasing.condition import parse

SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("Name", pa.string()),
        ("price", pa.decimal128(12, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("day", pa.date32()),
        ("ratio", pa.float32()),
        ("paid", pa.bool_()),
        ("kind", pa.dictionary(pa.int32(), pa.string())),
        ("many", pa.list_(pa.int32())),
        ("a b", pa.int64()),
        ("id2", pa.int32()),
        ("ID2", pa.int32()),
    ]
)
ROWS = pa.table(
    {
        "id": [1, 7, None],
        "Name": ["x", "it's", None],
        "price": ["1.00", "2.50", None],
        "at": ["1970-01-01T00:00:00Z", "2026-01-01T00:00:00Z", None],
        "local": ["1970-01-01T00:00:00", "2026-01-01T00:00:00", None],
        "day": ["1970-01-01", "2026-01-01", None],
        "ratio": ["0.1", "2", None],
        "paid": [True, False, None],
        "kind": ["p", "q", None],
        "many": [[1], [2], None],
        "a b": [1, 2, None],
        "id2": [1, 2, None],
        "ID2": [2, 1, None],
    }
)


def rows() -> pa.Table:
    """Two rows, and one of nulls."""
    columns = [
        ROWS[field.name] if pa.types.is_nested(field.type) else ROWS[field.name].cast(field.type)
        for field in SCHEMA
        if field.name != "many"
    ]
    plain = [field for field in SCHEMA if field.name != "many"]
    many = pa.chunked_array([pa.array([[1], [2], None], pa.list_(pa.int32()))])
    return pa.table([*columns, many], schema=pa.schema([*plain, SCHEMA.field("many")]))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("id = 7", [1]),
        ("ID=7 and NAME = 'it''s'", [1]),
        ("id = 7 AND Name = 'x'", []),
        ("id <> 7", [0]),
        ("id != 7", [0]),
        ("id IN (7, 8)", [1]),
        ("id NOT IN (7)", [0]),
        ("id IS NULL", [2]),
        ("`a b` IS NOT NULL", [0, 1]),
        ('"a b" > 1', [1]),
        ("id2 = 2", [1]),
        ("`ID2` = 2", [0]),
        ("price = 2.5", [1]),
        ("price <= 1", [0]),
        ("at >= '2026-01-01T00:00:00Z'", [1]),
        ("at < '1970-01-01T01:00:00+01:00'", []),
        ("local = '2026-01-01 00:00:00'", [1]),
        ("day < '2026-01-01'", [0]),
        ("ratio = 0.1", [0]),
        ("paid = TRUE", [0]),
        ("paid <> true", [1]),
        ("kind = 'q'", [1]),
        ("id > -1 AND id < 1e1", None),
    ],
)
def test_a_condition_names_rows_as_sql_does(text: str, named: list[int] | None):
    """A comparison with null is not true, and what is not true is kept."""
    condition = parse(text).named_as_in(SCHEMA)
    if named is None:
        with pytest.raises(ConfigError):
            condition.on(SCHEMA)
        return
    table = rows().append_column("row", pa.array([0, 1, 2]))
    found = condition.on(SCHEMA)
    assert table.filter(found)["row"].to_pylist() == named
    assert table.filter(~found | found.is_null())["row"].to_pylist() == [
        one for one in (0, 1, 2) if one not in named
    ]


@pytest.mark.parametrize("sign", ["=", "IN ("])
def test_older_files_may_have_a_narrower_type(sign: str):
    """A number that they cannot have is in none of their rows."""
    wide = pa.schema([("id", pa.int64())])
    end = ")" if "(" in sign else ""
    found = parse(f"id {sign}99999999999{end}").named_as_in(wide).on(wide)
    assert rows().filter(found).num_rows == 0
    assert rows().filter(parse(f"id {sign}7{end}").on(wide)).num_rows == 1


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "CONDITION"),
        ("id", "CONDITION"),
        ("id =", "CONDITION"),
        ("id == 4711", "CONDITION"),
        ("id = 4711 OR id = 1", "CONDITION"),
        ("id = 4711; DROP TABLE x", "CONDITION"),
        ("id = 4711x", "CONDITION"),
        ("Name = 'secret", "CONDITION"),
        ("id IN ()", "CONDITION"),
        ("id IN (4711", "CONDITION"),
        ("id IS 4711", "CONDITION"),
        ("4711 = id", "CONDITION"),
        ("(id = 4711)", "CONDITION"),
        ("id = 'secret'", "CONDITION"),
        ("Name = 4711", "CONDITION"),
        ("id = 4711.5", "CONDITION"),
        ("id = 471147114711", "CONDITION"),
        ("at = '2026-01-01T00:00:00'", "CONDITION"),
        ("day = 'secret'", "CONDITION"),
        ("paid = 'secret'", "CONDITION"),
        ("many = 4711", "CONDITION"),
        ("id = id2", "CONDITION"),
        ("other = 4711", "NO_COLUMN"),
        ("Id2 = 4711", "NO_COLUMN"),
        ("many.item = 4711", "CONDITION"),
    ],
)
def test_what_cannot_be_meant_is_refused_without_its_values(text: str, code: str):
    """Errors go to logs, and the value is what has to be forgotten."""
    with pytest.raises(ConfigError) as caught:
        parse(text).named_as_in(SCHEMA).on(SCHEMA)
    assert caught.value.code == code
    assert "4711" not in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_condition_is_not_shown():
    """Neither in a traceback's values nor in a log of objects."""
    assert "secret" not in repr(parse("a = 'secret' AND b IN ('secret', 'secret')"))
    with pytest.raises(ConfigError, match="where must be text"):
        parse(7)
