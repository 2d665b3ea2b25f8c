"""Which rows are erased: a condition as in SQL, and nothing more of SQL than that. Pure.

    condition  = comparison { AND comparison }
    comparison = column ( = | <> | != | < | <= | > | >= ) literal
               | column [ NOT ] IN ( literal { , literal } )
               | column IS [ NOT ] NULL
    literal    = number | 'text' | TRUE | FALSE             column = name | `name` | "name"

A date or a moment is text of ISO 8601. Null compared with anything is not true, and such a row stays.

Rule: no message has a literal in it. It is a value of a record.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from typing import Any, Final, NoReturn

import pyarrow as pa
import pyarrow.types as pt

from filesink.errors import ConfigError
from formats.arrow import pc

_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
      | '(?P<text>(?:[^']|'')*)'
      | (?P<word>[^\W\d]\w*)
      | `(?P<ticked>(?:[^`]|``)+)` | "(?P<quoted>(?:[^"]|"")+)"
      | (?P<sign><=|>=|<>|!=|=|<|>|\(|\)|,)
    )""",
    re.VERBOSE,
)
_COMPARE: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class LiteralKind(Enum):
    """How a literal is written."""

    NUMBER = "a number"
    TEXT = "text"
    TRUTH = "TRUE or FALSE"


@dataclass(frozen=True, slots=True)
class Literal:
    """A value of a condition; not shown, since it is one of a record."""

    kind: LiteralKind
    _text: str

    def __repr__(self) -> str:
        return f"<{self.kind.value}>"

    def scalar(self, column: str, kind: pa.DataType) -> pa.Scalar[Any]:
        """The value as one of a column.

        Raises:
            ConfigError: ``CONDITION``; it cannot be compared with such values.
        """
        if self.kind is not _written_as(kind):
            raise ConfigError(
                f"column '{column}' is of type {kind}, and cannot be compared with {self.kind.value}",
                code="CONDITION",
            )
        try:
            return pa.scalar(self._text, pa.string()).cast(kind)
        except (pa.ArrowException, ValueError, OverflowError):
            pass  # its text has the literal
        raise ConfigError(
            f"column '{column}' is of type {kind}, and a literal that it is compared with is no such value"
            + (
                ": write dates and moments as ISO 8601, with a zone if the column has one"
                if _is_time(kind)
                else ""
            ),
            code="CONDITION",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One of a condition. ``literals`` are empty for ``IS NULL``."""

    column: str
    sign: str
    literals: tuple[Literal, ...] = ()

    def on(self, kind: pa.DataType) -> Any:
        """As an expression of Arrow, for a column of type ``kind``."""
        field = pc.field(self.column)
        if pt.is_dictionary(kind):
            kind = kind.value_type
            field = field.cast(kind)
        match self.sign:
            case "IS NULL":
                return field.is_null()
            case "IS NOT NULL":
                return field.is_valid()
        values = [literal.scalar(self.column, kind) for literal in self.literals]
        match self.sign:
            case "IN":  # spelled out: older files may have a narrower type, and is_in takes no other
                return reduce(operator.or_, [field == value for value in values])
            case "NOT IN":
                return reduce(operator.and_, [field != value for value in values])
            case sign:
                return _COMPARE[sign](field, values[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What a row has to be like to be erased: all comparisons hold."""

    comparisons: tuple[Comparison, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are compared, in their order."""
        return tuple(dict.fromkeys(one.column for one in self.comparisons))

    def named_as_in(self, schema: pa.Schema) -> Condition:
        """The same with the names of ``schema``: exact ones, else regardless of case.

        Raises:
            ConfigError: ``NO_COLUMN``; there is none such, or several.
        """
        names = {column: _found(column, schema) for column in self.columns}
        return Condition(
            comparisons=tuple(
                Comparison(column=names[one.column], sign=one.sign, literals=one.literals)
                for one in self.comparisons
            )
        )

    def on(self, schema: pa.Schema) -> Any:
        """As an expression of Arrow, for records with these columns.

        Raises:
            ConfigError: ``CONDITION``; a column cannot be compared so.
        """
        return reduce(operator.and_, [one.on(schema.field(one.column).type) for one in self.comparisons])


def parse(text: object) -> Condition:
    """A condition from its text.

    Raises:
        ConfigError: ``CONDITION``; it says where, and not what stands there.
    """
    if not isinstance(text, str):
        raise ConfigError(f"where must be text, got {type(text).__name__}", code="BAD_VALUE")
    return _Parser(text).condition()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0

    def condition(self) -> Condition:
        comparisons = [self._comparison()]
        while self._word("AND"):
            comparisons.append(self._comparison())
        if self._text[self._place :].strip():
            self._fail("AND, or the end")
        return Condition(comparisons=tuple(comparisons))

    def _comparison(self) -> Comparison:
        column = self._column()
        if self._word("IS"):
            sign = "IS NOT NULL" if self._word("NOT") else "IS NULL"
            return Comparison(column=column, sign=sign) if self._word("NULL") else self._fail("NULL")
        if self._word("NOT"):
            return self._among(column, "NOT IN") if self._word("IN") else self._fail("IN")
        if self._word("IN"):
            return self._among(column, "IN")
        sign = self._next("sign")
        if sign not in _COMPARE:
            self._fail("a comparison")
        return Comparison(column=column, sign=sign, literals=(self._literal(),))

    def _among(self, column: str, sign: str) -> Comparison:
        literals = [self._after("(")]
        while (found := self._next("sign")) == ",":
            literals.append(self._literal())
        return (
            Comparison(column=column, sign=sign, literals=tuple(literals))
            if found == ")"
            else self._fail(")")
        )

    def _after(self, sign: str) -> Literal:
        return self._literal() if self._next("sign") == sign else self._fail(sign)

    def _column(self) -> str:
        for kind, quote in (("word", ""), ("ticked", "`"), ("quoted", '"')):
            if found := self._next(kind):
                return found.replace(quote * 2, quote) if quote else found
        return self._fail("the name of a column")

    def _literal(self) -> Literal:
        if found := self._next("number"):
            return Literal(LiteralKind.NUMBER, found)
        if self._peek("text") is not None:
            return Literal(LiteralKind.TEXT, self._next("text").replace("''", "'"))
        for truth in ("TRUE", "FALSE"):
            if self._word(truth):
                return Literal(LiteralKind.TRUTH, truth.lower())
        return self._fail("a number, text in single quotes, TRUE or FALSE")

    def _word(self, word: str) -> bool:
        return (self._peek("word") or "").upper() == word and bool(self._next("word"))

    def _peek(self, kind: str) -> str | None:
        found = _TOKEN.match(self._text, self._place)
        return None if found is None else found[kind]

    def _next(self, kind: str) -> str:
        """The next token if it is of this kind, else ``""``, and the place stays."""
        found = _TOKEN.match(self._text, self._place)
        if found is None or found[kind] is None:
            return ""
        self._place = found.end()
        return found[kind]

    def _fail(self, expected: str) -> NoReturn:
        raise ConfigError(
            f"the condition cannot be read at character {self._place + 1}: {expected} is expected there. It "
            "is comparisons with AND between them, such as \"customer_id = 7 AND day >= '2026-01-01'\"; and "
            "IN (…), IS NULL",
            code="CONDITION",
        )


def _found(column: str, schema: pa.Schema) -> str:
    if column in schema.names:
        return column
    alike = [name for name in schema.names if name.lower() == column.lower()]
    if len(alike) != 1:
        known = ", ".join(f"'{name}'" for name in schema.names[:20])
        raise ConfigError(
            f"there is no column '{column[:80]}'; known: {known}"
            if not alike
            else f"column '{column[:80]}' may be any of {', '.join(map(repr, alike))}: write it as it is",
            code="NO_COLUMN",
        )
    return str(alike[0])


def _is_time(kind: pa.DataType) -> bool:
    return pt.is_date(kind) or pt.is_timestamp(kind)


def _written_as(kind: pa.DataType) -> LiteralKind | None:
    """How literals are written that are compared with such a column; ``None`` if none can be."""
    if pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind):
        return LiteralKind.NUMBER
    if pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind) or _is_time(kind):
        return LiteralKind.TEXT
    return LiteralKind.TRUTH if pt.is_boolean(kind) else None
