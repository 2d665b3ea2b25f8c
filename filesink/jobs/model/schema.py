"""``schema { table = …, fields { … } }`` of a source."""

from __future__ import annotations

from typing import Annotated, Any

import pyarrow as pa
from pydantic import BeforeValidator, model_validator
from pydantic_core import PydanticCustomError

from filesink.jobs.model.column_types import column_type, ddl, quoted
from filesink.jobs.model.options import Options, option


def _type(given: Any) -> pa.DataType:
    try:
        return column_type(given)
    except ValueError as error:
        raise PydanticCustomError("column_type", "{reason}", {"reason": str(error)}) from None


#: A type of a column, see ``column_types``.
ColumnType = Annotated[Any, BeforeValidator(_type)]


class Column(Options):
    """One column of ``schema { columns = [ … ] }``."""

    without_effect = {"comment": "files have no comments", "columnLength": "Spark's texts have no length"}

    name: str = option(doc="Its name.")
    type: ColumnType = option(doc="Its type.")
    nullable: bool = option(default=True, doc="Whether it may be null.")
    default_value: Any = option(None, doc="Read as null where it is missing.", words=("defaultValue",))


class Schema(Options):
    """The columns of a table."""

    without_effect = {
        "primaryKey": "Spark has no keys",
        "constraintKeys": "Spark has no keys",
        "comment": "files have no comments",
        "schema_first": "tables are named by 'table'",
    }

    table: str = option("", doc="The name of the table, as DATABASE.TABLE.")
    fields: dict[str, ColumnType] = option({}, doc="Names and types, in their order.")
    columns: tuple[Column, ...] = option((), doc="The same as a list, in place of 'fields'.")

    @model_validator(mode="after")
    def _one_of_both(self) -> Schema:
        if self.fields and self.columns:
            raise PydanticCustomError("schema", "needs 'fields' or 'columns', and not both")
        return self

    @property
    def has_columns(self) -> bool:
        """Whether more than a name is given; formats that know their columns need no more."""
        return bool(self.fields or self.columns)

    @property
    def arrow(self) -> pa.Schema:
        """The columns, as Arrow has them."""
        pairs = [(one.name, one.type) for one in self.columns] or list(self.fields.items())
        return pa.schema([pa.field(name, kind) for name, kind in pairs])

    @property
    def ddl(self) -> str:
        """The columns, as Spark has them."""
        return ", ".join(f"{quoted(field.name)} {ddl(field.type)}" for field in self.arrow)
