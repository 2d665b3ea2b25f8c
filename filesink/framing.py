r"""How durable and travelling values become bytes: magic, version, length, checksum, payload.

One line of ASCII, so that ``head -1`` tells what a file is, then the payload:

    filesink <kind> <version> <plain|zlib> <payload length> <sha256>\n

The checksum is of everything before it in the line and of the payload as stored, so that no bit of
the header can change unnoticed either.

Rules: nothing is decoded before length and checksum are right; nothing is allocated by a length
that was read; nothing is ever unpickled. An unknown version is refused with a sentence.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar, cast

from filesink.errors import ConfigError, StateCorruptError, StateError, StateVersionError

MAX_PAYLOAD = 1 << 30  # bytes; a record of 10^5 files has 14 MB
_COMPRESS_FROM = 1 << 12  # bytes; below that a record stays readable with `cat`
_END_OF_NUMBERS = 1 << 64
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_HEADER = re.compile(
    rb"(filesink ([a-z-]{1,32}) ([1-9][0-9]{0,5}) (plain|zlib) ([0-9]{1,12}) )([0-9a-f]{64})\n"
)

T = TypeVar("T")


class Codec(Protocol[T]):
    """Bytes of a list of values, with a version, as in Flink's ``SimpleVersionedSerializer``."""

    @property
    def version(self) -> int:
        """Version of what ``encode`` writes; goes up with every change of the bytes."""
        ...

    def encode(self, values: Sequence[T]) -> bytes:
        """The values as bytes. Never a pickle."""
        ...

    def decode(self, version: int, data: bytes) -> list[T]:
        """What was encoded, by this or any older version. Raises ``StateError`` for anything else."""
        ...


class JsonCodec:
    """Values of JSON (text, numbers, lists, …) as they are; a tuple comes back as a list.

    For values of a sink of your own that need no checks: one that was damaged is noticed where it is kept.
    """

    version = 1

    def encode(self, values: Sequence[Any]) -> bytes:
        """See ``Codec.encode``.

        Raises:
            ConfigError: ``BAD_VALUE``; JSON has no such value.
        """
        try:
            return to_json(list(values))
        except (TypeError, ValueError, RecursionError) as error:
            raise ConfigError(
                f"a sink has made a value that JSON cannot hold ({error}): committables and states are made "
                "of text, numbers, lists and dicts, unless the sink has another codec. Nothing was written",
                code="BAD_VALUE",
            ) from error

    def decode(self, version: int, data: bytes) -> list[Any]:
        """See ``Codec.decode``."""
        found = from_json(data, where="a value of a sink")
        if version != self.version or not isinstance(found, list):
            raise StateCorruptError("a value of a sink is malformed", code="JSON")
        return found


def frame(kind: str, version: int, payload: bytes) -> bytes:
    """``payload`` with its header; large payloads are compressed.

    Raises:
        StateError: ``TOO_LARGE``; ``unframe`` would refuse it.
    """
    if len(payload) > MAX_PAYLOAD:
        raise StateError(
            f"a {kind} of {len(payload)} bytes could not be read again. Nothing was written. It has too many "
            "files: use fewer buckets at a time, let fewer files wait for compaction, or roll less often",
            code="TOO_LARGE",
        )
    form = "plain"
    if len(payload) >= _COMPRESS_FROM:
        form, payload = "zlib", zlib.compress(payload, 1)
    about = f"filesink {kind} {version} {form} {len(payload)} ".encode()
    return about + _digest(about, payload) + b"\n" + payload


def unframe(kind: str, supported: int, data: bytes, *, where: str) -> tuple[int, bytes]:
    """Version and payload of what ``frame`` made.

    Args:
        kind: what the value must be.
        supported: the newest version this release reads.
        data: the bytes.
        where: named in errors, a path or a sender.

    Raises:
        StateCorruptError: not such a value, or damaged.
        StateVersionError: written by a newer release.
    """
    header = _HEADER.match(data[:160])
    if header is None or header[2] != kind.encode():
        raise StateCorruptError(f"{where} is not a filesink {kind}; restore it from a backup", code="MAGIC")
    version = int(header[3])
    if version > supported:
        raise StateVersionError(
            f"{where} has version {version}, this release reads 1 to {supported}; upgrade filesink",
            code="VERSION",
        )
    payload = data[header.end() :]
    if len(payload) != int(header[5]) or _digest(header[1], payload) != header[6]:
        raise StateCorruptError(f"{where} is damaged: length or checksum is wrong", code="CHECKSUM")
    if header[4] == b"zlib":
        payload = _inflate(payload, where)
    return version, payload


def _digest(about: bytes, payload: bytes) -> bytes:
    digest = hashlib.sha256(about)
    digest.update(payload)
    return digest.hexdigest().encode()


def _inflate(payload: bytes, where: str) -> bytes:
    stream = zlib.decompressobj()
    try:
        plain = stream.decompress(payload, MAX_PAYLOAD)
    except zlib.error as error:
        raise StateCorruptError(f"{where} is damaged: {error}", code="CHECKSUM") from error
    if stream.unconsumed_tail or not stream.eof:
        raise StateCorruptError(f"{where} expands beyond {MAX_PAYLOAD} bytes", code="TOO_LARGE")
    return plain


def to_json(value: Any) -> bytes:
    """Canonical JSON: sorted keys, no spaces, UTF-8 (lone surrogates as escapes)."""
    return _CANONICAL.encode(value).encode()


def from_json(data: bytes, *, where: str) -> Any:
    """Strict JSON: no NaN, no repeated keys, no deep nesting.

    Raises:
        StateCorruptError: anything else.
    """
    try:
        return _STRICT.decode(data.decode())
    except (ValueError, RecursionError) as error:
        raise StateCorruptError(f"{where} is not valid: {type(error).__name__}", code="JSON") from error


def check_field(name: str, value: object, kind: type[Any]) -> None:
    """Raise unless ``value`` is exactly of ``kind``, and one that we could have written.

    Numbers are neither negative nor larger than any of ours; text has no lone surrogates, which cannot be
    written, hashed or sent.

    Raises:
        TypeError: it is not; says which field.
    """
    if type(value) is not kind:
        raise TypeError(name)
    if kind is int and not 0 <= cast("int", value) < _END_OF_NUMBERS:
        raise TypeError(name)
    if kind is str and not is_plain(cast("str", value)):
        raise TypeError(name)


def is_plain(text: str) -> bool:
    """Whether ``text`` has no lone surrogates."""
    return text.isascii() or not _LONE_SURROGATE.search(text)


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("repeated key")
    return value


# Made once: with options of their own ``json.dumps`` and ``json.loads`` make one per call.
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
_STRICT = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_unique)
