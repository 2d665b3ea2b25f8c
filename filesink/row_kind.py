"""What a row of changes does to a table, in the words of Flink and SeaTunnel. Pure."""

from __future__ import annotations

from enum import Enum


class RowKind(Enum):
    """The kind of a change. An update is a pair of rows: the one that goes and the one that comes.

    The values are what stands in a column of kinds, as text.
    """

    INSERT = "+I"
    UPDATE_BEFORE = "-U"
    UPDATE_AFTER = "+U"
    DELETE = "-D"
