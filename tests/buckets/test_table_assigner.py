"""Where each of many tables lies, and back; and the buckets in it."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filesink.buckets.assigner import BucketAssigner
from filesink.buckets.contract import BucketContext, assign_ids
from filesink.buckets.table_paths import TablePath
from filesink.errors import BucketError, ConfigError, SchemaError
from filesink.storage.bucket_ids import encode_ids, refusal

UTC = BucketContext(processing_time_ms=0, time_zone="UTC")
TABLES = BucketAssigner.table_bucket_assigner
TEMPLATES = ["${table_name}", "${schema_name}/${table_name}", "db/${schema_name}.db/t_${table_name}"]


@pytest.mark.parametrize("template", TEMPLATES)
@given(names=st.lists(st.text(max_size=12), max_size=6))
def test_no_two_tables_share_a_directory(template: str, names: list[str]) -> None:
    """Or one is inside that of another; and from a directory, or a bucket in it, the name comes back."""
    path, found = TablePath(template), {}
    for name in names:
        try:
            directory = path.directory(name)
        except BucketError:
            continue
        if refusal(directory) is not None:
            continue
        assert found.setdefault(directory, name) == name
        assert path.name_of(directory) == name
        assert path.name_of(f"{directory}/day=1/x") == name
        assert path.inside(f"{directory}/day=1/x") == "day=1/x"
        assert directory.count("/") == template.count("/")


@pytest.mark.parametrize(
    "template",
    ["", "/", "tables", "${schema_name}", "${schema_name}_${table_name}", "/${table_name}", "${table_name}/",
     "../${table_name}", "_${table_name}", "${table}", "a//${table_name}", "${table_name}${table_name}"],
)  # fmt: skip
def test_a_template_that_does_not_tell_tables_apart(template: str) -> None:
    """Or leads away from the base path: refused when the sink is built."""
    with pytest.raises(ConfigError) as raised:
        TABLES("t", path=template)
    assert raised.value.code == "BAD_VALUE"


def test_ids() -> None:
    """Directory of the table and bucket in it; whatever names no directory has none."""
    batch = pa.record_batch(
        {
            "t": pa.array(["a.b", None, "a.b.c", "a", ".b", "x.y/z", "a.b", "a."]),
            "k": pa.array(["1", "2", None, "3", "4", "5", "6", "7"]),
        }
    )
    assigner = TABLES(
        "T", path="${schema_name}/${table_name}", within=BucketAssigner.partition_bucket_assigner("k")
    )
    ids = assign_ids(pickle.loads(pickle.dumps(assigner)), batch, UTC)  # noqa: S301 - our own bytes
    found = encode_ids(ids)
    names = [None if code in found.refused else found.names[code] for code in found.codes.tolist()]
    default = "__HIVE_DEFAULT_PARTITION__"
    assert names == ["a/b/k=1", None, f"a/b.c/k={default}", None, None, "x/y%2Fz/k=5", "a/b/k=6", None]


def test_a_table_without_buckets_lies_directly_in_its_directory() -> None:
    """And an empty name is not the base path itself."""
    batch = pa.record_batch({"t": pa.array(["a", "", "b"]).dictionary_encode(), "n": pa.array([1, 2, 3])})
    found = encode_ids(assign_ids(TABLES("t"), batch, UTC))
    assert [found.names[code] for code in found.codes.tolist()] == ["a", ".", "b"]
    assert [found.refused[code].code for code in found.refused] == ["RELATIVE"]


def test_broken_text_names_nothing() -> None:
    """Of a table or of a bucket in it; Spark makes such text of any bytes."""
    broken = pa.array([b"\xff", b"a", b"b"]).view(pa.string())
    batch = pa.record_batch({"t": broken, "k": broken.take(pa.array([1, 0, 2]))})
    flat = encode_ids(assign_ids(TABLES("t"), batch, UTC))
    assert [code in flat.refused for code in flat.codes.tolist()] == [True, False, False]
    within = encode_ids(assign_ids(TABLES("t", within=AsItIs()), batch, UTC))
    assert [code in within.refused for code in within.codes.tolist()] == [True, True, False]
    assert {one.code for one in within.refused.values()} == {"ILLEGAL_CHAR"}


class AsItIs(BucketAssigner):
    """The bucket is a column."""

    def assign(self, batch, context):
        del context
        return batch.column("k")


def test_an_inner_assigner_that_is_wrong_is_named() -> None:
    """By its own class, as if it were alone."""

    class Short(BucketAssigner):
        def assign(self, batch, context):
            del batch, context
            return pa.array(["x"])

    batch = pa.record_batch({"t": pa.array(["a", "b"])})
    with pytest.raises(BucketError, match="Short: 1 bucket ids for 2 records"):
        assign_ids(TABLES("t", within=Short()), batch, UTC)


def test_columns_of_tables() -> None:
    """By name; another table has all of them. The column of tables is in no file."""
    assigner = TABLES("t", columns={"a": ["K", "n"]}, within=BucketAssigner.partition_bucket_assigner("k"))
    assert assigner.columns_of("a/k=1") == ("n",)
    assert assigner.columns_of("b/k=1") is None
    assert assigner.partition_columns() == ("t", "k")
    schema = pa.schema([("t", pa.string()), ("k", pa.string()), ("n", pa.int64())])
    assigner.check_schema(schema)
    with pytest.raises(SchemaError):
        TABLES("t", columns={"a": ["m"]}).check_schema(schema)
    with pytest.raises(SchemaError, match="every column of table 'a'"):
        TABLES("t", columns={"a": ["T"]}).check_schema(schema)
    with pytest.raises(SchemaError, match="names tables and is int64"):
        TABLES("n").check_schema(schema)


@pytest.mark.parametrize(
    "wrong",
    [{"columns": {"a": "n"}}, {"columns": {1: ["n"]}}, {"columns": {"a": []}}, {"within": TABLES("t")}],
)
def test_what_makes_no_assigner(wrong) -> None:
    """A word for a list of words is the commonest slip."""
    with pytest.raises(ConfigError):
        TABLES("t", **wrong)


def test_names_of_files() -> None:
    """Placeholders in a prefix; a name that readers would skip is escaped."""
    assigner = TABLES("t", path="t_${table_name}")
    assert assigner.name_for("t_a/x", "${table_name}-part") == "a-part"
    assert assigner.name_for("t__a", "${table_name}-part") == "%5Fa-part"
    assert assigner.name_for("elsewhere", "${table_name}-part") == "${table_name}-part"
    assert assigner.name_for("t_${table_name}", "${table_name}-${x}") == "$%7Btable_name}-${x}"
