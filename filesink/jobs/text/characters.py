"""A text that is read from left to right, with the line where the reader is."""

from __future__ import annotations

from bisect import bisect_right

from filesink.errors import JobError
from filesink.jobs.text.place import Place, failure

_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_BLANKS = " \t\r\f\v\u00a0\ufeff"
_SHOWN = 20  # characters of a name in a message


class Characters:
    """Where a parser is in its text."""

    def __init__(self, text: str, file: str, first_line: int = 1) -> None:
        self.text, self.file, self.at = text, file, 0
        self._first = first_line
        self._starts = [0, *(index + 1 for index, one in enumerate(text) if one == "\n")]

    @property
    def place(self) -> Place:
        """The line of the next character."""
        return Place(self.file, self._first - 1 + bisect_right(self._starts, self.at))

    @property
    def next(self) -> str:
        """The next character; ``""`` at the end."""
        return self.text[self.at : self.at + 1]

    def sees(self, text: str) -> bool:
        """Whether ``text`` comes next."""
        return self.text.startswith(text, self.at)

    def takes(self, text: str) -> bool:
        """Go past ``text``, if it comes next."""
        if not self.sees(text):
            return False
        self.at += len(text)
        return True

    def until(self, stops: str) -> str:
        """Go on to the first of ``stops``, or to the end; what lies between."""
        begin = self.at
        while self.at < len(self.text) and self.text[self.at] not in stops:
            self.at += 1
        return self.text[begin : self.at]

    def blanks(self) -> str:
        """Go past blanks in the line."""
        begin = self.at
        while self.next and self.next in _BLANKS:
            self.at += 1
        return self.text[begin : self.at]

    def comment(self) -> bool:
        """Go past a comment, up to the end of its line."""
        if not (self.sees("#") or self.sees("//")):
            return False
        self.until("\n")
        return True

    def space(self, also: str = "\n") -> None:
        """Go past blanks, comments, and whatever is in ``also``."""
        while True:
            self.blanks()
            if not self.comment() and not (self.next and self.next in also):
                return
            if self.next and self.next in also:
                self.at += 1

    def quoted(self) -> str:
        """Go past a text in quotes, which comes next; without its quotes."""
        begin = self.place
        if self.takes('"""'):
            return self._until_three(begin)
        self.at += 1
        pieces = []
        while True:
            pieces.append(self.until('"\\\n'))
            if self.takes('"'):
                return "".join(pieces)
            if not self.takes("\\"):
                raise self.error("a text in quotes has no end in its line; write a closing quote", begin)
            pieces.append(self._escaped())

    def _until_three(self, begin: Place) -> str:
        end = self.text.find('"""', self.at)
        if end < 0:
            raise self.error('a text in three quotes has no end; write """ behind it', begin)
        while self.text.startswith('"', end + 3):  # more quotes belong to the text
            end += 1
        found, self.at = self.text[self.at : end], end + 3
        return found

    def _escaped(self) -> str:
        kind, self.at = self.next, self.at + 1
        if kind in _ESCAPES and kind:
            return _ESCAPES[kind]
        digits = self.text[self.at : self.at + 4]
        if kind == "u" and len(digits) == 4 and all(one in "0123456789abcdefABCDEF" for one in digits):
            self.at += 4
            return chr(int(digits, 16))
        raise self.error("a backslash stands before a character that needs none; write two for a backslash")

    def error(self, message: str, place: Place | None = None) -> JobError:
        """What is wrong with the text."""
        return failure(place or self.place, message, code="JOB_SYNTAX")
