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
from filesink.parts.file_format import RowFormat
from tests.fakes import keep_open
from tests.sink_directory.written import Written, records


def test_no_way_back_over_rows_that_another_sink_holds(tmp_path: Path) -> None:
    """They would become visible first, and be taken back with ours; their sink counts them as written."""
    base = tmp_path / "base"
    written = Written(base, format=RowFormat(filesink.Encoder.json_lines()), partitions=())
    closes = written.world.plan
    written.world.plan = replace(closes, policy=keep_open())
    written.write(records(1, "held"), uid="other")
    written.world.plan = closes
    written.write(records(1, "a"))
    version = filesink.open(base).version
    written.write(records(1, "b"))
    sink = next(one for one in SINKS if one.name == "LocalFile")(SimpleNamespace(storage=lambda _: {}))
    with pytest.raises(JobError, match="1 other sinks have written there since, or hold rows back"):
        sink.plan_roll_back(run_of(base, "u"), str(base), version)


def test_no_way_back_over_rows_that_another_sink_alone_has_written(tmp_path: Path) -> None:
    """Ours has begun an epoch and decided none: the way back would only take the rows of the other."""
    base = tmp_path / "base"
    written = Written(base, format=RowFormat(filesink.Encoder.json_lines()), partitions=())
    written.write(records(1, "a"))
    version = filesink.open(base).version
    written.write(records(1, "b"), uid="other")
    sink = next(one for one in SINKS if one.name == "LocalFile")(SimpleNamespace(storage=lambda _: {}))
    with pytest.raises(JobError, match="1 other sinks have written there since"):
        sink.plan_roll_back(run_of(base, "u"), str(base), version)
    sink.plan_roll_back(run_of(base, "u", "other"), str(base), version)  # both are ours


def run_of(base: Path, *uids: str) -> Any:
    """A run whose sink has had the queries that have written under these uids."""
    known = {one.uid: one.id for one in filesink.open(base).sinks()}
    return SimpleNamespace(queries=frozenset(known[uid] for uid in uids))
