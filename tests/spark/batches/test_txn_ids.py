"""What may name the data of a batch write. Needs no Spark that runs."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from filesink import ConfigError, FileSink, ParquetWriterFactory
from filesink.spark.engine import SparkEngine
from tests.fakes import World


@pytest.mark.parametrize("what", ["replace", "skip"])
def test_what_to_do_with_a_repeat_needs_something_that_repeats(what, tmp_path):
    """Without a ``txn_id`` every run would append once more."""
    sink = FileSink.for_bulk_format(tmp_path, ParquetWriterFactory()).build()
    with pytest.raises(ConfigError) as raised:
        sink.write(SimpleNamespace(isStreaming=False), on_repeated_txn=what)
    assert raised.value.code == "CONFLICT"


@pytest.mark.parametrize("txn_id", [202601, 0, "", b"2026-01", False, "a\ud800"])
def test_a_txn_id_that_is_no_text_is_refused(txn_id):
    """A number would make a record that nobody can read again, and 0 would mean none; nothing is written."""
    world = World()
    with pytest.raises(ConfigError, match="2026-01") as refused:
        SparkEngine(world.tiers()).write(SimpleNamespace(isStreaming=False), txn_id=txn_id)
    assert refused.value.code == "BAD_VALUE"
    assert world.files.files == {}
