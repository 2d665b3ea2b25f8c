"""Transforms of columns, by SeaTunnel's words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from filesink.errors import JobError
from filesink.jobs.model.column_types import quoted, sql_text
from filesink.jobs.model.options import Names, option
from filesink.jobs.plugins.api import OneTableTransform, PluginOptions
from filesink.jobs.text.place import nearest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def check_columns(frame: DataFrame, names: Sequence[str], of: str) -> None:
    """Raise if one of ``names`` is no column.

    Raises:
        JobError: ``JOB_COLUMN``; names the nearest.
    """
    for name in names:
        if name not in frame.columns:
            raise JobError(
                f"{of} names a column '{name}', which does not exist{nearest(name, frame.columns)}",
                code="JOB_COLUMN",
            )


class FilterOptions(PluginOptions):
    """Which columns stay."""

    include: Names = option((), doc="These, in this order.", words=("include_fields", "fields"))
    exclude: Names = option((), doc="All but these.", words=("exclude_fields",))

    @model_validator(mode="after")
    def _one_of_both(self) -> FilterOptions:
        if bool(self.include) == bool(self.exclude):
            raise PydanticCustomError("filter", "needs 'include_fields' or 'exclude_fields', and not both")
        return self


class Filter(OneTableTransform):
    """Keeps some columns."""

    name = "Filter"
    options_type = FilterOptions
    options: FilterOptions

    def changed(self, frame: DataFrame) -> DataFrame:
        """See ``OneTableTransform.changed``."""
        include, exclude = self.options.include, self.options.exclude
        check_columns(frame, [*include, *exclude], "transform Filter")
        return frame.select(*map(quoted, include)) if include else frame.drop(*exclude)


class FieldMapperOptions(PluginOptions):
    """Which columns stay, and how they are called."""

    mapper: dict[str, str] = option(
        doc="Old names to new ones; columns without one go.", words=("field_mapper",)
    )


class FieldMapper(OneTableTransform):
    """Keeps, orders and renames columns."""

    name = "FieldMapper"
    options_type = FieldMapperOptions
    options: FieldMapperOptions

    def changed(self, frame: DataFrame) -> DataFrame:
        """See ``OneTableTransform.changed``."""
        mapper = self.options.mapper
        check_columns(frame, list(mapper), "transform FieldMapper")
        return frame.selectExpr(*(f"{quoted(old)} AS {quoted(new)}" for old, new in mapper.items()))


class CopyOptions(PluginOptions):
    """Which columns are there twice."""

    fields: dict[str, str] = option({}, doc="New names to the columns that they copy.")
    src_field: str = option("", doc="One column …")
    dest_field: str = option("", doc="… and its second name.")

    @model_validator(mode="after")
    def _some(self) -> CopyOptions:
        if bool(self.src_field) != bool(self.dest_field) or not (self.fields or self.src_field):
            raise PydanticCustomError("copy", "needs 'fields { new = old }'")
        return self


class Copy(OneTableTransform):
    """Adds copies of columns."""

    name = "Copy"
    options_type = CopyOptions
    options: CopyOptions

    def changed(self, frame: DataFrame) -> DataFrame:
        """See ``OneTableTransform.changed``."""
        pairs = dict(self.options.fields)
        if self.options.src_field:
            pairs[self.options.dest_field] = self.options.src_field
        check_columns(frame, list(pairs.values()), "transform Copy")
        return frame.selectExpr("*", *(f"{quoted(old)} AS {quoted(new)}" for new, old in pairs.items()))


class SplitOptions(PluginOptions):
    """How a text is cut."""

    separator: str = option(doc="Between the pieces; a text, no pattern.", min_length=1)
    field: str = option(doc="The column that is cut.", words=("split_field",))
    pieces: Names = option(doc="Columns for the pieces.", words=("output_fields",), min_length=1)


class Split(OneTableTransform):
    """Adds the pieces of a text as columns; the last one has all that is left."""

    name = "Split"
    options_type = SplitOptions
    options: SplitOptions

    def changed(self, frame: DataFrame) -> DataFrame:
        """See ``OneTableTransform.changed``."""
        chosen = self.options
        check_columns(frame, [chosen.field], "transform Split")
        pattern, most = sql_text(_literally(chosen.separator)), len(chosen.pieces)
        cut = f"split(CAST({quoted(chosen.field)} AS STRING), {pattern}, {most})"
        return frame.selectExpr(
            "*", *(f"get({cut}, {number}) AS {quoted(name)}" for number, name in enumerate(chosen.pieces))
        )


class ReplaceOptions(PluginOptions):
    """What takes the place of what."""

    field: str = option(doc="The column.", words=("replace_field",))
    pattern: str = option(doc="What is replaced.", min_length=1)
    replacement: str = option(doc="What takes its place.")
    is_regex: bool = option(default=False, doc="Whether 'pattern' is a regular expression, of Java's.")
    replace_first: bool = option(default=False, doc="Only the first one in each value.")


class Replace(OneTableTransform):
    """Replaces a part of each value of a column."""

    name = "Replace"
    options_type = ReplaceOptions
    options: ReplaceOptions

    def changed(self, frame: DataFrame) -> DataFrame:
        """See ``OneTableTransform.changed``."""
        chosen = self.options
        check_columns(frame, [chosen.field], "transform Replace")
        pattern = chosen.pattern if chosen.is_regex else _literally(chosen.pattern)
        new = (
            chosen.replacement
            if chosen.is_regex
            else chosen.replacement.replace("\\", "\\\\").replace("$", "\\$")
        )
        if chosen.replace_first:
            pattern, new = f"(?s)^(.*?)(?:{pattern})", "$1" + _shifted(new)
        column = quoted(chosen.field)
        value = f"regexp_replace(CAST({column} AS STRING), {sql_text(pattern)}, {sql_text(new)})"
        return frame.selectExpr(
            *(f"{value} AS {column}" if name == chosen.field else quoted(name) for name in frame.columns)
        )


def _literally(text: str) -> str:
    """A pattern of Java's that means ``text``."""
    return "\\Q" + text.replace("\\E", "\\E\\\\E\\Q") + "\\E"


def _shifted(replacement: str) -> str:
    """Groups count one more, since one stands before them."""
    return re.sub(r"(?<!\\)\$(\d)", lambda found: f"${int(found[1]) + 1}", replacement)
