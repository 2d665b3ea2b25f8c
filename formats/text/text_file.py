"""A file of text as blocks in UTF-8: all of it, or the lines of it that begin in a split.

Where a line begins is seen from the line feed before it. So the reader of a split begins one character
early, at the first line feed from there on, and ends with the first one from the last character of the split
on. In a charset whose characters of ASCII have two or four bytes, characters are looked for at even places.
No charset that we take has the bytes of a line feed in another character (``formats.text.charsets``).
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import BinaryIO, Final

import numpy as np

from formats import reading
from formats.columns import Offsets
from formats.sizes import MAX_SIZE
from formats.splitting import Split
from formats.text import charsets

_BEHIND: Final = 64 << 10  # bytes read at a time behind a split, where its last line may end soon


class LastLine(Enum):
    """How a file may end: what a writer of ours leaves without a line feed was cut off."""

    HAS_FEED = "has feed"
    MAY_LACK_FEED = "may lack feed"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFile:
    """Text to be read from its beginning on, as often as somebody asks for its blocks.

    Attributes:
        file: stays with its owner.
        charset: of the file.
        split: the lines to be read; ``None`` for all.
        last_line: of the file; a feed is added where it may lack one.
        most: bytes of a block, whatever is asked for.
    """

    file: BinaryIO
    charset: str = charsets.UTF_8
    split: Split | None = None
    last_line: LastLine = LastLine.HAS_FEED
    most: int = MAX_SIZE

    def blocks(self, size: int) -> Iterator[bytes]:
        """The text, some ``size`` bytes of the file at a time; a character may lie in two blocks.

        Raises:
            UnicodeError: it is no text in the charset.
        """
        size = min(size, self.most)
        may_lack_feed = self.last_line is LastLine.MAY_LACK_FEED
        decoder = codecs.getincrementaldecoder(self.charset)()
        block = b"\n"
        for raw in self._all(size) if self.split is None else self._of(self.split, size):
            text = decoder.decode(raw)
            block = raw if self.charset == charsets.UTF_8 else text.encode()
            yield block
        if self.charset != charsets.UTF_8 or may_lack_feed:  # else what is cut off is no whole line either
            decoder.decode(b"", final=True)
        if may_lack_feed and not block.endswith(b"\n"):
            yield b"\n"

    def _all(self, size: int) -> Iterator[bytes]:
        self.file.seek(0)
        while block := self.file.read(size):
            yield block

    def _of(self, split: Split, size: int) -> Iterator[bytes]:
        feed = charsets.line_feed(self.charset)
        unit = len(feed)
        size = max(size // unit, 1) * unit
        start, end = (-(-place // unit) * unit for place in (split.start, split.end))
        at, last = max(start - unit, 0), end - unit
        is_inside = start == 0
        self.file.seek(at)
        while at < last and (block := reading.up_to(self.file, min(size, last - at))):
            at += len(block)
            if not is_inside:
                begins = behind_feeds(block, feed)[:1].tolist()
                is_inside, block = bool(begins), block[begins[0] :] if begins else b""
            if block:
                yield block
        while is_inside and (block := reading.up_to(self.file, _BEHIND)):
            ends = behind_feeds(block, feed)[:1].tolist()
            yield block[: ends[0]] if ends else block
            is_inside = not ends


def behind_feeds(block: bytes, feed: bytes) -> Offsets:
    """The places behind each line feed of a block, which begins with a character."""
    kind = f"u{len(feed)}"
    cells = np.frombuffer(block, kind, count=len(block) // len(feed))
    behind: Offsets = len(feed) * (1 + np.flatnonzero(cells == np.frombuffer(feed, kind)))
    return behind
