"""The way back of sinks of files, without Spark: whose rows it would take back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

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
    with pytest.raises(JobError, match="2 sinks have written there since, or hold rows back"):
        sink.plan_roll_back(cast("Any", None), str(base), version)
