"""Paths that a test may break, and where their files are."""

# ruff: noqa: D103 - what a function does to a path is in its name

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from filesink.inventory.appending import Inventory
from filesink.ledger.identity import batch_write
from filesink.ledger.record import EpochRecord
from filesink.parts.file_format import RowFormat
from filesink.save_mode import SaveMode
from filesink.storage.faulty import Fault, Moment
from formats import Encoder
from tests.fakes import keep_open, plan_of
from tests.fakes import records as lines
from tests.sink_directory.written import Written, records

INVENTORY = "_filesink/_inventory"
U, V = "_filesink/uid-u", "_filesink/uid-v"


class Killed(BaseException):
    """The driver is gone."""


def whole(base: Path, more: Callable[[Written], object] = lambda _written: None) -> Written:
    """A path of several sinks: streams, an overwrite, a named write; partly folded, with files that went.

    ``more`` is written before the fold.
    """
    written = Written(base)
    written.write(records(1, "gone"))
    (base.parent / "replaced").mkdir()
    for file in base.glob("k=1/*.parquet"):
        shutil.copy2(file, base.parent / "replaced")
    written.overwrite(records(2, "whole", "new"))
    written.write(records(1, "a", "b", "c"))
    written.write(records(3, "d"), uid="v")
    written.world.uid = "u"
    written._run(records(2, "named"), *batch_write(SaveMode.APPEND, "u", "january", written.world.ids))
    more(written)
    _inventory(written).fold()
    for k in (1, 2, 3):
        written.write(records(k, "e" * k, "f"))
    written.write(records(3, "g"), uid="v")
    return written


def _inventory(written: Written) -> Inventory:
    world = written.world
    return Inventory(world.store(), clock=world.clock, ids=world.ids, history_ms=10**12)


def with_open_parts(base: Path) -> Written:
    """Rows that wait in parts which stay open."""
    written = Written(base, partitions=())
    written.world.plan = plan_of(RowFormat(Encoder.json_lines()), policy=keep_open(1 << 20, 10**9, 10**9))
    world = written.world
    for value in ("a", "b"):
        batch = lines(value, bucket="day=1")
        written._run(batch, world.sink_id, _next(written))
    return written


def _next(written: Written) -> Any:
    from tests.fakes import micro_batch

    number = written.batches["open"]
    written.batches["open"] += 1
    return micro_batch(number)


def unfinished(base: Path) -> Written:
    """A driver has died between decision and publication of its second epoch."""
    written = Written(base)
    written.write(records(1, "a"))
    killed = Fault(moment=Moment.BEFORE, error=Killed())
    written.world.fault = lambda operation, _path: killed if operation == "publish" else None
    try:
        written.write(records(1, "b"))
    except Killed:
        written.world.fault = lambda _operation, _path: None
        return written
    raise AssertionError("nothing was published")


def one_of(found: Sequence[Path], random: Random | None) -> Path:
    """The first; with ``random`` any."""
    return found[0] if random is None else random.choice(found)


def live(base: Path) -> list[Path]:
    """The files that readers see, in order."""
    found = (path for path in base.rglob("*") if path.is_file() and not _is_hidden(base, path))
    return sorted(found)


def _is_hidden(base: Path, path: Path) -> bool:
    return any(part[0] in "._" for part in path.relative_to(base).parts)


def hidden(base: Path) -> list[Path]:
    return sorted(path for path in base.rglob(".*.inprogress.*") if path.is_file())


def record(base: Path, chain: str, slot: int) -> Path:
    return base / chain / f"{slot:012d}.record"


def complete(base: Path, chain: str, slot: int) -> Path:
    return base / chain / f"{slot:012d}.complete"


def newest(base: Path, chain: str) -> int:
    return max(int(path.stem) for path in (base / chain).glob("*.record"))


def entries(base: Path) -> list[Path]:
    return sorted((base / INVENTORY).glob("*.entry"))


def marks(base: Path) -> list[Path]:
    return sorted((base / INVENTORY).glob("*.mark"))


def segments(base: Path) -> list[Path]:
    return sorted((base / INVENTORY).glob("*.files"))


def flip(path: Path) -> None:
    """One bit in the middle."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def rewritten(path: Path, change: Callable[[EpochRecord], EpochRecord]) -> EpochRecord:
    """A record, as somebody who knows the format would forge it."""
    forged = change(EpochRecord.from_bytes(path.read_bytes(), where=str(path)))
    path.write_bytes(forged.to_bytes())
    return forged
