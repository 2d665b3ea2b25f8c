"""Somebody removes, copies, cuts, flips or swaps a file of a ledger at peace; and people go on.

Whoever goes on either succeeds or hears of it by a typed error. Meanwhile no row may be there twice, and
none may go; and when the file is put back, everything that was begun comes to its end, each row once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from filesink.commit.epoch import EpochLoop
from filesink.commit.replay import EpochOptions
from filesink.errors import FilesinkError
from filesink.operations.maintenance import Lost
from filesink.save_mode import SaveMode
from property_tests.simulation.endings.lost_files import Calm, Operator, rows_shown
from property_tests.simulation.others.overwriter import Overwrites, Write
from property_tests.simulation.spark.fake_spark import Driver
from property_tests.simulation.spark.jobs import SparkError
from property_tests.simulation.stage import Stage
from property_tests.simulation.world.listing import all_files
from property_tests.simulation.world.world import Process

_FILES = re.compile(r"_filesink/([^/]+|_txns/[^/]+)/([0-9]+)\.(record|complete|mark|claim)")
_RECORDS = 0.25  # of all times it is the record of an epoch that is complete
_WEEK_MS = 7 * 24 * 3600 * 1000


class Leaving(Driver):
    """A query that is stopped before its input has ended: parts stay open."""

    def _end(self, loop: EpochLoop[Any, Any, Any]) -> None:
        del loop


@dataclass(slots=True)
class Change:
    """What was done to one file; ``before`` are the bytes of each path that it has changed."""

    what: str
    before: dict[str, bytes | None]
    after: dict[str, bytes | None]


def meets(stage: Stage, overwrites: Overwrites) -> None:
    """Tamper, go on in some order, restore, and count."""
    random, shape = stage.random, stage.scenario.shape
    causes = [record.cause for record in stage.observer.chains["uid-s"].records.values()]
    came = any(cause.get("query_id", "q") != "q" for cause in causes)
    if came or shape.dead_letters or shape.server is not None or shape.announce_after_ms is not None:
        return
    _stop_in_the_middle(stage)
    stage.observer.look_away()
    stage.machine.spoiled = True
    stage.world.plan = Calm()
    expected = {row for batch in stage.source.batches for row in batch}
    expected = (expected & _held(stage)) | rows_shown(stage).keys()
    writes = [overwrites.new_write(SaveMode.APPEND) for _ in range(2)]
    _try(stage, overwrites, writes[0])
    expected |= set(writes[0].rows)
    change = _tamper(stage, random)
    if change is None:
        return
    steps: list[Callable[[], Exception | None]] = [stage.run_query]
    steps += [partial(_operate, stage, what) for what in ("recover", "sweep")]
    steps += [partial(_try, stage, overwrites, write) for write in writes]
    for step in random.sample(steps, random.randint(1, len(steps))):
        step()
        _check(stage, expected, change)
    _restore(stage, change)
    error = _operate(stage, "recover") or stage.run_query()
    for write in writes:
        error = error or _try(stage, overwrites, write)
        expected |= set(write.rows)
    if error is not None:
        stage.world.fail(f"D24: {change.what} is restored, and there is {type(error).__name__}: {error}")
    _check(stage, expected, change)
    if missing := expected - rows_shown(stage).keys():
        stage.world.fail(f"D24: after {change.what} {len(missing)} rows are missing, as {min(missing)}")


def _stop_in_the_middle(stage: Stage) -> None:
    """So that there is something held."""
    stage.one_more_batch("95")
    driver = Leaving(
        stage.machine,
        stage.sink,
        source=stage.source,
        checkpoint=stage.checkpoint,
        options=EpochOptions(keep_batches=stage.scenario.shape.keep_batches),
        number=len(stage.drivers),
    )
    stage.drivers.append(driver)
    driver.start()
    stage.until(lambda: driver.ended)
    stage.end_process(driver, workers=True)


def _held(stage: Stage) -> set[str]:
    return set(stage.source.batches[-1])


def _check(stage: Stage, expected: set[str], change: Change) -> None:
    """No row twice, and none gone that readers have seen."""
    shown = rows_shown(stage)
    doubled = [row for row, times in shown.items() if times > 1]
    if doubled:
        stage.world.fail(f"D24: after {change.what} row {doubled[0]} is there twice")
    gone = expected - shown.keys() - _held(stage)
    if gone:
        stage.world.fail(f"D24: after {change.what} row {min(gone)} is gone")


# --- what is done to a file


def _tamper(stage: Stage, random: Random) -> Change | None:
    disk = stage.world.disk
    files = {name: bytes(one.data) for name, one in all_files(disk.root).items() if _FILES.fullmatch(name)}
    if not files:
        return None
    change = _drawn(random.choice(sorted(files)), files, random)
    chance = Random(f"records {stage.world.operations}")
    done = sorted(name for name in files if _is_done(name, files))
    if done and chance.random() < _RECORDS:  # else one of many files is hardly ever one of these
        record = chance.choice(done)
        change = Change(f"{record} was removed", {record: files[record]}, {record: None})
    for name, data in change.after.items():
        _put(stage, name, data)
    return change


def _is_done(name: str, files: dict[str, bytes]) -> bool:
    return name.endswith(".record") and name.removesuffix(".record") + ".complete" in files


def _drawn(chosen: str, files: dict[str, bytes], random: Random) -> Change:
    data, kind = files[chosen], chosen.rpartition(".")[2]
    number = random.randrange(len(data)) if data else 0
    flipped = data[:number] + bytes([data[number] ^ 1 << random.randrange(8)]) if data else b"x"
    flipped += data[number + 1 :]
    alike = sorted(name for name in files if name.endswith(kind) and name != chosen)
    other = random.choice(alike) if alike else _next_slot(chosen)
    copied = random.choice((other, _next_slot(chosen), _in(other, chosen)))
    # That the only claim of a txn_id is gone nobody can tell from a txn_id that is new.
    removed = _next_slot(chosen) if kind == "claim" else chosen
    what, after = random.choice(
        (
            (f"{removed} was removed", {removed: None}),
            (f"{chosen} was cut", {chosen: data[:number]}),
            (f"{chosen} was flipped at {number}", {chosen: flipped}),
            (f"{chosen} was copied to {copied}", {copied: data}),
            (f"{chosen} and {other} were swapped", {chosen: files.get(other), other: data}),
        )
    )
    return Change(what, {name: files.get(name) for name in after}, dict(after))


def _next_slot(name: str) -> str:
    above, _, file = name.rpartition("/")
    slot, _, kind = file.partition(".")
    return f"{above}/{int(slot) + 1:0{len(slot)}d}.{kind}"


def _in(other: str, name: str) -> str:
    """``name`` in the directory of ``other``."""
    return f"{other.rpartition('/')[0]}/{name.rpartition('/')[2]}"


def _restore(stage: Stage, change: Change) -> None:
    """Bring back what is not as it was; what the product has put there meanwhile stays.

    So does a mark that was copied to a higher slot, once the product has removed the older ones because of
    it: nothing is in a mark, so nobody can tell it from one of the product's.
    """
    for name, data in change.before.items():
        node = all_files(stage.world.disk.root).get(name)
        now = None if node is None else bytes(node.data)
        if now == change.after[name] and not (data is None and _is_adopted(stage, name)):
            _put(stage, name, data)


def _is_adopted(stage: Stage, name: str) -> bool:
    above = name.rpartition("/")[0]
    marks = [other for other in all_files(stage.world.disk.root) if other.endswith(".mark")]
    return name.endswith(".mark") and not [
        other for other in marks if other != name and other.rpartition("/")[0] == above
    ]


def _put(stage: Stage, name: str, data: bytes | None) -> None:
    disk = stage.world.disk
    if name in all_files(disk.root):
        disk.unlink(name)
    if data is not None:
        now = stage.world.now_ms * 1_000_000
        handle = disk.create(name, None, now)
        disk.write(handle, data, now)
        disk.fsync(handle)
        disk.close(handle)
    disk.fsync_directory(name.rpartition("/")[0])
    disk.changed.clear()


# --- who goes on


def _try(stage: Stage, overwrites: Overwrites, write: Write) -> Exception | None:
    process = overwrites.run(write)
    stage.until(lambda: process.ended)
    return process.error


def _operate(stage: Stage, what: str) -> Exception | None:
    """Of an operator who reads what is raised."""
    process, raised = Process(f"tamper-{what}"), list[Exception]()

    def work() -> None:
        try:
            if what == "sweep":
                Operator(stage).sweep(_WEEK_MS)
            else:
                Operator(stage).recover(Lost.RAISE, None)
        except (FilesinkError, SparkError) as error:
            raised.append(error)
        except Exception as error:  # noqa: BLE001 - this is the check
            stage.world.fail(f"I8: {what} raises {type(error).__name__}: {error}")

    actor = stage.world.spawn(process.name, process, work)
    stage.until(lambda: actor.done or process.dead)
    return raised[0] if raised else None
