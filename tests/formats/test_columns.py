"""What is known about columns of Arrow."""

from __future__ import annotations

import pyarrow as pa
import pytest

from formats import columns
from formats.text import lines

TEXTS = pa.array([f"{place:0400}" for place in range(10_000)])
BYTES = 4_000_000
LAYOUTS = {
    "plain": TEXTS,
    "view": TEXTS.cast(pa.string_view()),
    "binary view": TEXTS.cast(pa.binary()).cast(pa.binary_view()),
    "dictionary": TEXTS.dictionary_encode(),
}


@pytest.mark.parametrize("column", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_slices_take_together_what_the_whole_takes(column):
    """And not each of them all the text that they share."""
    batch = pa.record_batch({"n": range(10_000), "t": column})
    assert columns.size(batch) == pytest.approx(BYTES, rel=0.1)
    for rows in (1_000, 3_000):
        parts = [columns.size(batch.slice(start, rows)) for start in range(0, 10_000, rows)]
        assert sum(parts) == pytest.approx(columns.size(batch), rel=0.01)


def test_of_a_view_its_own_text_counts():
    """Short texts stand in the view itself, and a null has none."""
    texts = ["z" * 70_000, "x" * 12, "x" * 13, None, ""]
    column = pa.array(texts).cast(pa.string_view())
    assert columns.size(pa.record_batch([column], ["t"])) == 5 * 16 + 70_000 + 13
    assert columns.size(pa.record_batch([column.slice(1)], ["t"])) == 4 * 16 + 13
    assert columns.size(pa.record_batch([column.slice(5)], ["t"])) == 0


def test_a_dictionary_that_few_values_refer_to_counts_once():
    """However many records refer to it."""
    column = pa.DictionaryArray.from_arrays(
        pa.array([0, 1] * 5_000, pa.int32()), ["x" * 70_000, "y" * 70_000]
    )
    assert columns.size(pa.record_batch([column], ["t"])) == pytest.approx(140_000 + 40_000, rel=0.01)


@pytest.mark.parametrize("column", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_a_batch_is_cut_into_as_many_pieces_in_every_layout(column, monkeypatch):
    """Every piece costs some work of its own, so pieces of one record would be slow."""
    monkeypatch.setattr(lines, "_PIECE_BYTES", BYTES // 20)
    batch = pa.record_batch({"t": column})
    pieces = list(lines.in_pieces(batch, lambda piece: piece))
    assert 20 <= len(pieces) <= 25
    assert pa.Table.from_batches(pieces) == pa.table(batch)


VOIDS = pa.list_(pa.null())
OTHER = pa.field("other", pa.null())
CASTS = {
    "filled": (pa.array([[None] * 3, None, [None]]), pa.list_(pa.string())),
    "list": (pa.array([[None] * 3, None, [None]]), pa.list_(OTHER)),
    "fixed": (pa.array([[None, None], None, [None, None]], pa.list_(pa.null(), 2)), pa.list_(OTHER, 2)),
    "large": (pa.array([[None] * 3, None, []], pa.large_list(pa.null())), pa.large_list(OTHER)),
    "struct": (
        pa.array([{"v": [None] * 4, "n": 1}, None, {"v": None, "n": 2}]),
        pa.struct([("v", VOIDS), ("n", pa.int32())]),
    ),
    "map": (
        pa.array([[("a", [None] * 3)], None, [("b", [None]), ("c", None)]], pa.map_(pa.string(), VOIDS)),
        pa.map_(pa.large_string(), VOIDS),
    ),
    "deep": (
        pa.array([[{"v": [None], "n": 1}] * 3, None, [{"v": [None] * 4, "n": None}]]),
        pa.list_(pa.struct([("v", VOIDS), ("n", pa.int32())])),
    ),
}


@pytest.mark.parametrize(("column", "kind"), CASTS.values(), ids=CASTS.keys())
def test_lists_of_nothing_but_null_are_cast(column, kind):
    """Wherever they are inside of a column, and in slices of it, they keep their lengths."""
    for start in range(len(column)):
        part = column.slice(start)
        found = columns.cast(part, kind)
        found.validate(full=True)
        assert found.type == kind
        assert found.to_pylist() == part.to_pylist()


def test_fields_of_structs_with_void_are_cast_by_name():
    """In the order that is asked for; one that is missing is null."""
    column = pa.array([{"v": [None], "n": 1}, {"v": [], "n": 2}])
    kind = pa.struct([("new", pa.string()), ("n", pa.int32()), ("v", pa.list_(pa.string()))])
    expected = [{"new": None, "n": 1, "v": [None]}, {"new": None, "n": 2, "v": []}]
    assert columns.cast(column, kind).to_pylist() == expected
