"""Bucket assigners and the splitting of batches."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from filesink.buckets.assigner import BucketAssigner
from filesink.buckets.contract import (
    BucketContext,
    assign_ids,
    file_columns,
    find_column,
    split,
)
from filesink.errors import BucketError, ConfigError, EncoderError, SchemaError
from filesink.storage.bucket_ids import encode_ids

FLINK_NOW = 1_533_363_082_011
LOS_ANGELES = BucketContext(processing_time_ms=FLINK_NOW, time_zone="America/Los_Angeles")
DATE_TIME = BucketAssigner.date_time_bucket_assigner
PARTITION = BucketAssigner.partition_bucket_assigner


def assigned(assigner, batch, context=LOS_ANGELES):
    """The id of each record."""
    return assign_ids(assigner, batch, context).to_pylist()


class Own(BucketAssigner):
    """An assigner as a user writes it: nothing but ``assign``."""

    def __init__(self, function):
        self.function = function

    def assign(self, batch, context):
        return self.function(batch, context)


NUMBERS = pa.record_batch({"n": pa.array(range(6))})


class TestPartition:
    BATCH = pa.record_batch(
        {
            "day": pa.array([date(2024, 1, 1)] * 3 + [None] + [date(2024, 1, 2)] * 2, pa.date32()),
            "Land": pa.array(["de", "a/b", "de", "de", "", None]).dictionary_encode(),
            "n": pa.array(range(6)),
        }
    )

    def test_ids(self):
        """Hive's k=v in the given order under the columns' real names, null and '' as one partition."""
        default = "__HIVE_DEFAULT_PARTITION__"
        assert assigned(PARTITION("land", "day"), self.BATCH) == [
            "Land=de/day=2024-01-01",
            "Land=a%2Fb/day=2024-01-01",
            "Land=de/day=2024-01-01",
            f"Land=de/day={default}",
            f"Land={default}/day=2024-01-02",
            f"Land={default}/day=2024-01-02",
        ]

    def test_instants_are_shown_in_the_zone_of_the_session(self):
        """As Spark's cast shows them; times without a zone are what they are."""
        noon = datetime(2024, 7, 1, 12, tzinfo=UTC)
        for kind, hour in ((pa.timestamp("us", "UTC"), "05"), (pa.timestamp("us"), "12")):
            batch = pa.record_batch({"at": pa.array([noon], kind), "n": pa.array([1])})
            assert assigned(PARTITION("at"), batch) == [f"at=2024-07-01 {hour}%3A00%3A00"]

    def test_null_and_empty_share_a_bucket(self):
        """Two values with one directory make one part, not two."""
        ids = assign_ids(PARTITION("Land"), self.BATCH, LOS_ANGELES)
        assert [name for name, _ in split(self.BATCH, encode_ids(ids))].count(
            "Land=__HIVE_DEFAULT_PARTITION__"
        ) == 1

    def test_columns_are_left_out_unless_kept(self):
        """The columns are in the path; a user may keep them in the files too."""
        assigner = PARTITION("land", "day")
        assert file_columns(assigner, self.BATCH.schema) == [2]
        assert file_columns(assigner.with_columns_in_file(), self.BATCH.schema) == [0, 1, 2]

    @pytest.mark.parametrize("columns", [(), ("a", "a"), ("a", "A"), ("",)])
    def test_refused_columns(self, columns):
        """No column, one twice, or one without a name is a mistake."""
        with pytest.raises(ConfigError, match="BAD_VALUE"):
            PARTITION(*columns)

    def test_schema(self):
        """Columns must exist, have text, leave a column for the files and a name that readers see."""
        PARTITION("day", "land").check_schema(self.BATCH.schema)
        with pytest.raises(SchemaError, match="NO_DATA_COLUMNS"):
            PARTITION("n").check_schema(NUMBERS.schema)
        with pytest.raises(SchemaError, match="BUCKET_TYPE"):
            PARTITION("b").check_schema(pa.schema({"b": pa.binary(), "n": pa.int8()}))
        for name in ("_b", ".b"):
            with pytest.raises(SchemaError, match="BUCKET_COLUMN"):
                PARTITION(name).check_schema(pa.schema({name: pa.int8(), "n": pa.int8()}))

    def test_many_columns(self):
        """Codes of many distinct columns cannot overflow."""
        rows = 3000
        batch = pa.record_batch({f"c{i}": pa.array(range(rows)) for i in range(12)})
        expected = ["/".join(f"c{i}={row}" for i in range(12)) for row in range(rows)]
        assert assigned(PARTITION(*batch.schema.names), batch) == expected

    @pytest.mark.parametrize(
        ("values", "code"),
        [
            (["__HIVE_DEFAULT_PARTITION__"], "RESERVED"),
            (["a\0b"], "ILLEGAL_CHAR"),
            (pa.array([b"\xff"]).view(pa.string()), "ILLEGAL_CHAR"),
            ([float("nan")], "NAN"),
            (["x" * 300], "TOO_LONG"),
            (["/" * 85], "TOO_LONG"),
            (["a._COPYING_"], "HIDDEN"),
        ],
        ids=["reserved", "nul", "no text", "nan", "long", "long escaped", "copying"],
    )
    def test_values_without_a_directory(self, values, code):
        """Only the records with such a value have no bucket, and the level says which column it is."""
        assigner = PARTITION("day", "k")
        batch = pa.record_batch(
            {"k": pa.concat_arrays([values := pa.array(values), pa.nulls(1, values.type)])}
        )
        batch = batch.append_column("day", pa.array([1, 2])).append_column("n", pa.array([1, 2]))
        found = encode_ids(assign_ids(assigner, batch, LOS_ANGELES))
        assert found.names[found.codes[1]] == "day=2/k=__HIVE_DEFAULT_PARTITION__"
        ((index, why),) = found.refused.items()
        assert (index, why.code, why.level) == (found.codes[0], code, 1)
        assert assigner.origin(why.level) == "partition column 'k'"


class TestPathsAsGiven:
    def test_base_path(self):
        """Case 15: everything belongs to the base path, and the batch is passed on as it is."""
        ids = assign_ids(BucketAssigner.base_path_bucket_assigner(), NUMBERS, LOS_ANGELES)
        [(name, records)] = split(NUMBERS, encode_ids(ids))
        assert name == ""
        assert records is NUMBERS

    def test_expression(self):
        """Spark computes the ids in a derived column, which the files do not get."""
        assigner = BucketAssigner.expression_bucket_assigner("region || '/' || day")
        assert assigner.derived_columns() == {"__filesink_bucket": "region || '/' || day"}
        batch = pa.record_batch({"n": [1, 2], "__filesink_bucket": ["eu/1", "us/1"]})
        assigner.check_schema(batch.schema)
        assert file_columns(assigner, batch.schema) == [0]
        assert assigned(assigner, batch) == ["eu/1", "us/1"]

    def test_expression_refused(self):
        """An empty expression and another type than text are errors."""
        with pytest.raises(ConfigError, match="BAD_VALUE"):
            BucketAssigner.expression_bucket_assigner(" ")
        assigner = BucketAssigner.expression_bucket_assigner("n")
        with pytest.raises(SchemaError, match="BUCKET_TYPE"):
            assigner.check_schema(pa.schema({"n": pa.int8(), "__filesink_bucket": pa.int8()}))


class TestOwnAssigner:
    def test_sees_batch_and_context(self):
        """Only assign is needed; it gets the batch and the driver's time."""
        own = Own(lambda batch, context: pa.array([f"t{context.processing_time_ms}"] * len(batch)))
        own.check_schema(NUMBERS.schema)
        assert assigned(own, NUMBERS) == [f"t{FLINK_NOW}"] * 6

    def test_raises(self):
        """What it raises is an EncoderError that names it and says what it said, in one line."""
        own = Own(lambda *_: {}["no such\ncarrier"])
        words = r"ASSIGNER.*Own failed with KeyError: 'no such\\ncarrier'; nothing of this batch"
        with pytest.raises(EncoderError, match=words) as caught:
            assigned(own, NUMBERS)
        assert isinstance(caught.value.__cause__, KeyError)

    @pytest.mark.parametrize(
        ("result", "code"),
        [
            (["a"] * 6, "TYPE"),
            (None, "TYPE"),
            (pa.array([1] * 6), "TYPE"),
            (pa.chunked_array([["a"] * 6]), "TYPE"),
            (pa.array([b"a"] * 6), "TYPE"),
            (pa.array(["a"] * 5), "LENGTH"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_wrong_result(self, result, code):
        """Anything but one string per record is refused."""
        with pytest.raises(BucketError, match=f"\\[{code}\\]"):
            assigned(Own(lambda *_: result), NUMBERS)


class TestSplit:
    @pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), "dictionary"], ids=str)
    def test_groups_in_order(self, kind):
        """Each bucket gets its records in their order, whatever kind of strings the ids are."""
        ids = pa.array(["b", "a", "b", "", "a", "b"])
        ids = ids.dictionary_encode() if kind == "dictionary" else ids.cast(kind)
        found = {name: records.column(0).to_pylist() for name, records in split(NUMBERS, encode_ids(ids))}
        assert found == {"b": [0, 2, 5], "a": [1, 4], "": [3]}

    def test_order_within_a_large_bucket(self):
        """Records keep their order in batches of the size that Spark sends."""
        batch = pa.record_batch({"n": pa.array(range(10_000))})
        ids = pa.array([f"b{n * n % 7}" for n in range(10_000)])
        for name, records in split(batch, encode_ids(ids)):
            assert records.column(0).to_pylist() == [n for n in range(10_000) if f"b{n * n % 7}" == name]

    def test_runs_are_not_copied(self):
        """Where each id forms one run, the buckets are slices of the batch's own memory."""
        parts = split(NUMBERS, encode_ids(pa.array(["b", "b", "c", "a", "a", "a"])))
        assert [(name, len(records)) for name, records in parts] == [("b", 2), ("c", 1), ("a", 3)]
        memory = NUMBERS.column(0).buffers()[1]
        assert all(records.column(0).buffers()[1].address == memory.address for _, records in parts)

    def test_dictionary_oddities(self):
        """Values twice in the dictionary are one bucket; unused ones are neither checked nor written."""
        ids = pa.DictionaryArray.from_arrays(pa.array([0, 1, 3, 0, 1, 3]), ["a", "a", "../unused", "b"])
        assert [(name, len(records)) for name, records in split(NUMBERS, encode_ids(ids))] == [
            ("a", 4),
            ("b", 2),
        ]

    def test_empty_batch(self):
        """No records, no buckets."""
        assert split(NUMBERS.slice(0, 0), encode_ids(pa.array([], pa.string()))) == []

    def test_more_buckets_than_two_bytes_can_count(self):
        """A batch of 70,000 buckets: each record lies in its own."""
        rows = 70_000
        batch = pa.record_batch({"n": pa.array(range(rows))}).take(pa.array(range(rows - 1, -1, -1)))
        found = split(batch, encode_ids(pa.array([f"b{row % 65_537}" for row in range(rows)])))
        assert len(found) == 65_537
        for name, part in (found[0], found[1], found[65_535], found[65_536]):
            assert {f"b{(rows - 1 - n) % 65_537}" for n in part.column(0).to_pylist()} == {name}


class TestFindColumn:
    SCHEMA = pa.schema({"a": pa.int8(), "A": pa.int8(), "Bc": pa.int8()})

    def test_found(self):
        """An exact name wins; else case does not matter."""
        assert [find_column(self.SCHEMA, name) for name in ("a", "A", "bC")] == [0, 1, 2]

    def test_ambiguous(self):
        """Names that differ by case only, or columns twice, need a decision of the user."""
        with pytest.raises(SchemaError, match=r"BUCKET_COLUMN.*'b' is ambiguous among columns \[b, b\]"):
            find_column(pa.schema([("b", pa.int8()), ("b", pa.int8())]), "b")
        with pytest.raises(SchemaError, match=r"'xY' is ambiguous among columns \[xy, XY\]"):
            find_column(pa.schema([("xy", pa.int8()), ("XY", pa.int8())]), "xY")


@pytest.mark.parametrize(
    "fields", [{"processing_time_ms": 1.5, "time_zone": "UTC"}, {"processing_time_ms": 1, "time_zone": ""}]
)
def test_bad_context(fields):
    """A context is checked when it is made."""
    with pytest.raises(ConfigError, match="BAD_VALUE"):
        BucketContext(**fields)


@pytest.mark.parametrize(
    "assigner",
    [
        DATE_TIME(column="ts"),
        BucketAssigner.base_path_bucket_assigner(),
        PARTITION("a").with_columns_in_file(),
        BucketAssigner.expression_bucket_assigner("a"),
    ],
    ids=lambda assigner: type(assigner).__name__,
)
def test_assigners_travel(assigner):
    """Assigners are pickled to the tasks and compare by value."""
    assert pickle.loads(pickle.dumps(assigner)) == assigner  # noqa: S301 - our own bytes
