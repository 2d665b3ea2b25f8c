"""The way back of sinks of files, without Spark: whose rows it would take back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import filesink
from filesink.errors import JobError
from filesink.jobs.plugins.files.connectors import SINKS
from filesink.ledger.identity import stream_sink_id
from filesink.parts.file_format import RowFormat
from tests.fakes import keep_open, micro_batch
from tests.sink_directory.written import Written, records

RUN: Any = SimpleNamespace(queries={"ours"})


def test_no_way_back_over_rows_that_another_sink_holds(tmp_path: Path) -> None:
    """They would become visible first, and be taken back with ours; their sink counts them as written."""
    base = tmp_path / "base"
    written = Written(base, format=RowFormat(filesink.Encoder.json_lines()), partitions=())
    written_by(written, "ours", "a")
    closes = written.world.plan
    written.world.plan = replace(closes, policy=keep_open())
    written.write(records(1, "held"), uid="other")
    written.world.plan = closes
    version = filesink.open(base).version
    written_by(written, "ours", "b")
    sink = next(one for one in SINKS if one.name == "LocalFile")(SimpleNamespace(storage=lambda _: {}))
    with pytest.raises(JobError, match="1 other sinks have written there since, or hold rows back"):
        sink.plan_roll_back(RUN, str(base), version)


def test_no_way_back_over_rows_that_another_sink_alone_has_written(tmp_path: Path) -> None:
    """Ours has begun an epoch and decided none: the way back would only take the rows of the other."""
    base = tmp_path / "base"
    written = Written(base, format=RowFormat(filesink.Encoder.json_lines()), partitions=())
    written_by(written, "ours", "a")
    version = filesink.open(base).version
    written.write(records(1, "b"), uid="other")
    sink = next(one for one in SINKS if one.name == "LocalFile")(SimpleNamespace(storage=lambda _: {}))
    with pytest.raises(JobError, match="1 other sinks have written there since"):
        sink.plan_roll_back(RUN, str(base), version)


def written_by(written: Written, query: str, value: str) -> None:
    """One micro-batch of a stream without a uid, as those of jobs are."""
    batch = micro_batch(written.batches[query], query_id=query)
    written._run(records(1, value), stream_sink_id(None, query), batch)
    written.batches[query] += 1
