"""How columns are laid out inside of a Parquet file; the defaults are those of pyarrow and Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from formats import columns
from formats.arguments import check_names, check_number, instance_of, one_of
from formats.arrow import Field
from formats.errors import FormatError
from formats.sizes import parse_size

# A dictionary that outgrows this is given up; a larger one costs time and hardly ever saves space.
_DICTIONARY_SIZE: Final = 256 << 10
_DIRECTIONS: Final = {"": False, "asc": False, "desc": True}
Columns = Literal["all", "none"] | Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetLayout:
    """Encodings, pages and what helps readers to skip rows.

    Columns are named by their paths, as in ``"price"``, ``"customer.name"``, ``"tags[]"`` or
    ``"counts.value"`` for the values of a map; only those that hold values themselves, not nested ones.

    Attributes:
        dictionary: columns that get a dictionary, until it is larger than 256 KiB.
        statistics: columns that get the least and the greatest value of each page and row group.
        page_size: bytes of a page before compression, or text such as ``"1MiB"``.
        page_index: whether the statistics of pages stand together before the footer.
        page_checksums: whether each page has a CRC-32.
        bloom_filters: columns with a Bloom filter, and their chances of a false positive.
        sorted_by: columns by which records *are* sorted, as ``"day"`` or ``"price desc"``, nulls first
            if ascending. It is written down for readers; nothing is sorted here.
        timestamps: ``"micros"``, or ``"int96"`` for old Hive and Impala, which is an instant always.

    Raises:
        FormatError: kind ``"option"``; a value out of its range.
    """

    dictionary: Columns = "all"
    statistics: Columns = "all"
    page_size: int | str = "1MiB"
    page_index: bool = False
    page_checksums: bool = False
    bloom_filters: Mapping[str, float] = field(default_factory=dict)
    sorted_by: Sequence[str] = ()
    timestamps: Literal["micros", "int96"] = "micros"

    def __post_init__(self) -> None:
        """Check the options and turn sizes into bytes."""
        object.__setattr__(self, "page_size", parse_size(self.page_size, name="page_size"))
        for name in ("dictionary", "statistics"):
            check_names(getattr(self, name), name=name, words=("all", "none"))
        for name in ("page_index", "page_checksums"):  # "false" would be true
            instance_of(getattr(self, name), bool, name=name)
        one_of(self.timestamps, ("micros", "int96"), name="timestamps")
        self._check_filters()
        check_names(self.sorted_by, name="sorted_by")
        for text in self.sorted_by:
            _direction(text)

    def check_schema(self, schema: pa.Schema) -> None:
        """Raise unless every column that is named is there and can have what the layout gives it.

        Raises:
            FormatError: kind ``"schema"``; names the column.
        """
        leaves = dict(_leaves(schema))
        for name in self._named():
            if name not in leaves:
                raise _not_a_leaf(name, schema)
        for name in self._sorted():
            if leaves[name] != name:
                raise FormatError(f"column {name!r} has many values in a record: leave it out of sorted_by")

    def arguments(self, schema: pa.Schema) -> dict[str, Any]:
        """What ``pyarrow.parquet.ParquetWriter`` takes for this layout; older ones lack some of it."""
        leaves = dict(_leaves(schema))
        arguments: dict[str, Any] = {
            "use_dictionary": _columns(self.dictionary, leaves),
            "write_statistics": _columns(self.statistics, leaves),
            "data_page_size": self.page_size,
            # As Spark does: a decimal of up to 18 digits is an integer, smaller and faster than bytes.
            "store_decimal_as_integer": True,
            "dictionary_pagesize_limit": _DICTIONARY_SIZE,
        }
        if self.page_index:
            arguments["write_page_index"] = True
        if self.page_checksums:
            arguments["write_page_checksum"] = True
        if self.bloom_filters:
            arguments["bloom_filter_options"] = {
                leaves[name]: {"fpp": fpp} for name, fpp in self.bloom_filters.items() if name in leaves
            }
        if self.sorted_by:
            places = [path for path, _ in _leaves(schema)]
            arguments["sorting_columns"] = [_sorting_column(places, text) for text in self.sorted_by]
        if self.timestamps == "int96":
            arguments["use_deprecated_int96_timestamps"] = True
        return arguments

    def _check_filters(self) -> None:
        for column, chance in instance_of(self.bloom_filters, Mapping, name="bloom_filters").items():
            instance_of(column, str, name="a column of bloom_filters")
            check_number(
                chance,
                lambda given: 0 < given < 1,
                name="the chance of a false positive, in bloom_filters,",
                wanted="a number between 0 and 1",
            )

    def _named(self) -> Iterable[str]:
        for names in (self.dictionary, self.statistics):
            yield from () if isinstance(names, str) else names
        yield from self.bloom_filters
        yield from self._sorted()

    def _sorted(self) -> list[str]:
        return [_direction(text)[0] for text in self.sorted_by]


def _columns(names: Columns, leaves: Mapping[str, str]) -> bool | list[str]:
    if isinstance(names, str):
        return names == "all"
    # A file from before a column came to be, which a merge writes anew, does not have it.
    return [leaves[name] for name in names if name in leaves]


def _leaves(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """The columns that hold values, in the order of the file: our path of each, and Parquet's.

    pyarrow passes over a name that is none of Parquet's.
    """
    for column in schema:
        yield from _inside(column, column.name, column.name)


def _inside(field: Field, path: str, inside: str) -> Iterator[tuple[str, str]]:
    if not columns.is_nested(field.type):
        yield path, inside
    for inner, child in columns.children(field, path=path):
        step = inner.removeprefix(path)
        if pt.is_map(field.type):
            step = f".key_value{step}"
        elif columns.is_list(field.type):
            step = ".list.element"
        yield from _inside(child, inner, inside + step)


def _not_a_leaf(name: str, schema: pa.Schema) -> FormatError:
    inner = [path for path, _ in _leaves(schema) if path.startswith((f"{name}.", f"{name}["))]
    if not inner:
        return FormatError(f"column {name!r} is named in the layout, but is not there")
    return FormatError(f"column {name!r} is nested: name what is inside, as {inner[0]!r}, in the layout")


def _direction(text: str) -> tuple[str, bool]:
    name, _, word = text.strip().partition(" ")
    if not name or word.strip().lower() not in _DIRECTIONS:
        raise FormatError(f"sorted_by takes 'column' or 'column desc', not {text!r}", kind="option")
    return name, _DIRECTIONS[word.strip().lower()]


def _sorting_column(places: Sequence[str], text: str) -> pq.SortingColumn:
    name, descending = _direction(text)
    return pq.SortingColumn(places.index(name), descending, not descending)
