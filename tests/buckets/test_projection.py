"""Records that Spark renders, and what a writer makes of them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from filesink import BucketAssigner
from filesink.buckets.contract import BucketContext
from filesink.buckets.path_assigners import EXPRESSION_COLUMN
from filesink.buckets.projection import RECORD_COLUMN, check_names, record_projection, rendered_schema
from filesink.buckets.router import Router
from filesink.errors import SchemaError
from filesink.parts import file_format
from filesink.parts.file_format import RowFormat
from formats import Encoder
from tests.fakes import World, plan_of

INPUT = pa.schema([("day", pa.string()), ("a", pa.int32()), ("b`c", pa.timestamp("us", "UTC"))])
B_C = "IDENTIFIER(string(X'606260606360'))"  # `b``c`, where no setting makes a pattern of it
NOW = BucketContext(processing_time_ms=0, time_zone="UTC")


class Anywhere(BucketAssigner):
    """A user's assigner, which may look at any column."""

    def assign(self, batch, context):
        """Not called."""
        raise NotImplementedError


def rendered(assigner, encoder, **columns):
    """A batch as it comes to a writer whose records Spark has rendered."""
    projection = record_projection(encoder, assigner, INPUT)
    return pa.record_batch(columns).replace_schema_metadata(dict(projection.metadata))


def test_only_records_and_what_names_buckets_cross():
    """Columns of the path are not in the record, and others do not cross by themselves."""
    by_day = BucketAssigner.partition_bucket_assigner("DAY")
    columns = record_projection(Encoder.json_lines(), by_day, INPUT).columns
    assert list(columns) == ["day", RECORD_COLUMN]
    assert columns[RECORD_COLUMN].startswith(f"to_json(struct(`a`, {B_C} AS `b``c`),")
    kept = record_projection(Encoder.csv(), by_day.with_columns_in_file(), INPUT).columns
    assert kept[RECORD_COLUMN].startswith(f"to_csv(struct(`day`, `a`, {B_C} AS `b``c`),")
    by_time = BucketAssigner.date_time_bucket_assigner(column="b`c")
    assert list(record_projection(Encoder.csv(), by_time, INPUT).columns) == ["b`c", RECORD_COLUMN]
    by_expression = BucketAssigner.expression_bucket_assigner("upper(day)")
    computed = INPUT.append(pa.field(EXPRESSION_COLUMN, pa.string()))
    columns = record_projection(Encoder.json_lines(), by_expression, computed).columns
    assert list(columns) == [EXPRESSION_COLUMN, RECORD_COLUMN]
    assert EXPRESSION_COLUMN not in columns[RECORD_COLUMN]


@pytest.mark.parametrize(
    ("encoder", "assigner"),
    [
        (Encoder.json_lines(), Anywhere()),
        (Encoder.simple_string_encoder(), BucketAssigner.base_path_bucket_assigner()),
        (Encoder.csv(), BucketAssigner.partition_bucket_assigner("day", "a")),
    ],
    ids=["an assigner of the user's", "text", "csv of one column"],
)
def test_where_spark_cannot_render_every_column_crosses(encoder, assigner):
    """Without an expression, or with an assigner that may look anywhere, nothing is projected."""
    assert record_projection(encoder, assigner, INPUT) is None


def test_the_signature_is_that_of_the_columns():
    """A part begun with rendered records is continued with others, and not with those of another schema."""
    assigner, form = BucketAssigner.base_path_bucket_assigner(), RowFormat(Encoder.json_lines())
    batch = rendered(assigner, form.encoder, **{RECORD_COLUMN: ["{}"]})
    assert rendered_schema(batch.schema) == INPUT
    assert file_format.signature(form, batch.schema) == file_format.signature(form, INPUT)
    assert file_format.signature(form, INPUT) != file_format.signature(form, INPUT.remove(0))


def test_a_signature_has_the_whole_of_long_names():
    """A part that is open may not take in records of other columns; Arrow shows 100 characters of a name."""
    form = RowFormat(Encoder.json_lines())
    names = ["n" * 150 + end for end in "ab"]
    for schemas in (
        [pa.schema([(name, pa.int8())]) for name in names],
        [pa.schema([("c", pa.list_(pa.struct([(name, pa.int8())])))]) for name in names],
    ):
        first, second = (file_format.signature(form, schema) for schema in schemas)
        assert first != second


def test_a_part_of_rendered_records_has_a_header_and_line_feeds():
    """The header names the columns of the records, which are written as they came."""
    encoder = Encoder.csv(header=True)
    plan = replace(plan_of(encoder), assigner=BucketAssigner.base_path_bucket_assigner())
    world = World(plan=plan)
    writer = world.writer()
    batch = rendered(plan.assigner, encoder, **{RECORD_COLUMN: ["x,1,", "y,,"]})
    writer.write(batch.slice(0, 1), world.context())
    writer.write(batch.slice(1), world.context())
    (file,) = writer.prepare_commit(0)
    assert world.files.files[file.staged.path].content == b"day,a,b`c\nx,1,\ny,,\n"
    assert file.rows == 2


def test_bucket_columns_are_not_written():
    """Only the record goes into the file, wherever its column stands."""
    by_day = BucketAssigner.partition_bucket_assigner("day")
    batch = rendered(by_day, Encoder.json_lines(), day=["1", "2"], **{RECORD_COLUMN: ["{}", '{"a":1}']})
    pieces = dict(Router(by_day, 1 << 20, pytest.fail).route(batch, NOW))
    assert {bucket: piece.to_pydict() for bucket, piece in pieces.items()} == {
        "day=1": {RECORD_COLUMN: ["{}"]},
        "day=2": {RECORD_COLUMN: ['{"a":1}']},
    }


def test_the_watermark_column_crosses_too():
    """A task looks for the latest time whatever the records are made of."""
    everywhere = BucketAssigner.base_path_bucket_assigner()
    columns = record_projection(Encoder.json_lines(), everywhere, INPUT, also=["B`C"]).columns
    assert columns["b`c"] == B_C


@pytest.mark.parametrize("name", [RECORD_COLUMN, "__filesink_bucket", "__FileSink_more"])
def test_names_that_stand_for_columns_of_ours_are_refused(name):
    """A column of the user's would be taken for records that are rendered already."""
    schema = pa.schema([(name, pa.string())])
    with pytest.raises(SchemaError, match=name) as caught:
        check_names(BucketAssigner.base_path_bucket_assigner(), schema)
    assert caught.value.code == "RESERVED_COLUMN"
    with pytest.raises(SchemaError, match=RECORD_COLUMN):
        World().tiers().check_schema(pa.schema([("bucket", pa.string()), (RECORD_COLUMN, pa.string())]))


def test_columns_that_an_assigner_adds_have_names_of_ours():
    """They are in the schema that is checked."""
    assigner = BucketAssigner.expression_bucket_assigner("day")
    check_names(assigner, pa.schema([("day", pa.string()), ("__filesink_bucket", pa.string())]))
