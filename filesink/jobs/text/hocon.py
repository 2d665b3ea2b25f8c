"""HOCON, as SeaTunnel's job files have it, to a written tree.

Why no library: each that reads HOCON merges two blocks of one name, and a job file may have two sources
``FakeSource``; none says in which line a value stands; and each follows an ``include`` wherever it leads.

Rules:
1. The same key may come again: merging is a question of ``resolve``.
2. ``a.b = 1`` is ``a { b = 1 }``; a quoted key is one key, whatever dots it has.
3. What is in quotes holds no reference: SeaTunnel's ``"${table_name}"`` stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable

from filesink.jobs.text.characters import Characters
from filesink.jobs.text.place import Place
from filesink.jobs.text.tree import Field, Reference, Text, Written, WrittenArray, WrittenObject

#: Gives what another file holds; called with its name and the place of the statement.
Include = Callable[[str, Place], WrittenObject]

_NOT_BARE = '$"{}[]:=,+#`^?!@*&\\\n'  # the characters that HOCON does not allow without quotes
_DEPTH = 64  # of objects and arrays in one another


def read_hocon(text: str, file: str, include: Include) -> WrittenObject:
    """The fields of a file.

    Raises:
        JobError: ``JOB_SYNTAX``, ``JOB_INCLUDE``.
    """
    return _Hocon(Characters(text, file), include).file()


def read_value(text: str, place: Place, include: Include) -> Written:
    """One value, such as ``{ fields { id = int } }``, that begins in the line of ``place``."""
    found = _Hocon(Characters(text, place.file, place.line), include)
    return found.value_alone()


class _Hocon:
    def __init__(self, characters: Characters, include: Include) -> None:
        self._in = characters
        self._include = include
        self._depth = 0

    def file(self) -> WrittenObject:
        self._in.space()
        has_braces = self._in.takes("{")
        place = self._in.place
        fields = self._fields("}" if has_braces else "")
        self._end()
        return WrittenObject(fields=fields, place=place)

    def value_alone(self) -> Written:
        self._in.space()
        found = self._value()
        self._end()
        return found

    def _end(self) -> None:
        self._in.space()
        if self._in.next:
            raise self._in.error(f"'{self._in.next}' closes nothing; take it out")

    def _fields(self, end: str) -> tuple[Field, ...]:
        fields: list[Field] = []
        begin = self._in.place
        while True:
            self._in.space(also="\n,")
            if end and self._in.takes(end):
                return tuple(fields)
            if self._in.next and self._in.next in "}]":
                raise self._in.error(f"'{self._in.next}' closes nothing; take it out")
            if not self._in.next:
                if end:
                    raise self._in.error(f"'{{' has no end; write '{end}' behind its last option", begin)
                return tuple(fields)
            fields.extend(self._included() if self._sees_include() else [self._field()])

    def _sees_include(self) -> bool:
        if not self._in.sees("include"):
            return False
        rest = self._in.text[self._in.at + len("include") :].lstrip(" \t")
        return rest.startswith(('"', "file(", "url(", "classpath(", "required(", "package("))

    def _included(self) -> tuple[Field, ...]:
        place = self._in.place
        self._in.takes("include")
        closing = 0
        while not self._in.sees('"'):
            self._in.space(also="")
            word = self._in.until('("\n')
            if word in {"url", "classpath", "package"}:
                raise self._in.error(f"include {word}(…) is not followed: name a file beside this one", place)
            closing += self._in.takes("(")
            if not self._in.next or self._in.next == "\n":
                raise self._in.error('include takes a file in quotes, such as include "common.conf"', place)
        name = self._in.quoted()
        for _ in range(closing):
            self._in.space(also="")
            self._in.takes(")")
        return self._include(name, place).fields

    def _field(self) -> Field:
        place, keys = self._in.place, self._keys()
        self._in.blanks()
        appends = self._in.takes("+=")
        if not appends and not self._in.sees("{") and not (self._in.takes("=") or self._in.takes(":")):
            raise self._in.error(f"'{'.'.join(keys)}' has no value; write '=' and a value behind it", place)
        self._in.space()
        field = Field(key=keys[-1], value=self._value(), place=place, appends=appends)
        for key in reversed(keys[:-1]):
            written = Written(pieces=(WrittenObject(fields=(field,), place=place),), place=place)
            field = Field(key=key, value=written, place=place)
        return field

    def _keys(self) -> list[str]:
        """A path of keys."""
        keys = [""]
        is_quoted = False
        while self._in.next and self._in.next not in "=:{}[],\n#" and not self._in.sees("+="):
            if self._in.sees('"'):
                keys[-1], is_quoted = keys[-1].lstrip() + self._in.quoted(), True
            elif self._in.takes("."):
                keys.append("")
            else:
                bare = self._in.until('="{}[]:,+\n#.')
                keys[-1] += bare.rstrip() if is_quoted else bare
                if self._in.sees("+") and not self._in.sees("+="):
                    keys[-1] += self._in.text[self._in.at]
                    self._in.at += 1
        found = [key.strip() for key in keys] if not is_quoted else keys
        if not all(found) and not is_quoted:
            raise self._in.error(f"a name of an option is missing before '{self._in.next or 'the end'}'")
        return found

    def _value(self) -> Written:
        place = self._in.place
        pieces: list[Text | Reference | WrittenObject | WrittenArray] = []
        while True:
            blanks = self._in.blanks()
            if not self._in.next or self._in.next in ",}]\n#" or self._in.sees("//"):
                break
            if blanks and pieces:
                pieces.append(Text(text=blanks))
            pieces.append(self._piece())
        if not pieces:
            raise self._in.error("a value is missing", place)
        return Written(pieces=tuple(pieces), place=place)

    def _piece(self) -> Text | Reference | WrittenObject | WrittenArray:
        place = self._in.place
        match self._in.next:
            case '"':
                return Text(text=self._in.quoted(), is_quoted=True)
            case "{":
                self._in.at += 1
                return self._deeper(lambda: WrittenObject(fields=self._fields("}"), place=place))
            case "[":
                self._in.at += 1
                return self._deeper(lambda: WrittenArray(items=self._items(place), place=place))
            case "$" if self._in.sees("${"):
                return self._reference()
            case _:
                return self._bare()

    def _deeper(
        self, inner: Callable[[], WrittenObject] | Callable[[], WrittenArray]
    ) -> WrittenObject | WrittenArray:
        self._depth += 1
        if self._depth > _DEPTH:
            raise self._in.error(f"objects and arrays are more than {_DEPTH} deep in one another")
        found = inner()
        self._depth -= 1
        return found

    def _items(self, begin: Place) -> tuple[Written, ...]:
        items: list[Written] = []
        while True:
            self._in.space(also="\n,")
            if self._in.takes("]"):
                return tuple(items)
            if not self._in.next or self._in.next == "}":
                raise self._in.error("'[' has no end; write ']' behind its last value", begin)
            items.append(self._value())

    def _reference(self) -> Reference:
        place = self._in.place
        self._in.takes("${")
        is_optional = self._in.takes("?")
        name = self._in.until("}\n")
        if not self._in.takes("}"):
            raise self._in.error("'${' has no end; write '}' behind the name", place)
        return reference(name, place, optional="?" if is_optional else "")

    def _bare(self) -> Text:
        text = ""
        while self._in.next and self._in.next not in _NOT_BARE and not self._in.sees("//"):
            if self._in.next in " \t\r":  # blanks are pieces of their own
                break
            text += self._in.next
            self._in.at += 1
        if not text:
            raise self._in.error(
                f"'{self._in.next}' cannot stand in a value without quotes; quote the value, but not its "
                'variables, as in "/data/day="${day}'
            )
        return Text(text=text)


def reference(inner: str, place: Place, *, optional: str = "") -> Reference:
    """What stands between ``${`` and ``}``; secrets keep their colon, ``env:TOKEN``."""
    name, colon, default = inner.strip().partition(":")
    if colon and name in SECRETS:
        return Reference(name=inner.strip(), place=place)
    return Reference(
        name=name.strip(),
        place=place,
        is_optional=bool(optional),
        default=default if colon else None,
    )


#: Where a secret may come from: ``${env:TOKEN}``, ``${file:/run/secrets/token}``, ``${hadoop:alias}``.
SECRETS = ("env", "file", "hadoop")
