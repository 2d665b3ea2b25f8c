"""Which tables can be written at all, whatever the columns are. Pure."""

from __future__ import annotations

import re

from filesink.errors import MetastoreConflictError
from filesink.metastore.api import Column, Table, TableKind
from filesink.metastore.tables.formats import spark_provider

# What Spark puts into a metastore in place of columns that Hive has no types or no files for.
_PLACEHOLDER = (Column(name="col", type="array<string>"),)
_BUCKETS_OF_SPARK = "spark.sql.sources.schema.numBuckets"
_CHAR = re.compile(r"char\s*\(", re.IGNORECASE)


def check_kind(table: Table) -> None:
    """Raise if readers of ``table`` would not find files that are put into its directories.

    Raises:
        MetastoreConflictError: ``NOT_A_TABLE``, a view or a transactional table; ``BUCKETED_TABLE``;
            ``KEY_TYPE``; ``SPARK_TABLE``, columns that only Spark's own catalog tells.
    """
    name = table.name
    if table.kind is TableKind.OTHER:
        raise MetastoreConflictError(
            f"{name} is not a table that has files; name another one", code="NOT_A_TABLE"
        )
    if table.parameters.get("transactional", "").lower() == "true":
        raise MetastoreConflictError(
            f"{name} is transactional: its readers see only files that Hive's own transactions have put "
            "into delta directories. Name a table without the property 'transactional'",
            code="NOT_A_TABLE",
        )
    if table.bucket_columns or _BUCKETS_OF_SPARK in table.parameters:
        raise MetastoreConflictError(
            f"{name} is CLUSTERED BY columns into buckets: its readers take the number of a bucket from the "
            "name of each file, and files here have no such names. Use a table without CLUSTERED BY",
            code="BUCKETED_TABLE",
        )
    _check_keys(table)
    if spark_provider(table) is not None and table.columns == _PLACEHOLDER:
        raise MetastoreConflictError(
            f"{name} was made by Spark and has its columns in Spark's own form, which this metastore does "
            "not show; use SparkCatalog()",
            code="SPARK_TABLE",
        )


def _check_keys(table: Table) -> None:
    for key in table.partition_keys:
        # Some readers and services pad the value with blanks and others do not: two names of a partition.
        if _CHAR.match(key.type):
            raise MetastoreConflictError(
                f"partition key {key.name!r} of {table.name} is {key.type}, and its values have one form in "
                "names of directories and another in the metastore. Use a table that has it as string",
                code="KEY_TYPE",
            )
