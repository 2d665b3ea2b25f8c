"""Frames of durable values: nothing damaged, foreign, newer or oversized gets through."""

from __future__ import annotations

import hashlib
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filesink import framing
from filesink.errors import StateCorruptError, StateError, StateVersionError
from filesink.framing import frame, from_json, to_json, unframe

SHORT = frame("thing", 1, b'{"a":1}')


def open_thing(data):
    """The payload of a frame of kind ``thing``, version 2 at most."""
    return unframe("thing", 2, data, where="x/1.thing")


def forged(payload, *, form="plain", version=1, length=None):
    """A frame with a right checksum around anything."""
    size = len(payload) if length is None else length
    about = f"filesink thing {version} {form} {size} ".encode()
    return about + hashlib.sha256(about + payload).hexdigest().encode() + b"\n" + payload


@given(st.binary(max_size=200), st.integers(1, 2))
def test_what_was_framed_comes_back(payload, version):
    """Payload and version survive, whatever the bytes are."""
    assert open_thing(frame("thing", version, payload)) == (version, payload)


def test_large_payloads_are_compressed():
    """One that is larger than the record of 10^5 files is stored compressed and comes back as it was."""
    payload = b"abc" * 7_000_000
    data = frame("thing", 1, payload)
    assert len(data) < len(payload) // 10
    assert open_thing(data) == (1, payload)


def test_the_first_line_is_for_people():
    """``head -1`` tells kind, version, form and length."""
    assert SHORT.startswith(b"filesink thing 1 plain 7 ")


@pytest.mark.parametrize("data", [SHORT, frame("thing", 2, b"y" * 70_000)], ids=["plain", "zlib"])
def test_every_flipped_bit_is_noticed(data):
    """No single bit of header or payload can change unnoticed."""
    for position in range(min(len(data), 400)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[position] ^= 1 << bit
            with pytest.raises(StateError):
                open_thing(bytes(damaged))


def test_every_truncation_is_noticed():
    """A prefix of a frame, the empty one included, is no frame; nor is one with something behind it."""
    for length in range(len(SHORT)):
        with pytest.raises(StateCorruptError):
            open_thing(SHORT[:length])
    with pytest.raises(StateCorruptError):
        open_thing(SHORT + b"\n")


@pytest.mark.parametrize("data", [b"", b"\x80\x04N.", b"PAR1", b"filesink other 1 plain 0 "])
def test_other_files_are_refused(data):
    """A file of another kind, a pickle too, is named as not ours."""
    with pytest.raises(StateCorruptError, match=r"x/1\.thing is not a filesink thing") as raised:
        open_thing(data)
    assert raised.value.code == "MAGIC"


def test_another_kind_is_refused():
    """A whole frame of another kind is not taken for this one."""
    with pytest.raises(StateCorruptError):
        open_thing(frame("epoch-record", 1, b""))


def test_newer_versions_are_refused_with_a_sentence():
    """The message names both versions and the way out."""
    with pytest.raises(StateVersionError, match="has version 3, this release reads 1 to 2; upgrade filesink"):
        open_thing(frame("thing", 3, b""))


def test_a_claimed_length_allocates_nothing():
    """A length of terabytes is compared, not believed."""
    with pytest.raises(StateCorruptError):
        open_thing(forged(b"x", length=999_999_999_999))


def test_what_could_not_be_read_again_is_not_written(monkeypatch):
    """Else a record would be decided that no start can read."""
    monkeypatch.setattr(framing, "MAX_PAYLOAD", 8192)
    assert open_thing(frame("thing", 1, bytes(8192))) == (1, bytes(8192))
    with pytest.raises(StateError, match="of 8193 bytes") as raised:
        frame("thing", 1, bytes(8193))
    assert raised.value.code == "TOO_LARGE"


def test_a_compression_bomb_is_cut_off(monkeypatch):
    """A payload that expands beyond the bound is refused at the bound."""
    monkeypatch.setattr(framing, "MAX_PAYLOAD", 1000)
    with pytest.raises(StateCorruptError) as raised:
        open_thing(forged(zlib.compress(bytes(1001)), form="zlib"))
    assert raised.value.code == "TOO_LARGE"


def test_broken_compression_is_damage():
    """A right checksum around bytes that are not zlib is still refused as damage."""
    with pytest.raises(StateCorruptError):
        open_thing(forged(b"not zlib", form="zlib"))


def test_compressed_bytes_that_end_too_early_are_refused():
    """A right checksum around the beginning of a stream: what it gives is not all there was."""
    whole = zlib.compress(bytes(range(256)) * 40)
    with pytest.raises(StateCorruptError):
        open_thing(forged(whole[: len(whole) // 2], form="zlib"))


def test_json_is_canonical():
    """Keys are sorted and nothing is between them, so equal values are equal bytes."""
    assert to_json({"b": [1, None], "a": "é\ud800"}) == b'{"a":"\\u00e9\\ud800","b":[1,null]}'


def test_nan_is_not_written():
    """What strict readers refuse is not written."""
    with pytest.raises(ValueError, match="JSON compliant"):
        to_json(float("nan"))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"NaN",
        b"[-Infinity]",
        b'{"a":1,"a":2}',
        b'{"a":{"b":1,"b":1}}',
        b"[" * 1_000_000,
        b"9" * 5000,
        b"\xff",
        b"1 2",
    ],
    ids=["empty", "cut", "nan", "infinity", "twice", "twice-inside", "deep", "long-number", "latin", "two"],
)
def test_json_is_strict(text):
    """Lenient JSON, repeated keys and deep nesting are damage, not crashes."""
    with pytest.raises(StateCorruptError, match="x is not valid"):
        from_json(text, where="x")
