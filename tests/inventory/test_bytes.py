"""The bytes of an inventory: of the first release, as they are written now, and what else may lie there."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filesink.errors import FilesinkError, SecurityError, StateCorruptError, StateVersionError
from filesink.framing import frame, unframe
from filesink.inventory.entry import AddedFile, Cause, Draft, Entry
from filesink.inventory.mark import Mark, MarkKind, Segment
from filesink.inventory.names import schema_path
from filesink.inventory.rows.epochs import epochs_of
from filesink.inventory.rows.files import files_of
from filesink.inventory.rows.segments import rows_of, to_bytes
from filesink.inventory.schemas import put_schema, read_schema, schema_id
from filesink.ports import Who
from filesink.storage.memory import MemoryFile, MemoryFiles, MemoryStore
from tests.inventory.examples import COLUMNS, FIRST, GOLDEN, SECOND, golden, mark, segment

numbers = st.integers(0, 2**63 - 1)
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
paths = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0/."), min_size=1, max_size=5)
added = st.builds(AddedFile, path=paths, size=numbers, rows=st.none() | numbers, statistics=words)
drafts = st.builds(
    Draft,
    sink=words,
    slot=numbers,
    nonce=words,
    cause=st.builds(
        Cause, kind=words.filter(bool), query_id=words, batch_id=st.none() | numbers, mode=words, txn_id=words
    ),
    decided_ms=numbers,
    visible_ms=numbers,
    rows=numbers,
    size=numbers,
    who=st.builds(Who, application=words, user=words, host=words),
    source=words,
    schema=words,
    added=st.lists(added, max_size=3).map(tuple),
    removed=st.lists(paths, max_size=3).map(tuple),
)
segments = st.builds(
    Segment,
    name=st.just("000001-00000000-0000-4000-8000-00000000000f.files"),
    kind=st.just("files"),
    level=numbers,
    rows=numbers,
    first=numbers,
    last=numbers,
    visible_ms=numbers,
    size=numbers,
    sha256=words,
)
marks = st.builds(
    Mark,
    number=st.just(3),
    previous=words,
    version=numbers,
    folded_ms=numbers,
    base_id=words,
    kind=st.sampled_from(MarkKind),
    horizon=numbers,
    segments=st.lists(segments, max_size=2).map(tuple),
)
MARK = "_filesink/_inventory/000003.mark"


@given(drafts, numbers)
def test_an_entry_is_read_as_it_was_written(draft: Draft, version: int) -> None:
    """Every field comes back."""
    entry = Entry(version=version, base_id="b", epoch=draft)
    assert Entry.from_bytes(entry.to_bytes(), where="x") == entry


@given(marks)
def test_a_mark_is_read_as_it_was_written(value: Mark) -> None:
    """Every field comes back."""
    assert Mark.from_bytes(value.to_bytes(), where=MARK) == value


def test_entries_of_the_first_release() -> None:
    """They are read, and written as they were."""
    for name, entry in (("entry", FIRST), ("second-entry", SECOND)):
        assert Entry.from_bytes(golden(name), where="x") == entry
        assert entry.to_bytes() == golden(name)


def test_a_mark_of_the_first_release() -> None:
    """It is read, and written as it was."""
    assert Mark.from_bytes(golden("mark"), where="_filesink/_inventory/000001.mark") == mark()
    assert mark().to_bytes() == golden("mark")


def test_segments_of_the_first_release() -> None:
    """They hold what is made of the entries now; Parquet's bytes may be others."""
    files = pa.concat_tables(rows_of(golden("files"), segment("files", rows=4)))
    epochs = pa.concat_tables(rows_of(golden("epochs"), segment("epochs", rows=2)))
    assert files.to_pylist() == files_of([FIRST, SECOND]).to_pylist()
    assert epochs.to_pylist() == epochs_of([FIRST, SECOND]).to_pylist()
    assert [row["removed"] for row in files.to_pylist()] == [None, 2, 2, None]


def test_columns_of_the_first_release() -> None:
    """They are read, and have the same id."""
    files = MemoryFiles()
    files.files[schema_path(schema_id(COLUMNS))] = MemoryFile(1, 0, golden("schema"))
    assert schema_id(COLUMNS) == FIRST.epoch.schema
    assert read_schema(MemoryStore(files), schema_id(COLUMNS)).serialize().to_pybytes() == COLUMNS


def test_the_page_shows_the_bytes() -> None:
    """What ``docs/inventory.md`` has as a test vector is the entry of the first release."""
    page = (GOLDEN.parents[1] / "docs" / "inventory.md").read_text()
    for line in golden("entry").decode().splitlines():
        assert f"    {line}\n" in page


def test_what_parquet_is_made_of() -> None:
    """Any reader of Parquet reads a segment: zstd, columns without Arrow's notes, paths front coded."""
    data, _ = to_bytes([files_of([FIRST, SECOND])], "files")
    file = pq.ParquetFile(pa.BufferReader(data))
    columns = [file.metadata.row_group(0).column(index) for index in range(file.metadata.num_columns)]
    assert {column.compression for column in columns} == {"ZSTD"}
    assert "DELTA_BYTE_ARRAY" in columns[0].encodings
    assert file.metadata.metadata == {b"filesink.inventory": b"1"}
    assert pq.read_table(pa.BufferReader(data))["path"].to_pylist() == sorted(
        pq.read_table(pa.BufferReader(data))["path"].to_pylist()
    )


def test_a_newer_segment_is_refused() -> None:
    """It says that filesink is to be upgraded."""
    output = pa.BufferOutputStream()
    with pq.ParquetWriter(output, files_of([FIRST]).schema) as writer:
        writer.write_table(files_of([FIRST]))
        writer.add_key_value_metadata({"filesink.inventory": "2"})
    data = output.getvalue().to_pybytes()
    found = Segment(
        **{**{name: getattr(segment("files", rows=4), name) for name in Segment.__slots__}, **digests(data)}
    )
    with pytest.raises(StateVersionError, match="upgrade filesink"):
        list(rows_of(data, found))


def digests(data: bytes) -> dict[str, object]:
    """Size and hash as a mark has them."""
    from filesink.inventory.mark import digest

    return {"size": len(data), "sha256": digest(data)}


@pytest.mark.parametrize("kind", ["files", "epochs"])
def test_parquet_that_is_none_of_ours_is_told(kind: str) -> None:
    """Even if a mark names it with the right hash."""
    output = pa.BufferOutputStream()
    pq.write_table(pa.table({"x": [1]}), output)
    for data in (output.getvalue().to_pybytes(), b"PAR1", b""):
        found = {name: getattr(segment(kind, rows=1), name) for name in Segment.__slots__} | digests(data)
        with pytest.raises(StateCorruptError, match="cannot be read"):
            list(rows_of(data, Segment(**found)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("version", -1), ("version", "1"), ("base_id", 1), ("slot", None), ("cause", {"kind": 1}),
        ("cause", {}),
        ("cause", {"kind": "x", "other": 1}), ("added", [["a"]]), ("added", [["a", 1, "1", ""]]),
        ("added", [["a", -1, 1, ""]]), ("added", 1), ("removed", [1]), ("removed", None),
        ("source", "\ud800"),
    ],
)  # fmt: skip
def test_an_entry_of_another_form_is_told(name: str, value: object) -> None:
    """With a right checksum: whoever wrote it was not this program."""
    _, payload = unframe("inventory-entry", 1, FIRST.to_bytes(), where="x")
    changed = json.dumps({**json.loads(payload), name: value}).encode()
    with pytest.raises(StateCorruptError, match="x is malformed"):
        Entry.from_bytes(frame("inventory-entry", 1, changed), where="x")


@pytest.mark.parametrize("path", ["../a", "/a", "a//b", "", "a/../b"])
def test_a_path_that_leaves_the_base_is_refused(path: str) -> None:
    """Nobody reads, or removes, what lies outside."""
    _, payload = unframe("inventory-entry", 1, FIRST.to_bytes(), where="x")
    for change in ({"added": [[path, 1, 1, ""]]}, {"removed": [path]}):
        changed = json.dumps({**json.loads(payload), **change}).encode()
        with pytest.raises(SecurityError, match="x: path") as caught:
            Entry.from_bytes(frame("inventory-entry", 1, changed), where="x")
        assert caught.value.code == "ESCAPE"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("number", 1.0), ("kind", "other"), ("segments", [{}]), ("segments", [1]), ("horizon", -1),
        ("segments", [{"name": "../x", "kind": "files", "level": 0, "rows": 0, "first": 0, "last": 0,
                       "visible_ms": 0, "size": 0, "sha256": ""}]),
    ],
)  # fmt: skip
def test_a_mark_of_another_form_is_told(name: str, value: object) -> None:
    """With a right checksum; segments outside of the directory are not looked for."""
    _, payload = unframe("inventory-mark", 1, mark().to_bytes(), where="x")
    changed = json.dumps({**json.loads(payload), name: value}).encode()
    with pytest.raises(StateCorruptError, match="is malformed"):
        Mark.from_bytes(frame("inventory-mark", 1, changed), where="_filesink/_inventory/000001.mark")


@given(st.binary(max_size=300))
def test_any_bytes_are_an_error_of_ours(data: bytes) -> None:
    """Nothing else comes through, whatever lies there."""
    for read in (Entry.from_bytes, Mark.from_bytes):
        with pytest.raises(FilesinkError):
            read(data, where=MARK)


def test_columns_that_are_others_are_told() -> None:
    """Missing, copied from another id, or no columns at all."""
    files = MemoryFiles()
    store = MemoryStore(files)
    name = schema_id(COLUMNS)
    with pytest.raises(StateCorruptError, match=f"{name}.schema is missing"):
        read_schema(store, name)
    put_schema(store, COLUMNS)
    put_schema(store, COLUMNS)
    assert read_schema(store, name).names == ["day", "origin"]
    files.files[schema_path("0" * 16)] = files.files[schema_path(name)]
    with pytest.raises(StateCorruptError, match="holds other columns"):
        read_schema(store, "0" * 16)
    put_schema(store, b"no columns")
    with pytest.raises(StateCorruptError, match="is malformed"):
        read_schema(store, schema_id(b"no columns"))
