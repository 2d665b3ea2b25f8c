"""What crosses from Spark to a writer where the sink wants other columns than the input has.

Spark converts every column of every row for Python, which costs more than all that is done with it
there. A row format whose records Spark can render itself lets one column cross: the bytes of each
record. Batches then carry in their metadata the schema they stand for; header and signature of a
part need it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from filesink.api import Projection
from filesink.buckets.contract import file_columns, find_column
from filesink.errors import SchemaError
from formats import sql

if TYPE_CHECKING:
    from filesink.buckets.contract import BaseBucketAssigner
    from formats.api import BaseEncoder

#: The column that holds the text of each record.
RECORD_COLUMN: Final = "__filesink_record"
_FILE_SCHEMA: Final = b"filesink.schema"
_OURS: Final = "__filesink_"


def check_names(assigner: BaseBucketAssigner, schema: pa.Schema) -> None:
    """Raise ``SchemaError`` if a column of the input has a name that stands for one of ours.

    Args:
        assigner: whose derived columns are in ``schema`` too.
        schema: of what comes to the writers.
    """
    derived = assigner.derived_columns()
    taken = next((n for n in schema.names if n.lower().startswith(_OURS) and n not in derived), None)
    if taken is not None:
        raise SchemaError(
            f"column {taken!r}: names that begin with {_OURS!r} are filesink's own; rename it",
            code="RESERVED_COLUMN",
        )


def record_projection(
    encoder: BaseEncoder, assigner: BaseBucketAssigner, schema: pa.Schema, *, also: Iterable[str] = ()
) -> Projection | None:
    """Rendered records, what names their buckets, and the columns of ``also``.

    Returns:
        ``None`` if records have to cross column by column: the encoder cannot be expressed in SQL, or
        the assigner may look at any column.
    """
    needed = assigner.input_columns()
    if needed is None:
        return None
    in_file = pa.schema([schema.field(index) for index in file_columns(assigner, schema)])
    expression = encoder.sql_expression(in_file)
    if expression is None:
        return None
    wanted = (*needed, *assigner.derived_columns(), *also)
    names = [schema.names[find_column(schema, name)] for name in wanted]
    columns = {name: sql.identifier(name) for name in names}
    return Projection(
        columns={**columns, RECORD_COLUMN: expression},
        metadata={_FILE_SCHEMA: in_file.serialize().to_pybytes()},
    )


def rendered_schema(schema: pa.Schema) -> pa.Schema | None:
    """The schema that rendered records of ``schema`` stand for; ``None`` if they are not rendered."""
    if RECORD_COLUMN not in schema.names:
        return None
    return pa.ipc.read_schema(pa.py_buffer((schema.metadata or {})[_FILE_SCHEMA]))
