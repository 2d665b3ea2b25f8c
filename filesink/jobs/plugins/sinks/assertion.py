"""``Assert``: SeaTunnel's rules over the rows of a batch, all of them in one pass."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, model_validator
from pydantic_core import PydanticCustomError

from filesink.errors import JobError
from filesink.jobs.model.column_types import ddl, quoted, sql_text
from filesink.jobs.model.options import Names, Options, option
from filesink.jobs.model.schema import ColumnType
from filesink.jobs.plugins.api import Frames, PluginOptions, Run, Sink
from filesink.jobs.plugins.transforms.columns import check_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_UPPER = BeforeValidator(lambda given: given.upper() if isinstance(given, str) else given)


class RowRule(Options):
    """How many rows there are."""

    type: Annotated[Literal["MIN_ROW", "MAX_ROW"], _UPPER] = option(doc="Which limit.", words=("rule_type",))
    value: int = option(doc="Of rows.", unit="rows", words=("rule_value",), ge=0)


class ValueRule(Options):
    """What every value of a column is."""

    type: Annotated[Literal["NOT_NULL", "NULL", "MIN", "MAX", "MIN_LENGTH", "MAX_LENGTH"] | None, _UPPER] = (
        option(None, doc="Which rule.", words=("rule_type",))
    )
    value: float | None = option(None, doc="The limit.", words=("rule_value",))
    equals_to: Any = option(None, doc="The value itself.")

    @model_validator(mode="after")
    def _whole(self) -> ValueRule:
        if self.type is None and "equals_to" not in self.model_fields_set:
            raise PydanticCustomError("rule", "needs 'rule_type' or 'equals_to'")
        if self.type not in {None, "NOT_NULL", "NULL"} and self.value is None:
            raise PydanticCustomError("rule", "{type} needs 'rule_value'", {"type": self.type})
        return self


class FieldRule(Options):
    """What a column is."""

    name: str = option(doc="The column.", words=("field_name",))
    type: ColumnType = option(None, doc="Its type.", words=("field_type",))
    values: tuple[ValueRule, ...] = option((), doc="Rules of its values.", words=("field_value",))


class Rules(Options):
    """All rules of a sink, or of one of its tables."""

    refused = {
        "catalog_table_rule": "there is no catalog of tables; field_rules check names and types",
        "tables_configs": "write one sink Assert for each table",
    }

    rows: tuple[RowRule, ...] = option((), doc="Of the number of rows.", words=("row_rules",))
    fields: tuple[FieldRule, ...] = option((), doc="Of columns.", words=("field_rules",))
    tables: Names = option((), doc="The tables that have to come, and no others.", words=("table-names",))


class AssertOptions(PluginOptions):
    """The rules."""

    rules: Rules = option(doc="What has to hold; else the job fails.")


class Assert(Sink):
    """Fails the job if a rule does not hold."""

    name = "Assert"
    options_type = AssertOptions
    options: AssertOptions

    def write(self, frames: Frames, run: Run) -> int | None:
        """See ``Sink.write``."""
        del run
        rules = self.options.rules
        if rules.tables and set(rules.tables) != set(frames):
            raise _failed(f"the tables are {_listed(frames)}, and not {_listed(rules.tables)}")
        return sum(self._check(name, frame) for name, frame in frames.items())

    def check(self, frames: Frames, run: Run) -> None:
        """See ``Sink.check``: columns and their types, not rows."""
        del run
        for frame in frames.values():
            check_columns(frame, [field.name for field in self.options.rules.fields], "sink Assert")
            list(_conditions(frame, self.options.rules))

    def _check(self, table: str, frame: DataFrame) -> int:
        rules = self.options.rules
        check_columns(frame, [field.name for field in rules.fields], "sink Assert")
        conditions = list(_conditions(frame, rules))
        counts = [
            f"count_if(NOT coalesce({condition}, false)) AS c{number}"
            for number, (_, condition) in enumerate(conditions)
        ]
        found = frame.selectExpr("count(*) AS all_rows", *counts).collect()[0]
        for rule in rules.rows:
            if (found[0] < rule.value) if rule.type == "MIN_ROW" else (found[0] > rule.value):
                raise _failed(f"'{table}' has {found[0]:,} rows, and {rule.type} is {rule.value:,}")
        for (rule_text, _), broken in zip(conditions, found[1:], strict=True):
            if broken:
                raise _failed(f"in '{table}' {rule_text} does not hold for {broken:,} of {found[0]:,} rows")
        return int(found[0])


def _conditions(frame: DataFrame, rules: Rules) -> Iterator[tuple[str, str]]:
    kinds = dict(frame.dtypes)
    for field in rules.fields:
        kind = kinds[field.name]
        if field.type is not None and not _is_same(ddl(field.type), kind):
            raise _failed(f"the column '{field.name}' is {kind}, and not {ddl(field.type).lower()}")
        for rule in field.values:
            column = quoted(field.name)
            if rule.type is not None:
                yield f"{rule.type} of '{field.name}'", _rule(column, rule)
            if "equals_to" in rule.model_fields_set:
                yield f"equals_to of '{field.name}'", _equal(column, kind, rule.equals_to)


def _is_same(wanted: str, found: str) -> bool:
    """Whether two types are one; times with and without a zone are, as SeaTunnel has only one."""
    plain = [one.lower().replace(" ", "").replace("`", "").replace("_ntz", "") for one in (wanted, found)]
    return plain[0] == plain[1]


def _rule(column: str, rule: ValueRule) -> str:
    limit = rule.value or 0
    return {
        "NOT_NULL": f"{column} IS NOT NULL",
        "NULL": f"{column} IS NULL",
        "MIN": f"{column} >= {limit!r}",
        "MAX": f"{column} <= {limit!r}",
        "MIN_LENGTH": f"length({column}) >= {limit!r}",
        "MAX_LENGTH": f"length({column}) <= {limit!r}",
    }[str(rule.type)]


def _equal(column: str, kind: str, value: Any) -> str:
    """Equal as values of the column's type; nested ones as JSON, since Spark compares no maps."""
    if value is None:
        return f"{column} IS NULL"
    if isinstance(value, list | dict):
        wanted = f"from_json({sql_text(json.dumps(value))}, {sql_text(kind)})"
        return f"to_json({column}) = to_json({wanted})"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"{column} = CAST({sql_text(text)} AS {kind})"


def _failed(message: str) -> JobError:
    return JobError(f"sink Assert: {message}", code="JOB_ASSERT")


def _listed(names: Any) -> str:
    return ", ".join(f"'{name}'" for name in sorted(names)) or "none"
