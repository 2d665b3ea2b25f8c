"""Bucket assigners as users make them, with PyFlink's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from filesink.buckets.contract import BaseBucketAssigner
from filesink.buckets.date_time_assigner import DateTimeBucketAssigner
from filesink.buckets.partition_assigner import PartitionBucketAssigner
from filesink.buckets.path_assigners import BasePathBucketAssigner, ExpressionBucketAssigner
from filesink.buckets.table_assigner import TableBucketAssigner
from filesink.buckets.table_paths import TablePath


class BucketAssigner(BaseBucketAssigner):
    """Makes the built-in bucket assigners. Subclass it and override ``assign`` for rules of your own."""

    @staticmethod
    def date_time_bucket_assigner(
        format_str: str = "yyyy-MM-dd--HH",
        timezone_id: str | None = None,
        column: str | None = None,
        null_bucket: str | None = None,
    ) -> BaseBucketAssigner:
        """Buckets by time, the time of writing or that of a column.

        Args:
            format_str: a pattern of Java's ``DateTimeFormatter`` (see ``filesink.buckets.date_patterns``);
                ``/`` makes nested directories.
            timezone_id: whose wall clock is meant; ``None`` is the Spark session's zone. (Flink takes
                the machine's zone, which may differ between hosts.)
            column: a timestamp or date column; ``None`` is the driver's clock. A timestamp without
                zone is formatted as it is.
            null_bucket: the bucket of records whose column is null. ``None`` is the path of the pattern with
                ``null`` in place of each level that shows time, or ``day=__HIVE_DEFAULT_PARTITION__`` where
                a level begins as in ``'day='yyyy-MM-dd``.

        Raises:
            ConfigError: ``BAD_VALUE`` for the pattern, ``TIME_ZONE`` for the zone.
        """
        return DateTimeBucketAssigner(
            format_str=format_str, timezone_id=timezone_id, column=column, null_bucket=null_bucket
        )

    @staticmethod
    def base_path_bucket_assigner() -> BaseBucketAssigner:
        """Everything goes directly below the base path."""
        return BasePathBucketAssigner()

    @staticmethod
    def partition_bucket_assigner(*columns: str) -> PartitionBucketAssigner:
        """Hive partitions, ``k=v/k2=v2``, named and escaped exactly as Spark does.

        The columns are left out of the files; ``.with_columns_in_file()`` keeps them. Null and ``""``
        go to ``__HIVE_DEFAULT_PARTITION__``.

        Raises:
            ConfigError: ``BAD_VALUE``; there is no column, or one is named twice.
        """
        return PartitionBucketAssigner(columns=columns)

    @staticmethod
    def table_bucket_assigner(
        column: str,
        *,
        path: str = "${table_name}",
        within: BaseBucketAssigner | None = None,
        columns: Mapping[str, Sequence[str]] | None = None,
    ) -> TableBucketAssigner:
        """Many tables: a directory below the base path for each, and in it the buckets of another assigner.

        A table is there with the first epoch that has a record of it. Placeholders may be in ``path``, in
        ``part_prefix`` of the names of files, and in the table of ``MetastoreTablesPolicy``.

        Args:
            column: a text column that names the table of each record; it is left out of the files.
            path: ``${table_name}`` is the name; with ``${schema_name}``, which is what stands before the
                first dot of it, ``${table_name}`` is the rest. At most one of them a level, so that no
                two tables share a directory.
            within: buckets of each table; ``None`` puts its files directly into its directory.
            columns: those of a table, by its name; a table that is not in it has all.

        Raises:
            ConfigError: ``BAD_VALUE``.
        """
        return TableBucketAssigner(
            column=column,
            path=TablePath(path),
            within=BasePathBucketAssigner() if within is None else within,
            columns={} if columns is None else columns,
        )

    @staticmethod
    def expression_bucket_assigner(expression: str) -> BaseBucketAssigner:
        """The value of a Spark SQL expression is the bucket id, as in ``"date_format(ts, 'yyyy/MM')"``.

        The value is used as a path. A record whose value is null, or cannot be a path, becomes a dead
        letter or fails the epoch.

        Raises:
            ConfigError: ``BAD_VALUE``; the expression is empty.
        """
        return ExpressionBucketAssigner(expression=expression)


# They derive from the contract only. This makes isinstance() take them for bucket assigners, too.
for _kind in (
    BasePathBucketAssigner,
    DateTimeBucketAssigner,
    ExpressionBucketAssigner,
    PartitionBucketAssigner,
    TableBucketAssigner,
):
    BucketAssigner.register(_kind)
