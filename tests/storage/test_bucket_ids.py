"""Which ids can be directories, and which records have none. What readers say is in ``test_readers``."""

from __future__ import annotations

import pyarrow as pa
import pytest

from filesink.errors import BucketError
from filesink.storage.bucket_ids import check_bucket_id, encode_ids


@pytest.mark.parametrize(
    "bucket_id",
    ["", "a", "a/b", "dt=..", "a.b/c_", "é b", "k==", "x" * 255, "é" * 127 + "x", "/".join("x" * 256)],
)
def test_usable(bucket_id):
    """Relative paths of visible components are returned unchanged."""
    assert check_bucket_id(bucket_id) == bucket_id


@pytest.mark.parametrize(
    ("bucket_id", "code"),
    [
        *[(path, "RELATIVE") for path in ("/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b")],
        *[(path, "HIDDEN") for path in (".a", "_a", "a/_b", "_filesink/x", "...")],
        *[(path, "HIDDEN") for path in ("k=x._COPYING_", "a._COPYING_/b", "a/b._COPYING_")],
        *[(path, "ILLEGAL_CHAR") for path in ("a\0", "a\nb", "\x7f", "\ud800", "a/\x1b[2J")],
        *[(path, "ILLEGAL_CHAR") for path in ("\\", "a\\b", "k=a\\", "a/\\\\b")],
        *[(path, "EMPTY") for path in ("k=", "=v", "=", "a/k=", "k=/b")],
        *[(path, "TOO_LONG") for path in ("x" * 256, "é" * 128, "a/" + "x" * 256)],
        ("/".join(["é" * 127] * 13), "TOO_LONG"),
        ("/".join("x" * 257), "TOO_LONG"),
    ],
)
def test_unusable(bucket_id, code):
    """What leaves the base, is not seen by a reader or fits no file name is refused, and never shown."""
    with pytest.raises(BucketError) as caught:
        check_bucket_id(bucket_id)
    assert caught.value.code == code
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 250
    assert "x" * 100 not in message


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), "dictionary", "null in dictionary"], ids=str
)
def test_records_without_a_bucket_are_told_from_others(kind):
    """Null, what is no text and what is no path; each distinct id is looked at once."""
    texts = [b"a", None, b"\xff", b"b", b"../x", b"a", None, b"\xfe"]
    match kind:
        case "null in dictionary":
            values = pa.array([None, *texts]).cast(pa.large_binary()).view(pa.large_string())
            ids = pa.DictionaryArray.from_arrays(pa.array(range(1, 9), pa.int8()), values)
        case "dictionary":
            ids = pa.array(texts, pa.binary()).view(pa.string()).dictionary_encode()
        case _:
            ids = pa.array(texts, pa.binary()).view(pa.string())
            ids = ids if kind == pa.string() else pa.array(texts, pa.large_binary()).view(kind)
    found = encode_ids(ids)
    shown = [found.refused[code].code if code in found.refused else found.names[code] for code in found.codes]
    assert shown == ["a", "NULL", "ILLEGAL_CHAR", "b", "RELATIVE", "a", "NULL", "ILLEGAL_CHAR"]
    assert len(set(found.codes)) == len(found.names) == 6


def test_null_beside_the_largest_dictionary_of_its_index():
    """Codes of one byte have no room for one more."""
    ids = pa.DictionaryArray.from_arrays(
        pa.array([127, None, 0], pa.int8()), pa.array([f"b{number}" for number in range(128)])
    )
    found = encode_ids(ids)
    assert [found.names[code] for code in found.codes] == ["b127", "", "b0"]
    assert [why.code for why in found.refused.values()] == ["NULL"]


def test_unused_values_are_not_looked_at():
    """A dictionary may hold what no record has."""
    ids = pa.DictionaryArray.from_arrays(pa.array([0, 0]), ["a", "../unused"])
    assert not encode_ids(ids).refused
