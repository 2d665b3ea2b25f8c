"""What tells the fields of CSV apart: delimiter, quotes, and what stands before a quote inside of quotes."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import Final, Literal, get_args

import pyarrow as pa

from formats import columns
from formats.arrow import Text, pc
from formats.errors import FormatError
from formats.text.lines import MAX_TEXT

QuoteMode = Literal["minimal", "all", "none"]
BREAKS: Final = "\r\n"
# What may be in the text of numbers, times and bytes; other delimiters never are.
_IN_NUMBERS: Final = frozenset("+-.:[]' " + string.ascii_letters + string.digits)


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvDialect:
    r"""How fields are told apart.

    Attributes:
        delimiter: between fields; one or more characters.
        quote: around fields; one ASCII character.
        escape: before a quote or escape character inside quotes; one ASCII character. Equal to
            ``quote``, it doubles quotes, as RFC 4180 wants.
        quote_mode: ``"minimal"`` quotes where needed, ``"all"`` everywhere; with ``"none"`` a value that
            would need quotes cannot be written.
    """

    delimiter: str = ","
    quote: str = '"'
    escape: str = '"'
    quote_mode: QuoteMode = "minimal"

    def __post_init__(self) -> None:
        """Refuse what no reader could take apart."""
        for name in ("quote", "escape"):
            value = getattr(self, name)
            if not (isinstance(value, str) and len(value) == 1 and " " < value < "\x7f"):
                raise FormatError(
                    f"CSV {name} must be one visible ASCII character such as '\"'", kind="option"
                )
        taken = set(BREAKS + self.quote + self.escape)
        delimiter: object = self.delimiter
        if not isinstance(delimiter, str) or not delimiter or taken & set(delimiter):
            raise FormatError(
                "CSV delimiter must be text without quote, escape or line break, such as ';' or '\\t'",
                kind="option",
            )
        if "\\" in delimiter:  # for Spark it begins the name of a character, which nobody else knows
            raise FormatError("CSV delimiter has a backslash: give the character itself", kind="option")
        if self.quote_mode not in get_args(QuoteMode):
            raise FormatError("CSV quote_mode must be 'minimal', 'all' or 'none'", kind="option")

    def quotes(self) -> str:
        """What begins and ends fields for a reader: the quote, or nothing where no field has one."""
        return "" if self.quote_mode == "none" else self.quote

    def specials(self) -> str:
        """The characters of which one at least is in every field that needs quotes."""
        return BREAKS + self.quote + self.delimiter[0]

    def early_ends(self) -> list[str]:
        """Ends of a value with which the delimiter behind it seems to begin before it does."""
        delimiter = self.delimiter
        return [delimiter[:n] for n in range(1, len(delimiter)) if delimiter.startswith(delimiter[n:])]

    def is_in_numbers(self) -> bool:
        """Whether numbers, times or bytes may need quotes."""
        return not _IN_NUMBERS.isdisjoint(self.delimiter[0] + self.quote)

    def quoted(self, text: Text) -> Text:
        """Every value with escapes and quotes."""
        if len(columns.data(text)) > MAX_TEXT:  # Arrow's replacement would not notice a result too long
            raise pa.ArrowCapacityError("text may exceed 2 GiB when it is quoted")
        if self.escape != self.quote:
            text = pc.replace_substring(text, self.escape, self.escape * 2)
        text = pc.replace_substring(text, self.quote, self.escape + self.quote)
        return pc.binary_join_element_wise(self.quote, text, self.quote, "")


def default_escape(dialect: str, *, quote: str) -> str:
    """What stands before a quote inside of quotes.

    Raises:
        FormatError: kind ``"option"``; no such dialect.
    """
    match dialect:
        case "rfc4180":
            return quote
        case "spark":
            return "\\"
        case _:
            raise FormatError("CSV dialect must be 'rfc4180' or 'spark'", kind="option")
