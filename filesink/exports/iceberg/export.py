"""``IcebergExport``.

Rules:
1. The summary of the current snapshot has the version, and whose path it is. It is read from the table that
   commits, and the catalog takes the commit only if that snapshot is still the current one.
2. So the client must not repeat a commit by itself on top of another one: the files would be there twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from filesink.arguments import instance_of
from filesink.errors import ConfigError, DependencyError, ExportError, FilesinkError
from filesink.exports.api import Exporter
from filesink.exports.iceberg.files import data_files, location
from filesink.exports.listed import (
    Step,
    columns_of,
    no_such_columns,
    not_exportable,
    partitions_of,
    step,
    turns,
)
from filesink.sink_directory.beside import remove_empty, store_beside
from filesink.sink_directory.directory import SinkDirectory

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table, Transaction

DIRECTORY: Final = "_iceberg"
_PATH: Final = "filesink.path-id"
_VERSION: Final = "filesink.version"
_SCHEMAS: Final = "filesink.schemas"
_SNAPSHOTS: Final = 50  # that stay at least; twice as many at most
_PROPERTIES: Final = {
    "gc.enabled": "false",  # files are the sink's: no PURGE and no cleaning of Iceberg's removes them
    "commit.retry.num-retries": "0",
    "commit.manifest-merge.enabled": "true",
    "commit.manifest.min-count-to-merge": "20",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
}


class IcebergExport(Exporter):
    """Keeps a table of Iceberg over the files of the path; its metadata is in ``_iceberg`` of the path.

    One snapshot of the table for each export; the newest 50 to 100 stay. Nobody else may write to the table.

    Args:
        catalog: a catalog of ``pyiceberg``, or the properties of one, as ``{"name": "lake", "type": "rest",
            "uri": …}``. Catalogs in SQL tell tables apart by that name.
        table: ``"namespace.table"``; made if missing, its namespace too.

    Raises:
        ConfigError: ``BAD_VALUE``.
        DependencyError: ``pyiceberg`` is not installed.
    """

    name = "iceberg"

    def __init__(self, catalog: Catalog | Mapping[str, str], table: str) -> None:
        instance_of(table, str, name="table")
        parts = table.split(".")
        if len(parts) < 2 or not all(part.isprintable() and part for part in parts):
            raise ConfigError("table must be 'namespace.table'", code="BAD_VALUE")
        self._table = table
        self._catalog = _catalog(catalog)

    def version(self, directory: SinkDirectory) -> int | None:
        """See ``Exporter.version``."""
        table = self._load()
        return None if table is None else self._at(directory, table)

    def bring_to(self, directory: SinkDirectory, version: int) -> None:
        """See ``Exporter.bring_to``."""
        from pyiceberg.exceptions import CommitFailedException

        for _ in turns(directory, self.name):
            table = self._load() or self._create(directory, version)
            if self._at(directory, table) >= version:
                return
            try:
                self._commit(directory, table, version)
            except CommitFailedException:
                continue  # another driver has come first; the table says with what
            return

    def named(self, directory: SinkDirectory) -> set[str]:
        """See ``Exporter.named``."""
        table = self._load()
        return set() if table is None else self._known(directory, table)

    def drop(self, directory: SinkDirectory) -> None:
        """Drop the table and its metadata; files stay.

        Raises:
            ExportError: ``FOREIGN_TARGET``, ``CHANGED_TARGET``; nothing was removed.
        """
        table = self._load()
        if table is not None:
            self._at(directory, table)
            self._catalog.drop_table(self._table)
        store = store_beside(directory)
        for entry in list(store.scan(DIRECTORY)):
            store.delete(f"{DIRECTORY}/{entry.name}")
        remove_empty(directory, DIRECTORY)

    def _load(self) -> Table | None:
        from pyiceberg.exceptions import NoSuchTableError

        try:
            return self._catalog.load_table(self._table)
        except NoSuchTableError:
            return None

    def _at(self, directory: SinkDirectory, table: Table) -> int:
        """The version that the table is at; 0 before its first snapshot."""
        is_here = table.location().rstrip("/") == location(directory)  # a copy of the path has its id, too
        if table.properties.get(_PATH) != directory.inventory_id or not is_here:
            raise ExportError(
                f"table '{self._table}' is not one of '{directory.path}', or of what was there before. "
                "Nothing was changed. Name another table, or drop that one if nobody needs it",
                code="FOREIGN_TARGET",
            )
        snapshot = table.current_snapshot()
        if snapshot is None:
            return 0
        summary = snapshot.summary
        if summary is None or summary.additional_properties.get(_PATH) != directory.inventory_id:
            raise ExportError(
                f"somebody else has written to table '{self._table}', in snapshot {snapshot.snapshot_id}. "
                "Nothing was overwritten. Drop the table without PURGE and export again: it is made anew of "
                "what the path holds",
                code="CHANGED_TARGET",
            )
        return int(summary.additional_properties[_VERSION])

    def _create(self, directory: SinkDirectory, version: int) -> Table:
        from pyiceberg.exceptions import TableAlreadyExistsError

        partitions_of(directory, directory.snapshot(version).files, self.name)  # is it Parquet?
        base = location(directory)
        try:
            self._catalog.create_namespace_if_not_exists(self._table.rpartition(".")[0])
            return self._catalog.create_table(
                self._table,
                schema=pa.schema([]),
                location=base,
                properties={
                    **_PROPERTIES,
                    "write.metadata.path": f"{base}/{DIRECTORY}",
                    _PATH: directory.inventory_id,
                },
            )
        except TableAlreadyExistsError:
            return self._catalog.load_table(self._table)

    def _commit(self, directory: SinkDirectory, table: Table, version: int) -> None:
        before = self._at(directory, table) or None
        found = step(directory, before, version, lambda: self._known(directory, table))
        partitions = partitions_of(directory, found.added, self.name)
        schemas = _schemas(table) | {
            one for one in found.added.to_arrow()["schema"].unique().to_pylist() if one
        }
        with table.transaction() as transaction:
            if found.adopts or schemas != _schemas(table):
                self._columns(directory, transaction, version)
            if partitions is not None:
                self._partition(directory, transaction, partitions)
            known = {
                _VERSION: str(version),
                _PATH: directory.inventory_id,
                _SCHEMAS: " ".join(sorted(schemas)),
            }
            self._snapshot(directory, transaction, found, known)
            _expire(transaction)

    def _columns(self, directory: SinkDirectory, transaction: Transaction, version: int) -> None:
        """Add columns, and widen types. Files carry no ids: readers find columns by their names."""
        columns = columns_of(directory, version)
        try:
            with transaction.update_schema() as update:
                update.union_by_name(columns)
        except FilesinkError:
            raise
        except Exception as error:  # of pyiceberg, which has no one class for a type that Iceberg lacks
            raise no_such_columns(directory, self.name, error) from error
        mapping = transaction.table_metadata.schema().name_mapping.model_dump_json()
        transaction.set_properties({"schema.name-mapping.default": mapping})

    def _partition(
        self, directory: SinkDirectory, transaction: Transaction, partitions: tuple[str, ...]
    ) -> None:
        from pyiceberg.transforms import IdentityTransform

        metadata = transaction.table_metadata
        here = tuple(metadata.schema().find_column_name(one.source_id) for one in metadata.spec().fields)
        if here == partitions:
            return
        if here or metadata.current_snapshot() is not None:
            has_files = any(_entries(transaction._table)) if metadata.current_snapshot() else False  # noqa: SLF001 - the one that it changes
            if here or has_files:
                what = f"its partition columns are {list(here)}, and those of new files {list(partitions)}"
                raise not_exportable(directory, self.name, what)
        with transaction.update_spec() as update:
            for name in partitions:
                update.add_field(name, IdentityTransform(), name)

    def _snapshot(
        self, directory: SinkDirectory, transaction: Transaction, found: Step, known: Mapping[str, str]
    ) -> None:
        metadata = transaction.table_metadata
        added = list(data_files(directory, found.added, metadata, self.name))
        update = transaction.update_snapshot(snapshot_properties=dict(known))
        if found.removed:
            base = location(directory)
            paths = {f"{base}/{path}" for path in found.removed}
            with update.overwrite() as overwrite:
                for file in _entries(transaction._table):  # noqa: SLF001 - the one that it changes
                    if file.file_path in paths:
                        overwrite.delete_data_file(file)
                for file in added:
                    overwrite.append_data_file(file)
        else:
            with update.merge_append() as append:
                for file in added:
                    append.append_data_file(file)

    @staticmethod
    def _known(directory: SinkDirectory, table: Table) -> set[str]:
        base = location(directory)
        return {file.file_path.removeprefix(f"{base}/") for file in _entries(table)}


def _entries(table: Table) -> Any:
    """The files of the current snapshot."""
    snapshot = table.current_snapshot()
    for manifest in [] if snapshot is None else snapshot.manifests(table.io):
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            yield entry.data_file


def _schemas(table: Table) -> frozenset[str]:
    snapshot = table.current_snapshot()
    summary = None if snapshot is None else snapshot.summary
    return frozenset() if summary is None else frozenset(summary.additional_properties[_SCHEMAS].split())


def _expire(transaction: Transaction) -> None:
    """Forget the oldest snapshots now and then, so that metadata stays as short as it is."""
    from pyiceberg.table.update.snapshot import ExpireSnapshots

    snapshots = sorted(transaction.table_metadata.snapshots, key=lambda one: one.sequence_number or 0)
    if len(snapshots) > 2 * _SNAPSHOTS:
        old = [one.snapshot_id for one in snapshots[:-_SNAPSHOTS]]
        ExpireSnapshots(transaction).by_ids(old).commit()


def _catalog(given: Any) -> Catalog:
    try:
        from pyiceberg.catalog import Catalog, load_catalog
    except ImportError as error:
        raise DependencyError(
            "IcebergExport needs a package: pip install 'filesink[iceberg]'", code="DEPENDENCY"
        ) from error
    if isinstance(given, Catalog):
        return given
    if not isinstance(given, Mapping) or not all(
        isinstance(one, str) for pair in given.items() for one in pair
    ):
        raise ConfigError(
            "catalog must be a catalog of pyiceberg, or its properties: texts by name", code="BAD_VALUE"
        )
    try:
        return load_catalog(given.get("name", "filesink"), **{k: v for k, v in given.items() if k != "name"})
    except Exception as error:  # of pyiceberg or the client of the catalog; its text may repeat a secret
        raise ConfigError(
            f"no catalog can be made of these properties ({type(error).__name__}); see pyiceberg's "
            "documentation of its catalogs",
            code="BAD_VALUE",
        ) from error
