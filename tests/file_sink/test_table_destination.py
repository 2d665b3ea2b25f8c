"""Tables as destinations: what their readers would not see is refused before anything is written."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from filesink.buckets.assigner import BucketAssigner
from filesink.errors import ConfigError, MetastoreConflictError
from filesink.file_sink.table_destination import find_table, format_of
from filesink.metastore.api import Column, StorageFormat, Table, TableChange, TableKind, TableName
from filesink.metastore.memory import MemoryMetastore
from filesink.metastore.metastore_policy import MetastorePolicy
from filesink.metastore.policies import Site
from filesink.metastore.tables.formats import HIVE_FORMATS
from filesink.parts.file_format import BulkFormat, RowFormat
from filesink.sink import FileSink
from filesink.storage.memory import MemoryFiles, MemoryStore

CSV = StorageFormat(
    input_format="org.apache.hadoop.mapred.TextInputFormat",
    output_format="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
    serde="org.apache.hadoop.hive.serde2.OpenCSVSerde",
)
SCHEMA = pa.schema([("id", pa.string()), ("name", pa.string())])


def table(form: StorageFormat = CSV, **parameters: str) -> Table:
    """A table of two strings; ``_`` in the names of parameters stands for a dot."""
    return Table(
        name=TableName.parse("db.t"),
        columns=(Column(name="id", type="string"), Column(name="name", type="string")),
        partition_keys=(),
        location="/tables/t",
        format=form,
        parameters={name.replace("_", "."): value for name, value in parameters.items()},
    )


def metastore_of(one: Table) -> MemoryMetastore:
    """A metastore that has it."""
    metastore = MemoryMetastore()
    metastore.create_table(one)
    return metastore


def test_each_write_sees_the_columns_of_its_day():
    """Columns may have been added since the sink was built; CSV is read by position."""
    metastore = metastore_of(table())
    builder = FileSink.for_hive_table("db.t", metastore=metastore)
    before = builder.in_order().keywords["table"]
    metastore.alter_table(before.name, TableChange(new_columns=[Column(name="c", type="string")]))
    after = builder.in_order().keywords["table"]
    assert [[column.name for column in one.columns] for one in (before, after)] == [
        ["id", "name"],
        ["id", "name", "c"],
    ]


def test_keys_are_spelled_as_spark_has_named_its_directories():
    """A metastore keeps names in lower case; ``userid=1`` would be another directory than ``userId=1``."""
    schema = '{"type":"struct","fields":[{"name":"id"},{"name":"userId"}]}'
    of_spark = replace(
        table(HIVE_FORMATS["parquet"], spark_sql_sources_provider="parquet", spark_sql_sources_schema=schema),
        partition_keys=(Column(name="userid", type="string"), Column(name="day", type="string")),
    )
    keys = ("userId", "day")
    assert tuple(key.name for key in find_table("db.t", metastore_of(of_spark)).partition_keys) == keys
    builder = FileSink.for_hive_table("db.t", metastore=metastore_of(of_spark))
    assert builder.assigner == BucketAssigner.partition_bucket_assigner(*keys)


@pytest.mark.parametrize(
    ("parameters", "header"),
    [
        ({}, b""),
        ({"skip_header_line_count": "0", "skip_footer_line_count": "0"}, b""),
        ({"skip_header_line_count": "1"}, b'"id","name"\n'),
    ],
)
def test_csv_begins_with_the_lines_that_readers_skip(parameters, header):
    """A record in the place of a header would be lost to every reader."""
    form = format_of(table(**parameters))
    assert isinstance(form, RowFormat)
    assert form.encoder.header(SCHEMA) == header


@pytest.mark.parametrize(
    ("options", "header"),
    [({"separatorChar": ";"}, b'"id";"name"\n'), ({"quoteChar": "'"}, b"'id','name'\n")],
)
def test_a_header_is_written_in_the_dialect_of_the_table(options, header):
    """Delimiter and quotes are the serde's, with a header and without."""
    form = format_of(table(replace(CSV, serde_parameters=options), skip_header_line_count="1"))
    assert isinstance(form, RowFormat)
    assert form.encoder.header(SCHEMA) == header


@pytest.mark.parametrize(
    "form", [replace(CSV, serde_parameters={"separatorChar": '"'}), HIVE_FORMATS["textfile"]]
)
def test_what_nothing_here_writes_is_refused(form):
    """A dialect that no reader could take apart, or lines of another serde."""
    with pytest.raises(ConfigError, match=r"db\.t") as raised:
        format_of(table(form))
    assert raised.value.code == "TABLE_FORMAT"


@pytest.mark.parametrize(
    ("form", "parameters"),
    [
        (CSV, {"skip_header_line_count": "2"}),
        (CSV, {"skip_header_line_count": "one"}),
        (CSV, {"skip_footer_line_count": "1"}),
        (CSV, {"skip_header_line_count": "1", "skip_footer_line_count": "1"}),
        (HIVE_FORMATS["json"], {"skip_header_line_count": "1"}),
        (HIVE_FORMATS["json"], {"skip_footer_line_count": "1"}),
    ],
)
def test_lines_that_readers_would_skip_are_refused(form, parameters):
    """No file here has such lines, so readers would skip records."""
    name, lines = list(parameters.items())[-1]
    with pytest.raises(ConfigError, match=rf"db\.t skip lines .*{name.replace('_', '.')}={lines}") as raised:
        format_of(table(form, **parameters))
    assert raised.value.code == "TABLE_FORMAT"


@pytest.mark.parametrize("word", ["parquet", "orc", "avro"])
def test_files_without_lines_have_none_to_skip(word):
    """The property says nothing there, so it is in nobody's way."""
    form = format_of(table(HIVE_FORMATS[word], skip_header_line_count="1"))
    assert isinstance(form, BulkFormat)
    assert form.factory.extension == f".{word}"


@pytest.mark.parametrize("value", ["true", "TRUE"])
def test_a_transactional_table_is_refused(value):
    """Hive's readers look into directories of its own transactions only."""
    metastore = metastore_of(table(HIVE_FORMATS["orc"], transactional=value))
    with pytest.raises(MetastoreConflictError, match=r"db\.t is transactional") as raised:
        FileSink.for_hive_table("db.t", metastore=metastore)
    assert raised.value.code == "NOT_A_TABLE"


def test_a_table_that_says_it_is_not_transactional_is_found():
    """Only ``true`` makes it one."""
    plain = table(HIVE_FORMATS["orc"], transactional="false")
    assert find_table("db.t", metastore_of(plain)) == plain


def test_csv_is_quoted_where_readers_take_characters_for_escapes():
    """``OpenCSVSerde`` drops them outside of quotes, too."""
    form = format_of(table())
    assert isinstance(form, RowFormat)
    written = bytes(form.encoder.encode(pa.RecordBatch.from_pylist([{"id": "1", "name": "C:\\temp"}])))
    assert written == b'"1","C:\\\\temp"\n'


@pytest.mark.parametrize(("escape", "name"), [('"', b'a\\\\|\\"'), ("|", b'a\\|||"')])
def test_the_default_escape_of_csv_is_read_as_a_backslash(escape, name):
    """``OpenCSVSerde`` takes its own default, a quote, for the reader's; any other is what it says."""
    form = format_of(table(replace(CSV, serde_parameters={"escapeChar": escape})))
    assert isinstance(form, RowFormat)
    written = bytes(form.encoder.encode(pa.RecordBatch.from_pylist([{"id": "1", "name": 'a\\|"'}])))
    assert written == b'"1","' + name + b'"\n'


@pytest.mark.parametrize(
    "name", ["dateFormat", "timestampFormat", "lineSep", "encoding", "multiLine", "timeZone"]
)
def test_options_that_readers_go_by_are_refused(name):
    """The files here follow Spark's defaults only."""
    form = replace(HIVE_FORMATS["json"], serde_parameters={"path": "/tables/t", name: "x"})
    with pytest.raises(ConfigError, match=rf"db\.t .* option {name}='x'") as raised:
        format_of(table(form, spark_sql_sources_provider="json"))
    assert raised.value.code == "TABLE_FORMAT"


def test_options_that_change_no_line_are_in_nobodys_way():
    """Where the files are, and how Spark itself would write them."""
    options = {"path": "/tables/t", "serialization.format": "1", "compression": "gzip"}
    options |= {"ignoreNullFields": "true", "mode": "FAILFAST", "columnNameOfCorruptRecord": "bad"}
    form = replace(HIVE_FORMATS["json"], serde_parameters=options)
    assert isinstance(format_of(table(form, spark_sql_sources_provider="JSON")), RowFormat)


@pytest.mark.parametrize("provider", ["hive", "HIVE"])
def test_a_table_that_spark_made_for_hive_is_one_of_hive(provider):
    """Its format is that of its serde."""
    assert isinstance(format_of(table(HIVE_FORMATS["orc"], spark_sql_sources_provider=provider)), BulkFormat)


PLACEHOLDER = (Column(name="col", type="array<string>"),)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"bucket_columns": ("id",)}, "BUCKETED_TABLE"),
        ({"parameters": {"spark.sql.sources.schema.numBuckets": "4"}}, "BUCKETED_TABLE"),
        ({"partition_keys": (Column(name="k", type="char(5)"),)}, "KEY_TYPE"),
        (
            {"columns": PLACEHOLDER, "parameters": {"spark.sql.sources.provider": "parquet"}},
            "SPARK_TABLE",
        ),
    ],
)
def test_what_readers_would_not_find_is_refused(change, code):
    """By the destination, and by the policy of a sink that has its own, before it writes."""
    one = replace(table(HIVE_FORMATS["parquet"]), **change)
    with pytest.raises(MetastoreConflictError, match=r"db\.t") as raised:
        find_table("db.t", metastore_of(one))
    assert raised.value.code == code
    with pytest.raises(MetastoreConflictError) as raised:
        MetastorePolicy("db.t", metastore_of(one)).prepare(site_of(one), SCHEMA)
    assert raised.value.code == code


def site_of(one: Table) -> Site:
    """Where a sink of its own puts files for a table."""
    return Site(store=MemoryStore(MemoryFiles()), base_path=one.location, hive_format="parquet")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"kind": TableKind.OTHER}, "NOT_A_TABLE"),
        ({"location": ""}, "NOT_A_TABLE"),
        ({"name": TableName.parse("db.other")}, "TABLE_NOT_FOUND"),
    ],
)
def test_what_has_no_files_is_refused(change, code):
    """A view, a table of another system, or none at all."""
    with pytest.raises(MetastoreConflictError) as raised:
        find_table("db.t", metastore_of(replace(table(), **change)))
    assert raised.value.code == code
