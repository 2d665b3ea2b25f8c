"""The sink of files keeps the contract of sinks: parts that end with each epoch or stay open, many tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from filesink import BucketAssigner, Encoder, FileSink, FileSinkBuilder, ParquetWriterFactory
from tests.contracts.sink_contract import ExactlyOnceSinkContract
from tests.contracts.sink_site import SinkSite
from tests.spark import outside


@dataclass
class FileSite(SinkSite):
    """Files below a directory."""

    directory: Path

    def sink(self):
        builder = self.builder().with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        return builder.with_uid("u").build()._tiers

    def builder(self) -> FileSinkBuilder:
        return FileSink.for_bulk_format(self.directory, ParquetWriterFactory())

    def arrived(self) -> list[int]:
        paths = [self.directory / path for path in outside.visible(self.directory)]
        return [number for path in paths for number in pq.read_table(path)["id"].to_pylist()]


class LineSite(FileSite):
    """The same, as lines."""

    def builder(self) -> FileSinkBuilder:
        return FileSink.for_row_format(self.directory, Encoder.simple_string_encoder())

    def batch(self, ids) -> pa.RecordBatch:
        return pa.record_batch({"value": pa.array(map(str, ids), pa.string())})

    def arrived(self) -> list[int]:
        paths = [self.directory / path for path in outside.visible(self.directory)]
        return [int(line) for path in paths for line in path.read_text().splitlines()]


class TablesSite(FileSite):
    """The same, in three tables; a row in a directory of another table is none of ours."""

    def sink(self):
        assigner = BucketAssigner.table_bucket_assigner("table", path="${table_name}")
        return self.builder().with_bucket_assigner(assigner).with_uid("u").build()._tiers

    def batch(self, ids) -> pa.RecordBatch:
        return super().batch(ids).append_column("table", pa.array([table(one) for one in ids], pa.string()))

    def arrived(self) -> list[int]:
        paths = [self.directory / path for path in outside.visible(self.directory)]
        found = [(path, number) for path in paths for number in pq.read_table(path)["id"].to_pylist()]
        return [number if path.parent.name == table(number) else -1 for path, number in found]


def table(number: int) -> str:
    """That of a row."""
    return f"t{number % 3}"


class TestFilesThatEndWithEachEpoch(ExactlyOnceSinkContract):
    @pytest.fixture
    def site(self, tmp_path: Path) -> SinkSite:
        return FileSite(tmp_path / "out")


class TestFilesThatStayOpen(ExactlyOnceSinkContract):
    @pytest.fixture
    def site(self, tmp_path: Path) -> SinkSite:
        return LineSite(tmp_path / "out")


class TestFilesOfManyTables(ExactlyOnceSinkContract):
    @pytest.fixture
    def site(self, tmp_path: Path) -> SinkSite:
        return TablesSite(tmp_path / "out")
