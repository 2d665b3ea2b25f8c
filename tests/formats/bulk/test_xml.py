"""XML, read by Python's parser."""

from __future__ import annotations

import io
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import FormatError, XmlWriterFactory
from formats.xml import reader as xml_reader

CHARACTERS = st.characters(
    codec="utf-8", exclude_characters="".join(map(chr, {*range(32)} - {9, 10, 13})) + "\ufffe\uffff"
)


def file_of(factory, *batches, schema=None):
    """A finished file."""
    output = io.BytesIO()
    writer = factory.create(output, schema or batches[0].schema)
    for batch in batches:
        writer.write(batch)
        writer.flush()
    writer.finish()
    return output.getvalue()


def test_elements_and_attributes():
    """Null is left out in both layouts."""
    batch = pa.record_batch({"a": ["x<&>", None], "b": pa.array([1, 2])})
    start = '<?xml version="1.0" encoding="UTF-8"?>\n'
    assert file_of(XmlWriterFactory(), batch).decode() == (
        f"{start}<RECORDS>\n<RECORD><a>x&lt;&amp;&gt;</a><b>1</b></RECORD>\n<RECORD><b>2</b></RECORD>\n</RECORDS>\n"
    )
    factory = XmlWriterFactory(root_tag="r", row_tag="row", layout="attributes")
    assert file_of(factory, batch).decode() == (
        f'{start}<r>\n<row a="x&lt;&amp;&gt;" b="1"/>\n<row b="2"/>\n</r>\n'
    )


@pytest.mark.parametrize("layout", ["elements", "attributes"])
@given(values=st.lists(st.one_of(st.none(), st.text(CHARACTERS)), max_size=5))
def test_any_text_comes_back(layout, values):
    """Line breaks, quotes and tabs too, from any parser."""
    batch = pa.record_batch({"a": pa.array(values, pa.string())})
    root = ET.fromstring(file_of(XmlWriterFactory(layout=layout), batch))  # noqa: S314 - our own bytes
    if layout == "attributes":
        assert [record.get("a") for record in root] == values
    else:
        found = [record.find("a") for record in root]
        assert [None if one is None else one.text or "" for one in found] == values


def read(data, schema, **options):
    """All records of a file."""
    return XmlWriterFactory(**options).open_reader(io.BytesIO(data), schema=schema).read_all()


READABLE = ["text", "large", "int", "long", "double", "float", "bool", "decimal", "date", "at", "wall"]


@pytest.mark.parametrize("layout", ["elements", "attributes"])
def test_every_type_is_read(layout, all_rows):
    """Values at their limits and nulls, instants in their zone; XML lacks some characters of the texts."""
    batch = all_rows.select(READABLE).slice(0, 9)
    found = read(file_of(XmlWriterFactory(layout=layout), batch), batch.schema, layout=layout)
    assert str(found.to_pylist()) == str(batch.to_pylist())


@pytest.mark.parametrize("layout", ["elements", "attributes"])
@given(values=st.lists(st.one_of(st.none(), st.text(CHARACTERS)), max_size=5))
def test_any_text_is_read(layout, values):
    """Wherever the pieces of the file end."""
    batch = pa.record_batch({"a": pa.array(values, pa.string())})
    data = file_of(XmlWriterFactory(layout=layout), batch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(xml_reader, "_BLOCK", 7)
        assert read(data, batch.schema, layout=layout) == pa.table(batch)


def test_columns_are_chosen_and_added():
    """By name; a value that is not there is null."""
    data = file_of(XmlWriterFactory(), pa.record_batch({"a": [1, 2], "b": ["x", "y"]}))
    schema = pa.schema([("new", pa.string()), ("a", pa.int16())])
    assert read(data, schema).to_pylist() == [{"new": None, "a": 1}, {"new": None, "a": 2}]


@pytest.mark.parametrize("keep", [0, 3, 60, 100, -1, -20], ids=lambda keep: f"keep{keep}")
def test_a_file_that_was_cut_is_an_error(keep):
    """Never fewer records, silently."""
    data = file_of(XmlWriterFactory(), pa.record_batch({"a": pa.array(range(100))}))
    if keep == -1:  # the line feed behind the root
        keep = -2
    with pytest.raises(FormatError) as error:
        read(data[:keep], pa.schema([("a", pa.int64())]))
    assert error.value.kind == "value"


ENTITIES = b'<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;">]>'
BOMB = ENTITIES + b"<RECORDS><RECORD><a>&b;</a></RECORD></RECORDS>"


@pytest.mark.parametrize(
    "data",
    [
        BOMB,
        b"<other></other>",
        b"<RECORDS><row/></RECORDS>",
        b"<RECORDS><RECORD><a><b/></a></RECORD></RECORDS>",
        b"<RECORDS><RECORD><a>1</a><a>2</a></RECORD></RECORDS>",
        b"<RECORDS><RECORD><a>one</a></RECORD></RECORDS>",
        b'<RECORDS><RECORD a="1"/></RECORDS>',
        b'<RECORDS><RECORD><a x="1">1</a></RECORD></RECORDS>',
        b"<RECORDS>x<RECORD/></RECORDS>",
        b"<RECORDS><RECORD>x<a>1</a></RECORD></RECORDS>",
        b'<?xml version="1.0" encoding="zlib"?><RECORDS/>',
        b'<?xml version="1.0" encoding="Shift_JIS"?><RECORDS/>',
        b'<?xml version="1.0" encoding="idna"?><RECORDS/>',
    ],
    ids=str,
)
def test_other_xml_is_refused(data):
    """Entities, other elements, and values of another type."""
    with pytest.raises(FormatError) as error:
        read(data, pa.schema([("a", pa.int64())]))
    assert error.value.kind == "value"


def test_comments_and_sections_are_read_as_xml_means_them():
    """So is a namespace at the root, which is no value."""
    data = b"<RECORDS xmlns='x'><!-- y --><RECORD><a><![CDATA[<]]>b</a></RECORD></RECORDS>"
    assert read(data, pa.schema([("a", pa.string())])).to_pylist() == [{"a": "<b"}]


def test_a_long_value_costs_no_more_than_many():
    """It is not looked at again with each piece of the file."""
    batch = pa.record_batch({"a": ["x" * (24 << 20)]})
    data = file_of(XmlWriterFactory(layout="attributes"), batch)
    assert read(data, batch.schema, layout="attributes") == pa.table(batch)


@pytest.mark.parametrize(
    "schema", [None, pa.schema([("a", pa.binary())]), pa.schema([("a", pa.list_(pa.int8()))])]
)
def test_what_text_does_not_tell_is_refused(schema):
    """Types are given, and are such that text has one form for them."""
    with pytest.raises(FormatError) as error:
        read(b"<RECORDS/>", schema)
    assert error.value.kind == "option"


@pytest.mark.parametrize("text", ["\0", "a\x1f", "\ufffe"])
def test_a_character_that_xml_lacks_is_an_error(text):
    """It could not be read back, not even escaped."""
    with pytest.raises(FormatError, match="column 'a'") as error:
        file_of(XmlWriterFactory(), pa.record_batch({"a": [text]}))
    assert error.value.kind == "value"


@pytest.mark.parametrize("layout", ["elements", "attributes"])
def test_escapes_that_may_not_fit_are_split(layout, monkeypatch):
    """Text whose escapes could exceed Arrow's limit is written in halves, and at last refused."""
    batch = pa.record_batch({"s": ["<aaa>", "&bbb&", "c" * 9]})
    whole = file_of(XmlWriterFactory(layout=layout), batch)
    monkeypatch.setattr("formats.xml.writer.MAX_TEXT", 5)
    assert file_of(XmlWriterFactory(layout=layout), batch) == whole
    monkeypatch.setattr("formats.xml.writer.MAX_TEXT", 4)
    with pytest.raises(FormatError, match="2 GiB") as error:
        file_of(XmlWriterFactory(layout=layout), batch)
    assert error.value.kind == "value"


def test_no_records_are_an_empty_root():
    """A document all the same."""
    data = file_of(XmlWriterFactory(), schema=pa.schema([("a", pa.string())]))
    assert len(ET.fromstring(data)) == 0  # noqa: S314 - our own bytes


@pytest.mark.parametrize(
    "field", [("a b", pa.string()), ("1a", pa.string()), ("xmlx", pa.string()), ("a", pa.list_(pa.int8()))]
)
def test_what_is_no_element_is_refused(field):
    """Names that XML does not allow, and nested columns."""
    with pytest.raises(FormatError, match=f"'{field[0]}'"):
        XmlWriterFactory().check_schema(pa.schema([field]))


@pytest.mark.parametrize(
    "options", [{"row_tag": "a b"}, {"root_tag": ""}, {"layout": "table"}, {"block_size": 0}], ids=str
)
def test_bad_options_are_refused(options):
    """At construction."""
    with pytest.raises(FormatError) as error:
        XmlWriterFactory(**options)
    assert error.value.kind == "option"


def test_bytes_that_are_no_text_are_replaced():
    """A string of Spark's may hold any bytes; a file that held them would be read by nobody."""
    column = pa.array([b"a\xffb"]).view(pa.string())
    output = io.BytesIO()
    batch = pa.record_batch({"t": column})
    writer = XmlWriterFactory().create(output, batch.schema)
    writer.write(batch)
    writer.finish()
    assert "<t>a\ufffdb</t>" in output.getvalue().decode()


@pytest.mark.parametrize("name", ["xmlns", "XmlData", "XML"])
def test_names_that_xml_keeps_for_itself_are_refused(name):
    """In any case of their letters."""
    with pytest.raises(FormatError, match=name):
        XmlWriterFactory().check_schema(pa.schema([(name, pa.string())]))
