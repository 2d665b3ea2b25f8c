"""JSON lines, against Python's own parser; ``tests/spark`` compares them with Spark's."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import Encoder, FormatError

VALUES = st.none() | st.text()
RECORDS = st.fixed_dictionaries(
    {
        "s": VALUES,
        "i": st.none() | st.integers(-(2**63), 2**63 - 1),
        "f": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "b": st.none() | st.booleans(),
        "l": st.none() | st.lists(VALUES),
        "t": st.none() | st.fixed_dictionaries({"x": VALUES, 'y"': st.none() | st.lists(st.integers(0, 9))}),
        "m": st.none() | st.dictionaries(st.text(), st.none() | st.lists(VALUES), max_size=3),
    }
)
INNER = pa.struct([("x", pa.string()), ('y"', pa.list_(pa.int32()))])
KIND = [("s", pa.string()), ("i", pa.int64()), ("f", pa.float64()), ("b", pa.bool_())]
NESTED = [("l", pa.list_(pa.string())), ("t", INNER), ("m", pa.map_(pa.string(), pa.list_(pa.string())))]
SCHEMA = pa.schema(KIND + NESTED)


def without_nulls(record):
    """What is left of a struct in JSON."""
    return {key: value for key, value in record.items() if value is not None}


@given(st.lists(RECORDS, min_size=1, max_size=6), st.integers(0, 5))
def test_json_reads_back_equal(records, skipped):
    """Any values, sliced anywhere, are what Python's parser reads, without the null fields of structs."""
    rows = [{**r, "m": None if r["m"] is None else list(r["m"].items())} for r in records]
    batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA).slice(min(skipped, len(rows) - 1))
    lines = bytes(Encoder.json_lines().encode(batch)).decode().split("\n")
    assert lines.pop() == ""
    expected = [
        without_nulls({**record, "t": record["t"] and without_nulls(record["t"])})
        for record in records[min(skipped, len(rows) - 1) :]
    ]
    assert [json.loads(line) for line in lines] == expected


def test_names_are_escaped_and_kept_in_order():
    """Field names are JSON strings too, and equal names are all written, as by Spark."""
    batch = pa.record_batch([pa.array([1]), pa.array([2]), pa.array([3])], names=['"\n\\', "é", "é"])
    assert bytes(Encoder.json_lines().encode(batch)) == '{"\\"\\n\\\\":1,"é":2,"é":3}\n'.encode()


def test_a_record_of_nulls_is_an_empty_object():
    """No record disappears, wherever it stands."""
    batch = pa.record_batch({"a": pa.array([None, 1, None]), "b": pa.array([None, None, None], pa.string())})
    assert bytes(Encoder.json_lines().encode(batch)) == b'{}\n{"a":1}\n{}\n'
    assert bytes(Encoder.json_lines().encode(batch.slice(0, 1))) == b"{}\n"


def test_nulls_below_null_structs_are_not_seen():
    """Arrow may hold values below a null struct or list; they are not the record's."""
    hidden = pa.StructArray.from_arrays([pa.array([1, 2])], ["x"], mask=pa.array([True, False]))
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 3]), pa.array([1, 2, 3]), mask=pa.array([True, False]))
    batch = pa.record_batch({"t": hidden, "l": lists})
    assert bytes(Encoder.json_lines().encode(batch)) == b'{}\n{"t":{"x":2},"l":[3]}\n'


def test_other_lists_are_lists():
    """Large and fixed-size lists are written as lists."""
    fixed = pa.array([[0, 0], [1, 2], None, [3, 4]], pa.list_(pa.int32(), 2)).slice(1)
    large = pa.array([[], ["a"], None, []], pa.large_list(pa.string())).slice(1)
    text = bytes(Encoder.json_lines().encode(pa.record_batch({"f": fixed, "l": large})))
    assert text == b'{"f":[1,2],"l":["a"]}\n{}\n{"f":[3,4],"l":[]}\n'


DICTIONARIES = {
    "i": pa.array([7, None, 7]),
    "f": pa.array([1.5, None, float("nan")]),
    "b": pa.array([True, None, False]),
    "m": pa.array([Decimal("1.50"), None, Decimal(2)], pa.decimal128(5, 2)),
    "t": pa.array(["1", None, '"']),
    "d": pa.array([date(2024, 7, 1), None, None]),
    "raw": pa.array([b"x", None, b""]),
}


def test_a_dictionary_is_written_as_its_values():
    """Numbers and truth values are no strings, at the top, in a list, and as keys of a map."""
    coded = {
        name: pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int8()), values)
        for name, values in DICTIONARIES.items()
    }
    assert encoded(coded) == encoded(DICTIONARIES)
    for values, codes in zip(DICTIONARIES.values(), coded.values(), strict=True):
        lists = [pa.ListArray.from_arrays(pa.array([0, 1, 3]), array) for array in (values, codes)]
        assert encoded({"c": lists[1]}) == encoded({"c": lists[0]})
    pairs = [("i", "t"), ("d", "f")]
    for key, value in pairs:
        plain, dictionary = (
            pa.MapArray.from_arrays(pa.array([0, 1]), columns[key].slice(0, 1), columns[value].slice(0, 1))
            for columns in (DICTIONARIES, coded)
        )
        assert encoded({"c": dictionary}) == encoded({"c": plain})


def encoded(columns):
    """The lines of columns."""
    return bytes(Encoder.json_lines().encode(pa.record_batch(columns))).decode().splitlines()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_keys_of_time_are_sparks_internal_values(unit):
    """Microseconds of instants and intervals, nanoseconds of times of day, whatever unit Arrow has."""
    times = {"s": pa.time32("s"), "ms": pa.time32("ms")}.get(unit) or pa.time64(unit)
    kinds = {"at": pa.timestamp(unit, "Europe/Berlin"), "span": pa.duration(unit), "time": times}
    second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    number = {name: pa.int32() if kind.bit_width == 32 else pa.int64() for name, kind in kinds.items()}
    columns = {
        name: pa.MapArray.from_arrays(
            pa.array([0, 1]), pa.array([second], number[name]).cast(kind), pa.array([0])
        )
        for name, kind in kinds.items()
    }
    keys = [*(1_000_000,) * 2, 1_000_000_000]
    (line,) = encoded(columns)
    assert json.loads(line) == {name: {str(key): 0} for name, key in zip(columns, keys, strict=True)}


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (pa.map_(pa.binary(), pa.int32()), "c"),
        (pa.map_(pa.dictionary(pa.int8(), pa.binary()), pa.int32()), "c"),
        (pa.list_(pa.map_(pa.list_(pa.int32()), pa.int32())), r"c\[\]"),
        (pa.struct([("at", pa.timestamp("us", "Mars/Olympus"))]), "Mars"),
        (pa.struct([("in", pa.month_day_nano_interval())]), "c.in"),
        (pa.struct([pa.field("value", pa.binary(), metadata={"variant": "true"})]), "to_json"),
    ],
)
def test_what_json_cannot_hold_is_refused(kind, path):
    """Keys that are no text, intervals of months, opaque variants and unknown zones name their column."""
    with pytest.raises(FormatError, match=path):
        Encoder.json_lines().check_schema(pa.schema([("c", kind)]))


def test_escapes_that_may_not_fit_are_split(monkeypatch):
    """Text whose escapes could exceed Arrow's limit is written in halves, and at last refused."""
    batch = pa.record_batch({"s": ['"aaa"', '"bbb"', "cc"]})
    whole = bytes(Encoder.json_lines().encode(batch))
    monkeypatch.setattr("formats.json.encoder.MAX_TEXT", 5)
    assert bytes(Encoder.json_lines().encode(batch)) == whole
    monkeypatch.setattr("formats.json.encoder.MAX_TEXT", 4)
    with pytest.raises(FormatError, match="2 GiB") as error:
        Encoder.json_lines().encode(batch)
    assert error.value.kind == "value"
