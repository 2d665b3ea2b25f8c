"""Tables of at most 100 columns: what does not fit goes on in the next line, and nothing is cut off."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from rich.table import Table
from rich.text import Text

from filesink.cli.call import Call
from filesink.cli.text import clean

_AT_A_TIME = 2000  # rows whose widths are made equal


def show_table(call: Call, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print ``rows`` below ``columns``; the name of a column of numbers begins with ``>``.

    Very many rows are printed some at a time.
    """
    waiting = iter(rows)
    is_first = True
    while some := list(islice(waiting, _AT_A_TIME)):
        call.out.print(_table(columns, some, has_header=is_first))
        is_first = False


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, has_header: bool) -> Table:
    table = Table(box=None, pad_edge=False, show_header=has_header, header_style="bold")
    for name in columns:
        is_number = name.startswith(">")
        table.add_column(
            name.removeprefix(">"),
            justify="right" if is_number else "left",
            no_wrap=is_number,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(Text(clean(cell)) for cell in row))
    return table
