"""CSV with a header, as jobs read it: columns by their names if the header has all of them, else by place.

SeaTunnel passes over the header, and its columns are those of ``schema`` by their places. By names alone,
every column whose name in the file is another one would be null.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow as pa

from filesink.jobs.plugins.files.lines import behind_lines
from formats.api import ReadableFormat
from formats.splitting import Split


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvBelowHeader(ReadableFormat):
    """CSV whose first line is a header, whatever that says.

    Attributes:
        named: the format, with a header.
        placed: the same without one.
        delimiter, charset: of both.
    """

    named: ReadableFormat
    placed: ReadableFormat
    delimiter: str
    charset: str

    def open_reader(self, file: BinaryIO, *, schema: pa.Schema | None = None) -> pa.RecordBatchReader:
        """See ``ReadableFormat.open_reader``."""
        return self.open_split(file, Split(0, file.seek(0, 2)), schema=schema)

    def splits(self, file: BinaryIO, *, target: int) -> list[Split]:
        """See ``ReadableFormat.splits``."""
        return self.named.splits(file, target=target)

    def open_split(
        self, file: BinaryIO, split: Split, *, schema: pa.Schema | None = None
    ) -> pa.RecordBatchReader:
        """See ``ReadableFormat.open_split``."""
        below = behind_lines(file, 1)
        if schema is None or split.end <= below or self._has_names(file, below, schema):
            return self.named.open_split(file, split, schema=schema)
        return self.placed.open_split(file, Split(max(split.start, below), split.end), schema=schema)

    def _has_names(self, file: BinaryIO, below: int, schema: pa.Schema) -> bool:
        file.seek(0)
        header = file.read(below).decode(self.charset, "replace").removeprefix("\ufeff")
        names = next(csv.reader([header.rstrip("\r\n")], delimiter=self.delimiter), [])
        return set(schema.names) <= set(names)
