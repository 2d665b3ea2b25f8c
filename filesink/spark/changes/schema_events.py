"""Messages that tell of a table and not of its rows: what becomes of them is the user's to say.

A truncate is none: it takes rows away. It stays malformed, since no row says so.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - as all PySpark code does

from filesink.errors import SchemaError
from filesink.system import SystemIds

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: How the names of the counts begin, among a query's observed metrics.
METRIC: Final = "filesink_schema_changes"


class OnSchemaChange(Enum):
    """What becomes of a message that tells of a table."""

    RAISE = "raise"
    IGNORE = "ignore"
    RESCUE = "rescue"


def counted(df: DataFrame, is_event: Column) -> DataFrame:
    """``df``, whose events are counted by Spark while they pass."""
    # Two topics may be read in one query, and Spark takes one name for one count.
    return df.observe(f"{METRIC}_{SystemIds().uuid()[:8]}", F.count_if(is_event).alias("messages"))


def refused(name: str) -> SchemaError:
    """The error of such a message; ``name`` of the envelope."""
    return SchemaError(
        f"a message from {name} changes a table (DDL), and no row. Nothing of this batch became visible. See "
        "what it changes, with on_schema_change='rescue', bring schema= and the target up to date, and start "
        "again with on_schema_change='ignore'. For a renamed column schema= has both names as long as rows "
        "with the old one may come",
        code="SCHEMA_EVENT",
    )
