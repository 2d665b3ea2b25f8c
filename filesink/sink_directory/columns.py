"""The columns of a snapshot: those of its newest files, and those that only the directories show.

A record notes the columns of its input, those that became directories included. What directories show beyond
that, such as days that an assigner has made, is text. Files that were made of others, as by a compaction,
have none noted: there the layout of the path tells, which has the columns of all that was ever written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from filesink.buckets.partition_paths import partition_values
from filesink.errors import SchemaError
from formats.arrow import Field, pc

OnOtherSchema = Literal["refuse", "union"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """The columns of the newest files of one sink that has any noted."""

    sink: str
    schema: str
    added: int


def noted(files: pa.Table) -> list[Noted]:
    """What sinks have noted of the columns of ``files``, the newest first."""
    names = ["sink", "schema", "added"]
    words: Any = [files["sink"].cast(pa.string()), files["schema"].cast(pa.string()), files["added"]]
    rows = pa.table(words, names=names).group_by(["sink", "schema"]).aggregate([("added", "max")])
    newest = [row for row in rows.to_pylist() if row["schema"]]
    found = [Noted(sink=row["sink"], schema=row["schema"], added=row["added_max"]) for row in newest]
    found.sort(key=lambda one: (-one.added, one.sink, one.schema))
    return [one for place, one in enumerate(found) if all(other.sink != one.sink for other in found[:place])]


def are_all_noted(files: pa.Table) -> bool:
    """Whether the columns of each of ``files`` are."""
    return all(pc.unique(files["schema"].cast(pa.string())).to_pylist())


def with_layouts(schema: pa.Schema, layouts: Sequence[pa.Schema]) -> pa.Schema:
    """``schema`` with what ``layouts`` have besides; a type that one alone has widened is the wider one."""
    wider = {field.name.lower(): field.type for field in layouts[0]} if len(layouts) == 1 else {}
    columns = [field.with_type(wider.get(field.name.lower(), field.type)) for field in schema]
    known = {field.name.lower() for field in columns}
    for field in (field for layout in layouts for field in layout):
        if field.name.lower() not in known:
            known.add(field.name.lower())
            columns.append(field)
    return pa.schema(columns)


def with_partitions(schema: pa.Schema, buckets: Iterable[str]) -> pa.Schema:
    """``schema`` with the columns that are in the path of ``buckets`` alone, as text."""
    names = dict.fromkeys(name for bucket in buckets for name, _ in partition_values(bucket))
    more = [pa.field(name, pa.string()) for name in names if name not in schema.names]
    return pa.schema([*schema, *more])


def together(
    found: Sequence[Noted], read: Callable[[str], pa.Schema], on_other_schema: OnOtherSchema
) -> pa.Schema:
    """The columns of files of all sinks.

    Args:
        found: what each sink has noted, the newest first; at least one.
        read: the columns with an id.
        on_other_schema: whether columns that one sink has and another has not are an error.

    Raises:
        SchemaError: ``TWO_SCHEMAS``; two sinks have other columns, or one name with two types.
    """
    first, *others = found
    columns = {field.name: field for field in read(first.schema)}
    for other in others:
        fields = {field.name: field for field in read(other.schema)}
        _check_types(first, columns, other, fields)
        if on_other_schema == "refuse" and fields.keys() != columns.keys():
            name = min(fields.keys() ^ columns.keys())
            lacks, has = (other, first) if name in columns else (first, other)
            raise SchemaError(
                f"files of sink '{has.sink}' have a column {name!r}, and those of sink '{lacks.sink}' have "
                "none. Read them together with on_other_schema='union', or the files of one sink alone",
                code="TWO_SCHEMAS",
            )
        columns |= {name: field for name, field in fields.items() if name not in columns}
    return pa.schema(columns.values())


def _check_types(one: Noted, columns: Mapping[str, Field], other: Noted, fields: Mapping[str, Field]) -> None:
    for name in columns.keys() & fields.keys():
        here, there = columns[name].type, fields[name].type
        if here != there:
            raise SchemaError(
                f"column {name!r} is {here} in files of sink '{one.sink}', and {there} in those of sink "
                f"'{other.sink}'; read the files of one sink alone",
                code="TWO_SCHEMAS",
            )
