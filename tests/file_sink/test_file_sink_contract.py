"""The sink of files keeps the contract of sinks, whether its parts end with each epoch or stay open."""

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


class TestFilesThatEndWithEachEpoch(ExactlyOnceSinkContract):
    @pytest.fixture
    def site(self, tmp_path: Path) -> SinkSite:
        return FileSite(tmp_path / "out")


class TestFilesThatStayOpen(ExactlyOnceSinkContract):
    @pytest.fixture
    def site(self, tmp_path: Path) -> SinkSite:
        return LineSite(tmp_path / "out")
