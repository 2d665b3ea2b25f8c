"""A snapshot as a dataset of Arrow, in which what directories show is a column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as pd
import pyarrow.fs as pf

from filesink.buckets.partition_paths import partition_values
from filesink.errors import ConfigError, SchemaError
from filesink.naming import name_of, parse_part
from formats.file_extensions import OF_CODEC

_FORMATS: Final = {
    "parquet": pd.ParquetFileFormat,
    "orc": pd.OrcFileFormat,
    "arrow": pd.IpcFileFormat,
}
_CODECS: Final = frozenset(ending.removeprefix(".") for ending in OF_CODEC.values())


def dataset_of(paths: Sequence[str], buckets: Sequence[str], schema: pa.Schema, files: Any) -> pd.Dataset:
    """The records of ``paths``, each in the directory that stands beside it.

    Raises:
        ConfigError: ``NO_READER``.
        SchemaError: ``TWO_FORMATS``.
    """
    if not paths:
        return pd.dataset(schema.empty_table())
    expressions = {bucket: _expression(bucket, schema) for bucket in set(buckets)}
    return pd.FileSystemDataset.from_paths(
        list(paths),
        schema=schema,
        format=_format(paths),
        filesystem=pf.PyFileSystem(files),
        partitions=[expressions[bucket] for bucket in buckets],
    )


def read_schema(path: str, files: Any) -> pa.Schema:
    """The columns that the file itself tells."""
    fragment = _format([path]).make_fragment(path, filesystem=pf.PyFileSystem(files))
    found: pa.Schema = fragment.physical_schema
    return found.remove_metadata()


def _format(paths: Sequence[str]) -> Any:
    endings = {path.rpartition("/")[2].partition(".")[2]: path for path in paths}
    kinds = {_kind(path): path for path in endings.values()}
    if len(kinds) > 1:
        (one, here), (other, there), *_ = kinds.items()
        raise SchemaError(
            f"'{here}' is of format '{one}', and '{there}' of '{other}': one dataset has one. Choose among "
            "the files of the snapshot",
            code="TWO_FORMATS",
        )
    kind, path = next(iter(kinds.items()))
    if kind not in _FORMATS:
        raise ConfigError(
            f"Arrow has no dataset of files such as '{path}'; it reads Parquet, ORC and Arrow files. Open "
            "them with the open_reader of their format, or with Spark",
            code="NO_READER",
        )
    return _FORMATS[kind]()


def _kind(path: str) -> str:
    """The ending of the format of a part file, without that of a codec."""
    part = parse_part(name_of(path))
    endings = [] if part is None else [one for one in part.suffix.lower().split(".") if one]
    known = [ending for ending in endings if ending not in _CODECS]
    return known[-1] if known else ""


def _expression(bucket: str, schema: pa.Schema) -> Any:
    """What the directory says of all records in it."""
    found: Any = None
    for name, text in partition_values(bucket):
        value = _value(text, schema.field(name).type)
        one = pd.field(name).is_null() if value is None else pd.field(name) == value
        found = one if found is None else found & one
    return pd.scalar(value=True) if found is None else found


def _value(text: str | None, kind: pa.DataType) -> pa.Scalar[Any] | None:
    return None if text is None else pa.scalar(text, pa.string()).cast(kind)
