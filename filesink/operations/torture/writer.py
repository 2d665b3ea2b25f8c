"""The program that is killed: one stream into the path of a trial, as a query without Spark.

It reads what it is to do from standard input, since options of a store may be secret, and says on standard
output how far it is: ``ready``; ``began``, ``decided``, ``visible``, ``complete`` of each epoch; ``done N``
when batch N is written, which is what Spark's checkpoint would know; ``finished``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from filesink.api.events import EpochBegan, EpochComplete, EpochDecided, EpochVisible, Listeners, SinkEvent
from filesink.buckets.assigner import BucketAssigner
from filesink.commit.epoch import EpochLoop
from filesink.commit.replay import EpochOptions
from filesink.errors import FilesinkError
from filesink.file_sink.report import changes_of
from filesink.file_sink.tiers import FileTiers
from filesink.ledger.record import MicroBatch
from filesink.naming import OutputFileConfig
from filesink.operations.torture.input import TortureBatch
from filesink.parts.file_format import RowFormat
from filesink.parts.plan import Plan
from filesink.parts.rolling import RollingPolicy
from filesink.ports import Ports
from filesink.storage.address import StoreAddress
from filesink.system import SystemClock, SystemIds, ThreadRunner, this_driver
from formats.encoders import Encoder

_STEPS: dict[type[SinkEvent], str] = {
    EpochBegan: "began",
    EpochDecided: "decided",
    EpochVisible: "visible",
    EpochComplete: "complete",
}
_PART = 8_000  # bytes: a part of a rolling writer takes some batches


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a writer is to do.

    Attributes:
        path, options: of the trial.
        writer: its number. Those of even numbers keep parts open from one batch to the next.
        first: the batch to begin with.
        last: the batch after which the input ends; ``None`` to write until it is killed.
    """

    path: str
    options: Mapping[str, Any]
    writer: int
    first: int
    last: int | None = None


def uid_of(writer: int) -> str:
    """The uid of a writer's sink."""
    return f"writer-{writer}"


def run(task: Task) -> None:
    """Write batches until the last one, then end the input."""
    tiers, ids = _tiers(task), SystemIds()
    audience = Listeners(task.path, [_heard], changes_of)
    who = this_driver("filesink torture")
    ports = Ports(clock=SystemClock(), ids=ids, runner=ThreadRunner(), who=who, audience=audience)
    ledger = tiers.open_ledger(f"uid-{uid_of(task.writer)}")
    batch = TortureBatch(writer=task.writer, batch=task.first, run_id=ids.uuid())
    tiers.prepare(batch.schema)
    _say("ready")
    with closing(EpochLoop(tiers, ledger, ports=ports, options=EpochOptions())) as loop:
        while task.last is None or batch.batch <= task.last:
            cause = MicroBatch(
                query_id=uid_of(task.writer), batch_id=batch.batch, fingerprint=batch.fingerprint
            )
            loop.run(cause, batch)
            _say(f"done {batch.batch}")
            batch = TortureBatch(writer=task.writer, batch=batch.batch + 1, run_id=batch.run_id)
        loop.finish()
    _say("finished")


def _tiers(task: Task) -> FileTiers:
    rolls = RollingPolicy.default_rolling_policy(part_size=_PART, rollover_interval="1 h")
    closes = RollingPolicy.on_checkpoint_rolling_policy()
    return FileTiers(
        address=StoreAddress(base_path=task.path, storage_options=task.options),
        plan=Plan(
            format=RowFormat(Encoder.simple_string_encoder()),
            assigner=BucketAssigner.partition_bucket_assigner("bucket"),
            policy=closes if task.writer % 2 else rolls,
            names=OutputFileConfig(),
            check_interval_ms=60_000,
        ),
        uid=uid_of(task.writer),
    )


def _heard(event: SinkEvent) -> None:
    if step := _STEPS.get(type(event)):
        _say(step)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    """Run the task of standard input. An error of ours is one line, as anybody may read it."""
    try:
        run(Task(**json.loads(sys.stdin.read())))
    except FilesinkError as error:
        sys.stderr.write(f"[{error.code}] {error.message}\n")
        raise SystemExit(3) from None


if __name__ == "__main__":
    main()
