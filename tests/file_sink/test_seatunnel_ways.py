"""What SeaTunnel's sinks of files have and ours say in another way; ``docs/seatunnel.md`` lists them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from filesink import BucketAssigner, ConfigError, Encoder, FileSink, ParquetWriterFactory
from filesink.buckets.path_assigners import EXPRESSION_COLUMN
from filesink.file_sink.file_names import now_in, prefix_of
from filesink.ledger.identity import batch_write
from filesink.naming import parse_part
from filesink.parts.file_format import RowFormat
from filesink.parts.rolling import RollingPolicy
from filesink.save_mode import SaveMode
from formats import (
    ArrowWriterFactory,
    AvroWriterFactory,
    CompressWriterFactory,
    OrcBulkWriterFactory,
    SequenceFileWriterFactory,
)
from formats.api import BaseEncoder
from formats.errors import FormatError
from tests.fakes import World, plan_of, records

NOW = now_in("Europe/Berlin", 1_772_494_200_000)  # half past eleven at night in UTC, and a day later there
LINES = FileSink.for_row_format("/data/out", Encoder.simple_string_encoder())


def write(world, *partitions, mode="append"):
    """A batch write."""
    sink_id, cause = batch_write(SaveMode(mode), world.uid, "", world.ids)
    return world.driver(sink_id).run(cause, world.job(*partitions))


@pytest.mark.parametrize(
    ("expression", "prefix"),
    [
        ("${transactionId}", "part"),
        ("${uuid}", "part"),
        ("sales_${transactionId}", "sales"),
        ("sales-${now}_${uuid}", "sales-2026.03.03"),
        ("${yyyy.MM.dd}.${now}-${uuid}", "2026.03.03.2026.03.03"),
    ],
)
def test_an_expression_is_a_prefix(expression: str, prefix: str) -> None:
    """With the moment in it; what separates the id from it is ours."""
    assert prefix_of(expression, time_format="yyyy.MM.dd", now=NOW) == prefix


@pytest.mark.parametrize(
    "expression",
    [
        "", "report", "report.csv", "${now}", "${transactionId}-x", "${transactionId}_${now}",
        "${uuid}${transactionId}", "${uuid}${uuid}", "a-${file}-${uuid}", "${now", "${now_${uuid}",
        "$transactionId", "transactionId",
    ],
)  # fmt: skip
def test_an_expression_whose_names_could_meet_is_refused(expression: str) -> None:
    """A name that is given exactly as well: its second file would replace the first."""
    with pytest.raises(ConfigError) as caught:
        LINES.with_file_name_expression(expression)
    assert caught.value.code == "FILE_NAME"


@pytest.mark.parametrize(
    ("expression", "options", "code"),
    [
        ("a/${now}-${uuid}", {}, "BAD_VALUE"),
        ("../${uuid}", {}, "BAD_VALUE"),
        ("${now}-${uuid}", {"time_format": "yyyy/MM"}, "BAD_VALUE"),
        ("${now}-${uuid}", {"time_format": "YYYY"}, "BAD_VALUE"),
        ("${now}-${uuid}", {"time_zone": "Mars"}, "TIME_ZONE"),
        ("x" * 101 + "${uuid}", {}, "TOO_LONG"),
    ],
)
def test_an_expression_makes_no_other_prefix_than_a_user_may(
    expression: str, options: dict[str, str], code: str
) -> None:
    """No directories, no hidden files, no weeks by mistake."""
    with pytest.raises(ConfigError) as caught:
        LINES.with_file_name_expression(expression, **options)
    assert caught.value.code == code


def test_an_expression_keeps_the_suffix_and_the_id() -> None:
    """Two writes of one expression never have a name in common."""
    names = LINES.with_file_name_expression("sales-${transactionId}").names
    world = World(plan=plan_of(names=replace(names, part_suffix=".log")))
    write(world, records("a"))
    write(world, records("b"))
    found = [parse_part(path) for path in world.visible()]
    assert [part and (part.prefix, part.suffix) for part in found] == [("sales", ".log")] * 2
    assert world.rows() == ["a", "b"]


def test_one_task_and_no_limit_make_one_file() -> None:
    """What ``single_file_mode`` is for; ``coalesce(1)`` has one task."""
    world = World(plan=plan_of(policy=RollingPolicy.on_checkpoint_rolling_policy()))
    write(world, [records(*(f"{n}-{m}" for m in range(1000))) for n in range(20)])
    assert len(world.visible()) == 1
    assert len(world.rows()) == 20_000


def test_a_write_without_rows_makes_no_file() -> None:
    """Its epoch is on record all the same, and an overwrite leaves none."""
    world = World()
    assert write(world).rows == 0
    assert world.visible() == {}
    write(world, records("a"))
    write(world, mode="overwrite")
    assert world.visible() == {}


class Contents(BaseEncoder):
    """The bytes of a column, as they are."""

    extension = ".bin"

    def encode(self, batch):
        return b"".join(batch["content"].to_pylist())


def test_binary_contents_are_copied_as_they_are() -> None:
    """A file for each record, in the relative directory that it had; the name is ours."""
    policy = RollingPolicy.on_checkpoint_rolling_policy(max_rows=1)
    plan = replace(
        plan_of(RowFormat(Contents()), policy), assigner=BucketAssigner.expression_bucket_assigner("folder")
    )
    given = {b"": "2026/a", b"\x00\xff\r\n": "2026/a", b"\x89PNG" * 1000: "b"}
    batch = pa.record_batch(
        {EXPRESSION_COLUMN: pa.array(given.values()), "content": pa.array(given.keys(), pa.binary())}
    )
    world = World(plan=plan)
    job = world.job(batch)
    sink_id, cause = batch_write(SaveMode.APPEND, world.uid, "", world.ids)
    world.driver(sink_id).run(cause, replace(job, schema=batch.schema))
    found = sorted((path.rpartition("/")[0], data) for path, data in world.visible().items())
    assert found == sorted((folder, data) for data, folder in given.items())


@pytest.mark.parametrize("name", ["lzo", "LZO"])
def test_lzo_is_refused_by_name(name: Any) -> None:
    """By every format, with the reason; nothing else is taken for it."""
    for make in (
        partial(ParquetWriterFactory, compression=name),
        partial(OrcBulkWriterFactory, compression=name),
        partial(AvroWriterFactory, compression=name),
        partial(ArrowWriterFactory, compression=name),
        partial(SequenceFileWriterFactory, value="v", codec=name),
        partial(CompressWriterFactory, encoder=Encoder.json_lines(), codec=name),
    ):
        with pytest.raises(FormatError, match=r"(?i)'lzo', whose libraries are under the GPL: use one of "):
            make()
