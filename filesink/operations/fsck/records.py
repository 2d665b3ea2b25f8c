"""Reads all records of formats without checksums, as far as that tells whether bytes were changed.

Rules:
1. JSON lines are parsed, whatever columns they have. Of Avro blocks are expanded and their marks compared.
2. Of CSV and text nothing is checked but what a codec around them checks: what separates and quotes values is
   known to the sink only, and any byte may be text.
"""

from __future__ import annotations

from typing import Any, BinaryIO, Final, cast

import pyarrow as pa
import pyarrow.json as pj

from formats.avro import container
from formats.avro.codecs import AvroCodec, AvroCodecName
from formats.read_limits import guard_of, own_file

_PIECE: Final = 1 << 20  # bytes
_LONGEST: Final = 1 << 28  # bytes of a line; more are no record that a sink has written
_CODEC: Final = "avro.codec"
#: Anything may be a column, of any type, so nothing is compared with what lines before have had.
_ANY: Final = pj.ParseOptions(explicit_schema=pa.schema([]), unexpected_field_behavior="ignore")


def json_lines(file: BinaryIO) -> int:
    """The number of records.

    Raises:
        pa.ArrowInvalid, ValueError: a line is no JSON object, or no UTF-8.
    """
    total, lines = 0, bytearray()
    while piece := file.read(_PIECE):
        cut = len(lines) + piece.rfind(b"\n") + 1 if b"\n" in piece else 0
        lines += piece
        if cut:
            total += _parsed(bytes(lines[:cut]))
            del lines[:cut]
        elif len(lines) > _LONGEST:
            raise ValueError
    return total + _parsed(bytes(lines))


def _parsed(lines: bytes) -> int:
    """How many there are."""
    if not lines:
        return 0
    lines.decode()
    source: Any = pa.BufferReader(lines)
    pj.read_json(
        source,
        read_options=pj.ReadOptions(use_threads=False, block_size=len(lines) + 1),
        parse_options=_ANY,
    )
    return lines.count(b"\n") + (not lines.endswith(b"\n"))


def avro(file: BinaryIO) -> int:
    """The number of records that the blocks have.

    Raises:
        FormatError: a block is damaged, or ends too soon.
    """
    guard = guard_of(own_file(file))
    header = container.read_header(file)
    name = header.metadata.get(_CODEC, b"null").decode(errors="replace")
    codec = AvroCodec(name=cast("AvroCodecName", name))
    total = 0
    for block in container.read_blocks(file, header.marker, guard):
        codec.expand(block.data, guard=guard)
        total += block.count
    return total
