"""What a path holds at one version."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from filesink.arguments import one_of
from filesink.errors import FilesinkError, StateError, StorageError
from filesink.sink_directory.columns import (
    OnOtherSchema,
    are_all_noted,
    noted,
    together,
    with_layouts,
    with_partitions,
)
from filesink.sink_directory.dataset import dataset_of, read_schema
from filesink.sink_directory.live_files import COLUMNS, LiveFiles
from filesink.sink_directory.site import Site
from filesink.sink_directory.store_files import StoreFiles
from formats.arrow import pc

if TYPE_CHECKING:
    import pandas as pd
    from pyarrow.dataset import Dataset


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Snapshot:
    """The files that are live at one version, each row of them once. Made by ``SinkDirectory.snapshot``.

    It stays as it is, whatever is written meanwhile. But files that are replaced later may be removed.
    Reading one then raises ``StorageError`` (``SNAPSHOT_GONE``), which names the version to read instead.

    Attributes:
        version: see ``Epoch``.
    """

    version: int
    _rows: pa.Table = field(repr=False)
    _site: Site = field(repr=False)

    @property
    def files(self) -> LiveFiles:
        """Its files, in the order of their paths."""
        return LiveFiles(self._rows)

    @cached_property
    def rows(self) -> int | None:
        """Number of its records; ``None`` if that of any file is not known."""
        counts = self._rows["rows"]
        return None if counts.null_count else int(pc.sum(counts).as_py() or 0)

    @cached_property
    def bytes(self) -> int:
        """Size of its files together."""
        return int(pc.sum(self._rows["size"]).as_py() or 0)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of its newest files, and those that their directories show.

        Files that are older may have fewer, or narrower types.

        Raises:
            StateError: ``NO_SCHEMA``, nobody has noted any, and the files do not tell.
        """
        found = noted(self._rows)
        newest = found[0].schema if found else self._of_newest_epoch()
        return self._whole(self._site.schema(newest) if newest else self._of_newest_file())

    def to_arrow(self) -> pa.Table:
        """The list of its files: a row for each, with the attributes of ``LiveFile`` as columns."""
        return self._rows

    def to_pandas(self) -> pd.DataFrame:
        """As ``to_arrow``."""
        return self._rows.to_pandas()

    def columns(self, *, on_other_schema: OnOtherSchema = "refuse") -> pa.Schema:
        """The columns that its records have together, whichever sink has written them.

        Args:
            on_other_schema: see ``dataset``.

        Raises:
            SchemaError: ``TWO_SCHEMAS``.
            StateError: ``NO_SCHEMA``, as of ``schema``.
        """
        one_of(on_other_schema, ("refuse", "union"), name="on_other_schema")
        found = noted(self._rows)
        if not found:
            return self.schema
        return self._whole(together(found, self._site.schema, on_other_schema))

    def dataset(self, *, on_other_schema: OnOtherSchema = "refuse") -> Dataset:
        """Its records, for Arrow and whatever reads Arrow's datasets. Nothing is read before it is asked for.

        Args:
            on_other_schema: ``"refuse"`` if the sinks of the path have noted other columns, or ``"union"``:
                then the records have all, and null where a file lacks one.

        Raises:
            SchemaError: ``TWO_SCHEMAS``, it names both sinks; ``TWO_FORMATS``.
            ConfigError: ``NO_READER``, Arrow has no datasets of this format.
        """
        schema = self.columns(on_other_schema=on_other_schema)
        paths, buckets = (list(map(str, self._rows[name].to_pylist())) for name in ("path", "bucket"))
        return dataset_of(paths, buckets, schema, self._store_files())

    def _whole(self, schema: pa.Schema) -> pa.Schema:
        """``schema`` with the columns that no record notes for these files."""
        if not are_all_noted(self._rows):
            schema = with_layouts(schema, self._site.layouts())
        buckets = pc.unique(self._rows["bucket"].cast(pa.string())).to_pylist()
        return with_partitions(schema, buckets)

    def _of_newest_epoch(self) -> str:
        """Id of the columns that an epoch has noted last; ``""`` if none has. Adopted files tell none."""
        rows = self._site.snapshots().epochs(None)
        names = rows.filter(pc.less_equal(rows["version"], self.version))["schema"].to_pylist()
        return next((str(name) for name in reversed(names) if name), "")

    def _of_newest_file(self) -> pa.Schema:
        if not self._rows.num_rows:
            raise StateError(
                f"version {self.version} of '{self._site.base_path}' has no files, and no columns were noted",
                code="NO_SCHEMA",
            )
        newest = pc.index(self._rows["added"], pc.max(self._rows["added"])).as_py()
        return read_schema(str(self._rows["path"][newest].as_py()), self._store_files())

    def _store_files(self) -> StoreFiles:
        base = self._site.base_path
        return StoreFiles(self._site.store, None if "://" in base else base, self._gone)

    def _gone(self, path: str) -> StorageError:
        newest: int | None = None
        with suppress(FilesinkError):  # the message does without it
            newest = self._site.snapshots().newest()
        what = (
            f"it was replaced since. Read {'the newest version' if newest is None else f'version {newest}'}"
        )
        if newest == self.version:
            what = "no sink has removed it. Bring it back, or have filesink.adopt() look up what is there"
        return StorageError(
            f"'{path}' of version {self.version} of '{self._site.base_path}' is not there any more: {what}",
            code="SNAPSHOT_GONE",
        )

    def __repr__(self) -> str:
        rows = "unknown" if self.rows is None else f"{self.rows:,}"
        return f"<Snapshot {self.version}: {self._rows.num_rows:,} files, {rows} rows, {self.bytes:,} bytes>"


def snapshot_of(site: Site, version: int, rows: pa.Table) -> Snapshot:
    """The snapshot of rows of ``filesink.inventory.rows.files``."""
    return Snapshot(version=version, _rows=rows.select(list(COLUMNS)), _site=site)
