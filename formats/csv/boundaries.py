"""Where a file of CSV can be cut: where records begin, which is seen from its beginning only.

A line feed in quotes ends no record, and whoever begins in the middle cannot know whether he is in quotes. So
the splits are made by one who reads the file from its first byte and counts quotes. That costs a whole
reading at planning, up to the last cut, at the speed of memory: nothing is parsed, and records are looked for
in the blocks around a cut only. A file no larger than the target is not read. Nor is any where no field has
quotes (``quote_mode="none"``): there every line feed ends a record, and any ranges will do.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import BinaryIO, Final

import numpy as np

from formats import reading, splitting
from formats.columns import Offsets
from formats.csv.options import CsvOptions
from formats.csv.records import Doubling
from formats.errors import FormatError
from formats.read_limits import guard_of
from formats.splitting import Split
from formats.text import charsets
from formats.text.text_file import behind_feeds

_BLOCK: Final = 1 << 20  # bytes read at a time; whole characters of ASCII
_FEED: Final = ord("\n")


def splits(file: BinaryIO, *, target: int, options: CsvOptions) -> list[Split]:
    """See ``Encoder.splits``."""
    if not options.dialect.quotes():
        return splitting.of_bytes(file, target=target)
    size = splitting.size_of(file)
    places = np.array(splitting.places(size, target), np.int64)
    with guard_of(file).naming():
        try:
            return splitting.between(_starts(file, places, options), size)
        except UnicodeError as error:
            raise FormatError(f"the file is not text in {options.charset}", kind="value") from error


def _starts(file: BinaryIO, places: Offsets, options: CsvOptions) -> Iterator[int]:
    """For each of ``places`` where the first record from there on begins, if there is one."""
    charset, quote = options.charset, ord(options.dialect.quote)
    decoder = codecs.getincrementaldecoder(charset)()
    doubling = Doubling(quote=options.dialect.quote, escape=options.dialect.escape)
    at, is_inside = 0, False
    file.seek(0)
    while len(places) and (block := reading.up_to(file, _BLOCK)):
        cells = doubling.cells(block if charset == charsets.UTF_8 else decoder.decode(block).encode())
        turns = cells == quote
        if places[0] <= at + len(block):
            # The line feeds of both are the same ones: none is a part of another character.
            feeds = np.searchsorted(np.flatnonzero(turns), np.flatnonzero(cells == _FEED))
            ends = behind_feeds(block, charsets.line_feed(charset))[(feeds + is_inside) % 2 == 0] + at
            found = np.searchsorted(ends, places)
            found = found[found < len(ends)]
            yield from ends[found].tolist()
            places = places[len(found) :]
        is_inside ^= bool(np.count_nonzero(turns) % 2)
        at += len(block)
