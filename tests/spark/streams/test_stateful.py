"""A query with state goes on after a crash between the sink's decision and Spark's commit."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from tests.spark import inputs, outside
from tests.spark.drivers import Driver

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_stateful_query_goes_on_after_a_crash_in_commit(tmp_path: Path) -> None:
    """Half of an epoch is published when the driver dies; each day is counted once, and rightly.

    The state has format 2, where a batch that was skipped would stop every later start.
    """
    for number in range(6):
        inputs.add_file(tmp_path / "source", number, rows=50)
    base, log = tmp_path / "out", tmp_path / "log"
    arguments = ("interrupted_stream", "counts", "kill", "commit", tmp_path)
    with Driver(*arguments, log=log) as first:
        first.wait_for("blocked")
        first.wait()
    published = outside.visible(base)
    with Driver(*arguments, log=log) as second:
        second.wait_for("done")
        assert second.wait() == 0
    rows = duckdb.execute("SELECT id, flights FROM read_parquet(?) ORDER BY 1", [f"{base}/*.parquet"])
    assert rows.fetchall() == [(day, 10) for day in range(1, 31)]
    assert published.items() <= outside.visible(base).items()
    assert outside.hidden(base) == []
