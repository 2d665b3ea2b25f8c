"""Envelopes of Debezium, Canal and Maxwell as rows with a kind, and rows with a kind as such messages."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - as all PySpark code does

from filesink import ConfigError, FilesinkError, SchemaError, changes
from filesink.spark.input.job import typed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

pytestmark = pytest.mark.spark

COLUMNS = "id BIGINT, name STRING"
SOURCE = {"connector": "mysql", "ts_ms": 1, "file": "mysql-bin.000003", "pos": 154}
A, B = {"id": 1, "name": "a"}, {"id": 1, "name": "b"}
DECODERS = {"debezium": changes.debezium, "canal": changes.canal, "maxwell": changes.maxwell}
Change = tuple[Any, ...]


def messages(spark: SparkSession, *given: Any) -> DataFrame:
    """Messages in the column ``value``: text as it is, anything else as JSON, with their offsets."""
    texts = [one if isinstance(one, str) or one is None else json.dumps(one) for one in given]
    return spark.createDataFrame(list(enumerate(texts)), "offset BIGINT, value STRING")


def event(op: str, before: Any = None, after: Any = None, **more: Any) -> dict[str, Any]:
    """A message of Debezium, as its documentation shows it."""
    return {"before": before, "after": after, "source": SOURCE, "op": op, "ts_ms": 2, **more}


def found(df: DataFrame) -> list[Change]:
    """The rows, as tuples with their kind first."""
    return [
        (row["row_kind"], *(row[name] for name in df.columns if name != "row_kind")) for row in df.collect()
    ]


DOCUMENTED: list[tuple[str, Any, list[Change]]] = [
    ("debezium", event("c", after=A), [("+I", 1, "a")]),
    ("debezium", event("r", after=A), [("+I", 1, "a")]),  # of a snapshot
    ("debezium", event("u", A, B), [("-U", 1, "a"), ("+U", 1, "b")]),
    ("debezium", event("u", None, B), [("+U", 1, "b")]),  # REPLICA IDENTITY DEFAULT
    ("debezium", event("u", {"id": 1}, {"id": 2, "name": "a"}), [("-U", 1, None), ("+U", 2, "a")]),
    ("debezium", event("d", A), [("-D", 1, "a")]),
    ("debezium", event("d", {"id": 1}), [("-D", 1, None)]),
    ("debezium", None, []),  # a tombstone
    ("debezium", {"schema": {"type": "struct"}, "payload": event("c", after=A)}, [("+I", 1, "a")]),
    ("debezium", {"payload": event("u", A, B)}, [("-U", 1, "a"), ("+U", 1, "b")]),
    ("debezium", event("c", after={"name": "a", "more": [1], "id": 1}, transaction=None), [("+I", 1, "a")]),
    ("maxwell", {"type": "insert", "data": A, "ts": 1, "xid": 2, "commit": True}, [("+I", 1, "a")]),
    ("maxwell", {"type": "update", "data": B, "old": {"name": "a"}}, [("-U", 1, "a"), ("+U", 1, "b")]),
    ("maxwell", {"type": "update", "data": B, "old": {"name": None}}, [("-U", 1, None), ("+U", 1, "b")]),
    ("maxwell", {"type": "update", "data": A, "old": {"id": 7}}, [("-U", 7, "a"), ("+U", 1, "a")]),
    ("maxwell", {"type": "update", "data": A, "old": {}}, [("-U", 1, "a"), ("+U", 1, "a")]),
    ("maxwell", {"type": "delete", "data": A}, [("-D", 1, "a")]),
    ("maxwell", {"type": "bootstrap-start", "data": {}}, []),
    ("maxwell", {"type": "bootstrap-insert", "data": A}, [("+I", 1, "a")]),
    ("maxwell", {"type": "bootstrap-complete", "data": {}}, []),
    ("maxwell", None, []),
    (
        "canal",
        {
            "type": "INSERT",
            "isDdl": False,
            "data": [{"id": "1", "name": "a"}, {"id": "2", "name": None}],
            "old": None,
        },
        [("+I", 1, "a"), ("+I", 2, None)],
    ),
    (
        "canal",
        {
            "type": "UPDATE",
            "data": [{"id": "1", "name": "b"}, {"id": "3", "name": "c"}, {"id": "4", "name": "d"}],
            "old": [{"name": "a"}, {"id": "2"}, {"name": None}],
            "pkNames": ["id"],
        },
        [("-U", 1, "a"), ("+U", 1, "b"), ("-U", 2, "c"), ("+U", 3, "c"), ("-U", 4, None), ("+U", 4, "d")],
    ),
    ("canal", {"type": "DELETE", "data": [{"id": "1", "name": "a"}], "old": None}, [("-D", 1, "a")]),
    ("canal", None, []),
]


def test_documented_messages(spark: SparkSession) -> None:
    """Each becomes the rows that its source has changed, in their order; what else is in it is left alone."""
    for name, decode in DECODERS.items():
        given = [(message, rows) for one, message, rows in DOCUMENTED if one == name]
        df = decode(messages(spark, *(message for message, _ in given)), COLUMNS, order=["offset"])
        expected = [
            (*row, [offset, place])
            for offset, (_, rows) in enumerate(given)
            for place, row in enumerate(rows)
        ]
        assert sorted(found(df), key=lambda row: row[-1]) == expected
        assert df.columns == ["id", "name", "row_kind", "row_order"]


NO_OBJECT = ["", " ", "null", "5", '"c"', "[]", "{", "{} {}", "not JSON", "\ud83e"[:0] + "{'a': 1}"]
MALFORMED: dict[str, list[Any]] = {
    "debezium": [
        *NO_OBJECT,
        [event("c", after=A), event("c", after=B)],  # of which a reader would take the first
        json.dumps(event("c", after=A)) * 2,
        json.dumps(event("c", after=A)) + ", " + json.dumps(event("c", after=B)),
        json.dumps(event("c", after=A)) + " x",
        json.dumps(event("c", after=A))[:-1],
        {},
        event("c"),
        event("c", A),
        event("d", None, A),
        event("u", A),
        event("t"),  # a truncate
        event("m"),
        event("x", A, B),
        event("C", after=A),
        {"after": A},
        {"schema": None, "payload": None},
        event("c", after=5),
        event("c", after=[A]),
        event("c", after="a"),
        event("c", after={"id": "one", "name": "a"}),
        event("c", after={"id": 1.5, "name": "a"}),
        event("c", after={"id": 1 << 70, "name": "a"}),
        event("u", {"id": "x"}, A),
        event("c", after={"id": 1, "name": "__debezium_unavailable_value"}),
        event("u", {"id": 1}, {"id": 1, "name": "__debezium_unavailable_value"}),
        event("c", after={"ID": 1, "Name": "a"}),  # names of other columns, and so are the next ones
        event("c", after={"nope": 1}),
        event("c", after={}),
        event("d", {"ID": 1}),
        event("u", {"ID": 1}, A),
        {"payload": event("u", A, {"ID": 1})},
    ],
    "maxwell": [
        *NO_OBJECT,
        {"type": "insert"},
        {"type": "update", "data": A},
        {"type": "INSERT", "data": A},
        {"type": "insert", "data": {"id": "one"}},
        {"data": A},
        *({"type": one, "data": {"ID": 1}, "old": {}} for one in ("insert", "update", "delete")),
        {"type": "insert", "data": {}},
    ],
    "canal": [
        *NO_OBJECT,
        {"type": "INSERT", "data": None},
        {"type": "INSERT", "data": []},
        {"type": "INSERT", "data": [None]},
        {"type": "INSERT", "data": {"id": "1"}},
        {"type": "INSERT", "data": [{"id": "1x"}]},
        {"type": "INSERT", "data": [{"id": "1"}, {"id": "x"}]},
        {"type": "INSERT", "isDdl": True, "data": [{"id": "1"}]},
        {"type": "UPDATE", "data": [{"id": "1"}], "old": None},
        {"type": "UPDATE", "data": [{"id": "1"}], "old": []},
        {"type": "UPDATE", "data": [{"id": "1"}, {"id": "2"}], "old": [{"id": "0"}]},
        {"type": "UPDATE", "data": [{"id": "1"}], "old": [{"id": "x"}]},
        {"type": "TRUNCATE", "isDdl": True, "data": None, "sql": "TRUNCATE TABLE a"},
        {"type": "QUERY", "isDdl": False, "sql": "…"},
        {"data": [{"id": "1"}]},
        {"type": "INSERT", "data": [{"id": "1"}, {"ID": "2"}]},
        {"type": "DELETE", "data": [{}]},
        {"type": "UPDATE", "data": [{"ID": "1"}], "old": [{}]},
    ],
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_messages_are_rescued(spark: SparkSession, name: str) -> None:
    """Each as it is, in a row of its own without a kind, beside the rows of others: nothing is left out."""
    good = next(message for one, message, rows in DOCUMENTED if one == name and rows)
    df = messages(spark, *MALFORMED[name], good)
    rows = DECODERS[name](df, COLUMNS, order=["offset"], on_malformed="rescue").collect()
    texts = {row["offset"]: row["value"] for row in df.collect()}
    for row in rows:
        offset = row["row_order"][0]
        if offset == len(MALFORMED[name]):
            assert (row["row_kind"], row["rescued"]) == ("+I", None)
        else:
            assert row["rescued"] == texts[offset], texts[offset]
            assert (row["row_kind"], row["id"], row["name"]) == (None, None, None)
    assert {row["row_order"][0] for row in rows} == set(texts)


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_messages_fail_the_task(spark: SparkSession, name: str) -> None:
    """With an error of ours, which shows nothing of the message; also where only rows are counted."""
    decode = DECODERS[name]
    for bad in ("hush", MALFORMED[name][-1]):
        df = decode(messages(spark, bad), COLUMNS)
        for action in (df.collect, df.count):
            with pytest.raises(PySparkException) as raised:
                action()
            error = typed(raised.value)
            assert error is not None
            assert (type(error).__name__, error.code) == ("DataError", "MALFORMED_CHANGE")
            assert "hush" not in str(raised.value)


def test_bytes(spark: SparkSession) -> None:
    """As Kafka has them; those that are no UTF-8 would become other ones in silence."""
    good = json.dumps(event("c", after={"id": 1, "name": "ß🦆"}), ensure_ascii=False).encode()
    bad = good.replace("ß".encode(), b"\xff\xfe")
    df = spark.createDataFrame([(good,), (bad,), (None,)], "payload BINARY")
    rows = changes.debezium(df, COLUMNS, value="payload", on_malformed="rescue").collect()
    assert [row["name"] for row in rows] == ["ß🦆", None]
    assert rows[1]["rescued"] is not None


WIDE = (
    "i INT, l BIGINT, n DECIMAL(30,9), f DOUBLE, b BOOLEAN, s STRING, d DATE, t TIMESTAMP, "
    "u TIMESTAMP_NTZ, x BINARY"
)
VALUES: dict[str, Any] = {
    "i": -1,
    "l": 1 << 62,
    "n": Decimal("123456789012345678901.123456789"),
    "f": 0.1,
    "b": True,
    "s": "it's \"\\",
    "d": date(2024, 2, 29),
    "t": datetime(2024, 2, 29, 12, 0, 0, 123456),  # noqa: DTZ001 - as Spark hands it out
    "u": datetime(2024, 2, 29, 12),  # noqa: DTZ001
    "x": bytearray(b"\x00\xff"),
}
JSON_VALUES = (
    '{"i": -1, "l": 4611686018427387904, "n": %s, "f": 0.1, "b": true, "s": "it\'s \\"\\\\", '
    '"d": "2024-02-29",'
    ' "t": "2024-02-29T12:00:00.123456Z", "u": "2024-02-29 12:00:00", "x": "AP8="}'
)


def test_values(spark: SparkSession) -> None:
    """Of every type, with all their digits, as number or text; whole numbers are never taken for a time."""
    number, text = "123456789012345678901.123456789", '"123456789012345678901.123456789"'
    for one in (number, text):
        row = JSON_VALUES % one
        given = {
            "debezium": f'{{"op": "c", "after": {row}}}',
            "maxwell": f'{{"type": "insert", "data": {row}}}',
        }
        for name, message in given.items():
            (seen,) = DECODERS[name](messages(spark, message), WIDE).drop("row_kind").collect()
            assert seen.asDict() == VALUES
    texts = {key: str(value) for key, value in json.loads(JSON_VALUES % text).items()}
    (seen,) = (
        changes.canal(messages(spark, {"type": "INSERT", "data": [texts]}), WIDE).drop("row_kind").collect()
    )
    assert seen.asDict() == VALUES
    for bad in (
        {"d": 19000},
        {"t": 1709208000000},
        {"u": 1709208000000},
        {"x": "!"},
        {"b": 1},
        {"s": None, "i": True},
    ):
        df = changes.debezium(messages(spark, event("c", after=bad)), WIDE, on_malformed="rescue")
        assert df.where("rescued IS NULL").count() == 0, bad


def test_a_row_of_nulls_is_a_row(spark: SparkSession) -> None:
    """If any of its columns is there: a column that may be null is all that some want."""
    row = {"id": 1, "name": None}
    given = {
        "debezium": [event("c", after=row), {"payload": event("d", row)}],
        "maxwell": [{"type": "insert", "data": row}, {"type": "delete", "data": row}],
        "canal": [{"type": kind, "data": [row]} for kind in ("INSERT", "DELETE")],
    }
    for name, sent in given.items():
        for columns in ("name STRING", "name STRING, more BIGINT", "name DECIMAL(10,2)"):
            rows = DECODERS[name](messages(spark, *sent), columns).collect()
            assert [(one["row_kind"], one["name"]) for one in rows] == [("+I", None), ("-D", None)], name


TOO_FINE = {
    "DECIMAL(20,2)": ['"1.119"', '"1.005"', "1.119", "1e-3", '"1119E-3"', '"0.001"', "12345678901234567.891"],
    "DECIMAL(38,10)": ['"1.00000000001"', "1.00000000001", "1234567890123456789.12345678901"],
    "DECIMAL(3,0)": ['"1.5"', "1.5", "1000", '"1000"', '"1,5"', '"1,000"', '"1e3"', '""', '"NaN"'],
    "BIGINT": ["1.7", "1e30"],
    "DATE": ['"2026-01-02T10:00:00"', '"2026-02-30"', '"2026-01-02 00:00:00.5"'],
    "TIMESTAMP": ['"2026-01-01T00:00:00.123456789Z"'],
    "TIMESTAMP_NTZ": ['"2026-01-01T00:00:00.0000001"'],
}
EXACT = {
    "DECIMAL(20,2)": {
        **dict.fromkeys(('"1.10"', "1.1", '"1.100000000000000000000000000000000"', "11e-1"), "1.10"),
        '"0E-10"': "0.00",
        "0e-10": "0.00",
        '"1.2E+3"': "1200.00",
        "1e3": "1000.00",
        '"10e-3"': "0.01",
        '".5"': "0.50",
        '"-5."': "-5.00",
        " 7 ": "7.00",
        "12345678901234567.89": "12345678901234567.89",
    },
    "DECIMAL(38,10)": {one: one.strip('"') for one in ("1234567890123456789012345678.0123456789",)},
    "DECIMAL(38,0)": {'"1e37"': "1" + "0" * 37, "9" * 38: "9" * 38},
    "DATE": {'"2026-01-02"': "2026-01-02", '"2026-01-02T00:00:00"': "2026-01-02"},
    "TIMESTAMP_NTZ": {'"2026-01-01T00:00:00.123456000"': "2026-01-01 00:00:00.123456"},
}


def holding(name: str, value: str) -> str:
    """A message with a row of one value, as JSON has it; Canal has all of them as text."""
    if name == "canal":
        return f'{{"type": "INSERT", "data": [{{"a": {json.dumps(value.strip(chr(34)))}}}]}}'
    if name == "maxwell":
        return f'{{"type": "insert", "data": {{"a": {value}}}}}'
    return f'{{"op": "c", "after": {{"a": {value}}}}}'


@pytest.mark.parametrize("kind", TOO_FINE)
def test_no_value_is_rounded(spark: SparkSession, kind: str) -> None:
    """What its column cannot have is malformed; what it can have has all of its digits, however written."""
    expected: dict[str, str | None] = {**dict.fromkeys(TOO_FINE[kind]), **EXACT.get(kind, {})}
    for name, decode in DECODERS.items():
        df = messages(spark, *(holding(name, value) for value in expected))
        rows = decode(df, f"a {kind}", order=["offset"], on_malformed="rescue")
        rows = rows.selectExpr("row_order[0] AS n", "CAST(a AS STRING) AS a", "rescued IS NULL AS taken")
        seen = {row["n"]: (row["a"], row["taken"]) for row in rows.collect()}
        for number, (value, shown) in enumerate(expected.items()):
            assert seen[number] == (shown, shown is not None), (name, value)


def test_a_long_value_that_was_left_alone(spark: SparkSession) -> None:
    """Debezium's word for it is never taken for the value: that is in the row of before, or nowhere."""
    word = "__debezium_unavailable_value"
    df = messages(
        spark,
        event("u", {"id": 1, "name": "long"}, {"id": 1, "name": word}),
        event("d", {"id": 1, "name": word}),
    )
    assert sorted(found(changes.debezium(df, COLUMNS))) == [
        ("+U", 1, "long"),
        ("-D", 1, None),
        ("-U", 1, "long"),
    ]


def test_orders(spark: SparkSession) -> None:
    """Columns or expressions, the most significant first; null, if one of them is none."""
    df = messages(spark, event("c", after=A), event("d", A)).withColumn("a.`b", F.lit(5))
    orders: list[str | Column] = [
        F.get_json_object("value", "$.source.pos"),
        "a.`b",
        F.timestamp_micros(F.col("offset")),
    ]
    rows = changes.debezium(df, COLUMNS, order=orders).collect()
    assert [row["row_order"] for row in rows] == [[154, 5, 0, 0], [154, 5, 1, 0]]
    rows = changes.debezium(
        df, COLUMNS, order=[F.get_json_object("value", "$.source.lsn"), "offset"]
    ).collect()
    assert [row["row_order"] for row in rows] == [None, None]


def test_names_of_columns(spark: SparkSession) -> None:
    """Whatever they are: with dots, quotes, words of SQL."""
    row = {"a.b": 1, "`": "q", "select": "s", "text": "t", "change": "c"}
    schema = "`a.b` INT, ```` STRING, `select` STRING, text STRING, change STRING"
    for name, message in {
        "debezium": event("c", after=row),
        "maxwell": {"type": "insert", "data": row},
        "canal": {"type": "INSERT", "data": [{key: str(value) for key, value in row.items()}]},
    }.items():
        (seen,) = DECODERS[name](messages(spark, message), schema).collect()
        assert seen.asDict() == {**row, "row_kind": "+I"}
        back = getattr(changes, f"to_{name}")(DECODERS[name](messages(spark, message), schema))
        assert json.loads(back.collect()[0]["value"]) is not None


@pytest.mark.parametrize("name", DECODERS)
def test_a_message_is_parsed_once(spark: SparkSession, name: str) -> None:
    """However many columns there are; Spark pulls nothing of it into a filter of its own."""
    schema = ", ".join(f"c{number} STRING" for number in range(9))
    df = DECODERS[name](messages(spark, {}), schema).where("c1 > 1 AND row_kind <> '-U'")
    plan = df._jdf.queryExecution().optimizedPlan().toString()
    assert plan.count("StructField(m,") == 1


@pytest.mark.parametrize("name", DECODERS)
def test_there_and_back(spark: SparkSession, name: str) -> None:
    """What is written as messages is read as the same rows: what goes is a delete, what comes an insert."""
    rows = [("+I", 1, "a"), ("-U", 2, None), ("+U", 2, 'ß\n"'), ("-D", 3, "c")]
    df = spark.createDataFrame(rows, "row_kind STRING, id BIGINT, name STRING").coalesce(1)
    written = getattr(changes, f"to_{name}")(df)
    assert written.columns == ["value"]
    if name == "canal":  # all of whose values are texts
        written = getattr(changes, f"to_{name}")(df.withColumn("id", F.col("id").cast("string")))
    assert found(DECODERS[name](written, COLUMNS)) == [
        ("+I", 1, "a"),
        ("-D", 2, None),
        ("+I", 2, 'ß\n"'),
        ("-D", 3, "c"),
    ]


def test_the_shapes_of_messages(spark: SparkSession) -> None:
    """They are those of Flink and SeaTunnel, nulls included."""
    df = spark.createDataFrame(
        [("+U", 1, None), ("-U", 2, "b")], "row_kind STRING, id INT, name STRING"
    ).coalesce(1)
    shown = {
        "debezium": [
            '{"before":null,"after":{"id":1,"name":null},"op":"c"}',
            '{"before":{"id":2,"name":"b"},"after":null,"op":"d"}',
        ],
        "canal": [
            '{"data":[{"id":1,"name":null}],"type":"INSERT"}',
            '{"data":[{"id":2,"name":"b"}],"type":"DELETE"}',
        ],
        "maxwell": [
            '{"data":{"id":1,"name":null},"type":"insert"}',
            '{"data":{"id":2,"name":"b"},"type":"delete"}',
        ],
    }
    for name, expected in shown.items():
        assert [row["value"] for row in getattr(changes, f"to_{name}")(df).collect()] == expected


def test_kinds_by_their_words(spark: SparkSession) -> None:
    """Those of all systems; any other word fails the task, and so does none."""
    words = ["c", "r", "u", "d", "INSERT", "UPDATE", "DELETE", "insert", "bootstrap-insert", "-U", "+I"]
    df = spark.createDataFrame([(one,) for one in words], "op STRING").coalesce(1)
    kinds = [row[0] for row in df.select(changes.row_kind(df.op)).collect()]
    assert kinds == ["+I", "+I", "+U", "-D", "+I", "+U", "-D", "+I", "+I", "-U", "+I"]
    for bad in ("t", "", None):
        df = spark.createDataFrame([(bad,)], "op STRING")
        with pytest.raises(PySparkException) as raised:
            df.select(changes.row_kind(df.op)).collect()
        error = typed(raised.value)
        assert error is not None
        assert error.code == "ROW_KIND"


@pytest.mark.parametrize(
    ("schema", "options", "kind", "code"),
    [
        ("", {}, ConfigError, "BAD_VALUE"),
        ("id", {}, ConfigError, "BAD_VALUE"),
        (5, {}, ConfigError, "BAD_VALUE"),
        ("id BIGINT, tags ARRAY<STRING>", {}, SchemaError, "TYPE"),
        ("id BIGINT, more STRUCT<a: INT>", {}, SchemaError, "TYPE"),
        ("id BIGINT, Row_Kind STRING", {}, SchemaError, "RESERVED_COLUMN"),
        (COLUMNS, {"value": "nothing"}, SchemaError, "UNKNOWN_COLUMN"),
        (COLUMNS, {"value": "offset"}, SchemaError, "UNKNOWN_COLUMN"),
        (COLUMNS, {"value": 1}, ConfigError, "BAD_VALUE"),
        (COLUMNS, {"order": [F.lit]}, ConfigError, "BAD_VALUE"),
        (COLUMNS, {"order": "offset"}, ConfigError, "BAD_VALUE"),
        (COLUMNS, {"order": ["nothing"]}, SchemaError, "UNKNOWN_COLUMN"),
        (COLUMNS, {"on_malformed": "skip"}, ConfigError, "BAD_VALUE"),
    ],
)
def test_what_cannot_be(
    spark: SparkSession, schema: Any, options: dict[str, Any], kind: type, code: str
) -> None:
    """Refused when it is given."""
    for decode in DECODERS.values():
        with pytest.raises(kind) as raised:
            decode(messages(spark, "{}"), schema, **options)
        assert raised.value.code == code


@pytest.mark.parametrize(
    ("schema", "options", "told"),
    [
        ("id BIGNT", {}, "BIGNT"),
        ("id", {}, "schema cannot be read"),
        (
            COLUMNS,
            {"order": ["ofset"]},
            "order names column 'ofset', which the DataFrame does not have; it has",
        ),
        (COLUMNS, {"order": ["a.`b"]}, "'a.`b'"),
    ],
)
def test_what_is_wrong_is_told(spark: SparkSession, schema: str, options: dict[str, Any], told: str) -> None:
    """In one sentence of ours: what was given, and none of Spark's classes of errors."""
    with pytest.raises(FilesinkError) as raised:
        changes.debezium(messages(spark, "{}"), schema, **options)
    assert told in raised.value.message
    assert "\n" not in raised.value.message
    assert "SQLSTATE" not in raised.value.message
    assert "[" not in raised.value.message


def test_an_order_that_is_no_number(spark: SparkSession) -> None:
    """A fraction would be cut."""
    with pytest.raises(SchemaError, match="whole number"):
        changes.debezium(messages(spark, "{}"), COLUMNS, order=[F.lit(0.5)])


def test_messages_of_nothing(spark: SparkSession) -> None:
    """Without the column of kinds, or without any other, there is no message to be made."""
    for df in (spark.range(1), spark.range(1).select(F.lit("+I").alias("row_kind"))):
        with pytest.raises(SchemaError):
            changes.to_debezium(df)
