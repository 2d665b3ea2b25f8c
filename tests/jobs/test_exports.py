"""Tables over the files of a job: options of its sinks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from filesink.jobs import State
from tests.jobs.test_running import Site

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

JOB = """
source { FakeSource { schema { fields { id = bigint } }, rows = [{ fields = [1] }, { fields = [2] }] } }
sink {
  LocalFile {
    path = HERE/out, file_format_type = parquet, exports = [delta, manifest]
    iceberg { table = shop.goods, catalog { name = lake, type = sql, uri = "sqlite:///HERE/lake.db" } }
  }
}
"""


def test_tables_of_delta_and_iceberg(spark: SparkSession, tmp_path: Path) -> None:
    """Other readers find the rows of two jobs, each once."""
    from deltalake import DeltaTable
    from pyiceberg.catalog import load_catalog

    assert spark is not None
    site = Site(tmp_path)
    for name in ("first", "second"):
        info = site.run(JOB, name=name)
        assert (info.state, info.error) == (State.FINISHED, "")
    table = load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/lake.db").load_table("shop.goods")
    for found in (DeltaTable(tmp_path / "out").to_pyarrow_table(), table.scan().to_arrow()):
        assert sorted(found["id"].to_pylist()) == [1, 1, 2, 2]
    assert list((tmp_path / "out").rglob("*manifest*"))
