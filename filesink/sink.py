"""``FileSink`` and its one builder: the only place where the pieces are put together.

How it is used:

    sink = (
        FileSink.for_bulk_format("/data/flights", ParquetWriterFactory())
        .with_bucket_assigner(BucketAssigner.date_time_bucket_assigner("yyyy-MM-dd", column="ts"))
        .with_uid("flights")
        .build()
    )
    sink.write(df)                                                            # a batch
    sink.start(stream, checkpoint_location="/data/cp", available_now=True)    # a stream
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Literal, NoReturn

from filesink.arguments import instance_of, not_built
from filesink.building.builder import SinkBuilder
from filesink.building.built_sink import BuiltSink
from filesink.errors import ConfigError
from filesink.file_sink.table_destination import assigner_of, find_table, format_of
from filesink.metastore.api import Metastore
from filesink.metastore.metastore_policy import MetastorePolicy
from filesink.metastore.partition_commit import PartitionCommit
from filesink.parts.file_format import BulkFormat, RowFormat
from filesink.parts.rolling import RollingPolicy
from filesink.spark.catalog.columns import in_table_order
from filesink.storage.base_path import check_base_path
from formats.api import BaseEncoder, BulkWriterFactory, RowEncoder
from formats.per_row import PerRowEncoder


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FileSinkBuilder(SinkBuilder):
    """Collects what a ``FileSink`` is made of. Immutable: every ``with_…`` returns a new builder."""

    def write(self, *_: object, **__: object) -> NoReturn:
        """Call ``build()`` first: only the built sink has this."""
        raise not_built("write", of="sink")

    def start(self, *_: object, **__: object) -> NoReturn:
        """Call ``build()`` first: only the built sink has this."""
        raise not_built("start", of="sink")

    def foreach_batch(self, *_: object, **__: object) -> NoReturn:
        """Call ``build()`` first: only the built sink has this."""
        raise not_built("foreach_batch", of="sink")

    def finish(self, *_: object, **__: object) -> NoReturn:
        """Call ``build()`` first: only the built sink has this."""
        raise not_built("finish", of="sink")

    def recover(self, *_: object, **__: object) -> NoReturn:
        """Call ``build()`` first: only the built sink has this."""
        raise not_built("recover", of="sink")

    def plan_sweep(self, *_: object, **__: object) -> NoReturn:
        """Call ``build()`` first: only the built sink has this."""
        raise not_built("plan_sweep", of="sink")

    def sweep(self, *_: object, **__: object) -> NoReturn:
        """Call ``build()`` first: only the built sink has this."""
        raise not_built("sweep", of="sink")

    def build(self) -> FileSink:
        """The sink. Nothing is written or created before its first use."""
        if self.partition_commit is not None:
            self.partition_commit.check_buckets(self.assigner)
        if self.retention is not None:
            self.retention.for_buckets(self.assigner)
        return FileSink(self)

    def __repr__(self) -> str:
        return f"<FileSinkBuilder {self.label}>"


class FileSink(BuiltSink):
    """Writes DataFrames into part files, each row exactly once, whatever crashes.

    Made by ``FileSink.for_row_format(…)`` or ``FileSink.for_bulk_format(…)`` and ``build()``. Lives on
    the driver. One sink takes one DataFrame, and one call per micro-batch.
    """

    def __init__(self, builder: FileSinkBuilder) -> None:
        given: object = builder
        if not isinstance(given, FileSinkBuilder):
            raise ConfigError(
                "a sink is made by FileSink.for_row_format(path, encoder), .for_bulk_format(path, factory) "
                f"or .for_hive_table(table, metastore=…), and then .build(); got {type(given).__name__}",
                code="BAD_VALUE",
            )
        super().__init__(builder)

    def _repr_html_(self) -> str:
        return f"<p><b>FileSink</b> {escape(self._builder.label)}</p>"

    @staticmethod
    def for_row_format(
        base_path: str | os.PathLike[str], encoder: BaseEncoder | RowEncoder
    ) -> FileSinkBuilder:
        """A sink that appends records to part files, which may stay open across epochs.

        Args:
            base_path: a directory or a URI of any store, as in ``s3://bucket/trips``; made if missing.
            encoder: ``Encoder.simple_string_encoder()``, ``.json_lines()``, ``.csv()``, ``.avro()``, or
                your own.

        Raises:
            ConfigError: no store of ours takes the path.
        """
        _refuse_other_kind(encoder, BulkWriterFactory, "for_row_format", "for_bulk_format")
        if isinstance(encoder, RowEncoder):
            encoder = PerRowEncoder(encoder)
        return FileSinkBuilder(
            base_path=check_base_path(base_path),
            format=RowFormat(instance_of(encoder, BaseEncoder, name="encoder")),
            policy=RollingPolicy.default_rolling_policy(),
        )

    @staticmethod
    def for_bulk_format(
        base_path: str | os.PathLike[str], writer_factory: BulkWriterFactory
    ) -> FileSinkBuilder:
        """A sink of files with a footer, such as Parquet, which are closed at every epoch.

        Args:
            base_path: a directory or a URI of any store, as in ``s3://bucket/trips``; made if missing.
            writer_factory: ``ParquetWriterFactory()``, any other of ``formats``, or your own.

        Raises:
            ConfigError: no store of ours takes the path.
        """
        _refuse_other_kind(writer_factory, (BaseEncoder, RowEncoder), "for_bulk_format", "for_row_format")
        return FileSinkBuilder(
            base_path=check_base_path(base_path),
            format=BulkFormat(instance_of(writer_factory, BulkWriterFactory, name="writer_factory")),
            policy=RollingPolicy.on_checkpoint_rolling_policy(),
        )

    @staticmethod
    def for_hive_table(
        table: str, *, metastore: Metastore, on_new_columns: Literal["refuse", "add"] = "refuse"
    ) -> FileSinkBuilder:
        """A sink that writes into a table and announces its partitions with each epoch.

        Location, format and partition keys are the table's; columns are matched by name. Columns that
        the DataFrame lacks are null.

        Args:
            table: ``"database.table"``.
            metastore: ``HiveMetastore("thrift://…")``, ``SparkCatalog()`` or ``GlueCatalog()``.
            on_new_columns: what becomes of columns that the table lacks: ``"refuse"`` raises
                ``SchemaError``, ``"add"`` adds them to the table.

        Raises:
            MetastoreError: the metastore does not answer, or has no such table.
            ConfigError: ``TABLE_FORMAT``; there is no writer for the table's serde.
        """
        policy = MetastorePolicy(table, metastore, on_new_columns=on_new_columns)
        found = find_table(table, metastore)
        form = format_of(found)
        return FileSinkBuilder(
            base_path=check_base_path(found.location),
            format=form,
            policy=(
                RollingPolicy.default_rolling_policy()
                if isinstance(form, RowFormat)
                else RollingPolicy.on_checkpoint_rolling_policy()
            ),
            assigner=assigner_of(found),
            partition_commit=PartitionCommit(policies=[policy]),
            # As the table is then: an earlier write, or somebody else, may have added columns.
            in_order=lambda: partial(
                in_table_order, table=find_table(table, metastore), on_new_columns=on_new_columns
            ),
        )


def _refuse_other_kind(value: object, other: type | tuple[type, ...], where: str, right: str) -> None:
    """Raise if ``value`` is a format, and one for the other builder."""
    if isinstance(value, other):
        name = type(value).__name__
        raise ConfigError(
            f"{name} is not a format for {where}: use FileSink.{right}(path, {name}(…))", code="BAD_VALUE"
        )
