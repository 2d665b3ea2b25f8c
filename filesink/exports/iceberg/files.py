"""Files of a path as Iceberg names them: with the partition values of their directories, and no byte read.

A column that only the path shows is not in the files. Iceberg's rules for tables that come from Hive say that
readers take it from the partition of the file, which is what we tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from filesink.buckets.partition_paths import partition_values
from filesink.errors import ExportError
from filesink.exports.listed import not_exportable
from filesink.naming import parent
from filesink.sink_directory.directory import SinkDirectory
from filesink.sink_directory.live_files import LiveFiles

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table.metadata import TableMetadata


def location(directory: SinkDirectory) -> str:
    """The path as Iceberg has it. Names below it are not encoded."""
    path = directory.path if "://" in directory.path else str(Path(directory.path).absolute())
    return path.rstrip("/")


def data_files(
    directory: SinkDirectory, files: LiveFiles, metadata: TableMetadata, name: str
) -> Iterator[DataFile]:
    """What Iceberg is told of ``files``.

    Raises:
        ExportError: ``NOT_EXPORTABLE``, the number of rows of one is not known.
    """
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat

    base, partitions = location(directory), _Partitions(metadata, partial(not_exportable, directory, name))
    columns: dict[str, list[Any]] = files.to_arrow().select(["path", "size", "rows"]).to_pydict()
    for path, size, rows in zip(columns["path"], columns["size"], columns["rows"], strict=True):
        if rows is None:
            raise not_exportable(directory, name, f"nobody knows how many rows '{path}' has")
        yield DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=f"{base}/{path}",
            file_format=FileFormat.PARQUET,
            partition=partitions.of(parent(path)),
            record_count=rows,
            file_size_in_bytes=size,
            column_sizes={},
            value_counts={},
            null_value_counts={},
            nan_value_counts={},
            lower_bounds={},
            upper_bounds={},
            split_offsets=None,
            sort_order_id=None,
            spec_id=metadata.default_spec_id,
            equality_ids=None,
            key_metadata=None,
        )


class _Partitions:
    """Partition values of directories, as the newest spec of a table has them.

    Args:
        metadata: of the table.
        refused: makes the error for a value that cannot be told.
    """

    def __init__(self, metadata: TableMetadata, refused: Callable[[str], ExportError]) -> None:
        from pyiceberg.io.pyarrow import schema_to_pyarrow

        schema = metadata.schema()
        fields = [schema.find_field(field.source_id) for field in metadata.spec().fields]
        self._types: Mapping[str, Any] = {one.name: schema_to_pyarrow(one.field_type) for one in fields}
        self._refused = refused
        self._known: dict[str, Any] = {}

    def of(self, bucket: str) -> Any:
        """A record of Iceberg's."""
        from pyiceberg.typedef import Record

        if bucket not in self._known:
            texts = dict(partition_values(bucket))
            self._known[bucket] = Record(
                *(self._value(name, texts.get(name), kind) for name, kind in self._types.items())
            )
        return self._known[bucket]

    def _value(self, name: str, text: str | None, kind: Any) -> Any:
        """As Iceberg keeps it: days and microseconds since 1970 are numbers."""
        if text is None:
            return None
        try:
            value = pa.scalar(text, pa.string()).cast(kind)
        except pa.ArrowInvalid as error:
            raise self._refused(f"the directories of '{name}' do not show values of type {kind}") from error
        if pa.types.is_date32(kind):
            return value.cast(pa.int32()).as_py()
        return value.cast(pa.int64()).as_py() if pa.types.is_timestamp(kind) else value.as_py()
