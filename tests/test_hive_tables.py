"""Tables as destinations: what their readers would not see is refused before anything is written."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from filesink.errors import ConfigError, MetastoreConflictError
from filesink.file_format import BulkFormat, RowFormat
from filesink.hive_tables import find_table, format_of
from filesink.metastore.api import Column, StorageFormat, Table, TableKind, TableName
from filesink.metastore.memory import MemoryMetastore
from filesink.metastore.table_formats import HIVE_FORMATS
from filesink.sink import FileSink

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


@pytest.mark.parametrize(
    ("parameters", "header"),
    [
        ({}, b""),
        ({"skip_header_line_count": "0", "skip_footer_line_count": "0"}, b""),
        ({"skip_header_line_count": "1"}, b"id,name\n"),
    ],
)
def test_csv_begins_with_the_lines_that_readers_skip(parameters, header):
    """A record in the place of a header would be lost to every reader."""
    form = format_of(table(**parameters))
    assert isinstance(form, RowFormat)
    assert form.encoder.header(SCHEMA) == header


def test_a_header_is_written_in_the_dialect_of_the_table():
    """Delimiter and quotes are the serde's, with a header and without."""
    semicolons = replace(CSV, serde_parameters={"separatorChar": ";"})
    form = format_of(table(semicolons, skip_header_line_count="1"))
    assert isinstance(form, RowFormat)
    assert form.encoder.header(SCHEMA) == b"id;name\n"


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
    assert isinstance(format_of(table(HIVE_FORMATS[word], skip_header_line_count="1")), BulkFormat)


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


@pytest.mark.parametrize("change", [{"kind": TableKind.OTHER}, {"location": ""}])
def test_what_has_no_files_is_refused(change):
    """A view, or a table of another system."""
    with pytest.raises(MetastoreConflictError) as raised:
        find_table("db.t", metastore_of(replace(table(), **change)))
    assert raised.value.code == "NOT_A_TABLE"
