"""Every kind of damage that ``fsck`` knows, each done to a directory by hand, as people and disks do it."""

# ruff: noqa: D103 - what a function does to a path is in its name

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from filesink.framing import frame
from filesink.inventory.appending import Inventory
from filesink.inventory.entry import Entry
from filesink.inventory.mark import Mark, MarkKind, digest, first_mark
from filesink.ledger.completion import Completion
from filesink.ledger.identity import batch_write
from filesink.ledger.record import EpochRecord, Section
from filesink.naming import HiddenName, name_of, sink_tag
from filesink.parts.committables import CommittableCodec, PendingFile, ReplacedFile
from filesink.save_mode import SaveMode
from filesink.storage.faulty import Fault, Moment
from formats import Encoder
from tests.fakes import keep_open, plan_of
from tests.fakes import records as lines
from tests.sink_directory.written import Written, records

INVENTORY = "_filesink/_inventory"
U, V = "_filesink/uid-u", "_filesink/uid-v"
WEEKS_AGO = 1_600_000_000


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
    written.world.plan = plan_of(Encoder.json_lines(), policy=keep_open(1 << 20, 10**9, 10**9))
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


# --- what damage finds its way with


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


def segment(base: Path) -> Path:
    return min((base / INVENTORY).glob("*.files"))


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


# --- the damage itself; each returns the path that a finding must name


def record_damaged(base: Path) -> Path:
    flip(record(base, U, 1))
    return record(base, U, 1)


def record_missing(base: Path) -> Path:
    record(base, U, 1).unlink()
    return record(base, U, 1)


def record_foreign(base: Path) -> Path:
    slot = newest(base, V) + 1
    shutil.copy(record(base, U, 0), record(base, V, slot))
    return record(base, V, slot)


def record_refused(base: Path) -> Path:
    other = name_of(str(live(base)[0].relative_to(base)))

    def change(one: EpochRecord) -> EpochRecord:
        files = one.committables.decode(CommittableCodec())
        forged = [
            replace(file, target=f"{file.bucket}/x-{other}") if isinstance(file, PendingFile) else file
            for file in files
        ]
        return replace(one, committables=Section.of(CommittableCodec(), forged))

    rewritten(record(base, V, 0), change)
    return record(base, V, 0)


def head_missing(base: Path) -> Path:
    top = newest(base, V)
    for path in [*(base / V).glob("*.record"), *(base / V).glob("*.complete")]:
        path.unlink()
    (base / V / f"{top:012d}.mark").touch()
    return base / V


def mark_stray(base: Path) -> Path:
    path = base / V / f"{newest(base, V) + 3:012d}.mark"
    path.touch()
    return path


def tail_lost(base: Path) -> Path:
    slot = newest(base, U)
    record(base, U, slot).unlink()
    complete(base, U, slot).unlink()
    return base / U


def ledger_lost(base: Path) -> Path:
    shutil.rmtree(base / V)
    return base / V


def completion_stray(base: Path) -> Path:
    path = complete(base, U, newest(base, U) + 1)
    shutil.copy(complete(base, U, 0), path)
    return path


def completion_foreign(base: Path) -> Path:
    shutil.copy(complete(base, V, 0), complete(base, U, 0))
    return complete(base, U, 0)


def completion_damaged(base: Path) -> Path:
    cut(complete(base, U, 0))
    return complete(base, U, 0)


def completion_missing(base: Path) -> Path:
    complete(base, U, 0).unlink()
    return complete(base, U, 0)


def batch_doubled(base: Path) -> Path:
    slot = newest(base, U) + 1
    path = record(base, U, slot)
    shutil.copy(record(base, U, 1), path)
    forged = rewritten(
        path,
        lambda one: replace(
            one, slot=slot, nonce="00000000-0000-4000-8000-0000000000ff",
            committables=Section.of(CommittableCodec(), []),
        ),
    )  # fmt: skip
    complete(base, U, slot).write_bytes(Completion(nonce=forged.nonce).to_bytes())
    return path


def claim_damaged(base: Path) -> Path:
    claim = next((base / "_filesink/_txns").rglob("*.claim"))
    flip(claim)
    return claim.parent


def claim_missing(base: Path) -> Path:
    claim = next((base / "_filesink/_txns").rglob("*.claim"))
    claim.unlink()
    return claim.parent


def layout_damaged(base: Path) -> Path:
    flip(max((base / "_filesink/_layout").glob("*.layout")))
    return base / "_filesink/_layout"


def tag_shared(base: Path) -> Path:
    seen: dict[str, str] = {}
    for number in range(1_000_000):
        name = f"uid-{number}"
        other = seen.setdefault(sink_tag(name), name)
        if other != name:
            (base / "_filesink" / name).mkdir()
            (base / "_filesink" / other).mkdir()
            return base / "_filesink" / min(name, other)
    raise AssertionError("no two names have one tag")


def inventory_missing(base: Path) -> Path:
    shutil.rmtree(base / INVENTORY)
    return base / INVENTORY


def inventory_adopting(base: Path) -> Path:
    data = marks(base)[-1].read_bytes()
    mark = Mark.from_bytes(data, where=f"{INVENTORY}/{marks(base)[-1].name}")
    path = base / INVENTORY / f"{mark.number + 1:06d}.mark"
    path.write_bytes(
        replace(mark, number=mark.number + 1, previous=digest(data), kind=MarkKind.ADOPTING).to_bytes()
    )
    return path


def mark_damaged(base: Path) -> Path:
    flip(marks(base)[-1])
    return marks(base)[-1]


def mark_past(base: Path) -> Path:
    cut(marks(base)[0])
    return marks(base)[0]


def mark_missing(base: Path) -> Path:
    path = marks(base)[-1]
    path.unlink()
    return path


def mark_foreign(base: Path) -> Path:
    other = first_mark(MarkKind.FRESH, now_ms=1, base_id="00000000-0000-4000-8000-0000000000aa")
    marks(base)[0].write_bytes(other.to_bytes())
    return marks(base)[1]


def segment_damaged(base: Path) -> Path:
    flip(segment(base))
    return segment(base)


def segment_missing(base: Path) -> Path:
    path = segment(base)
    path.unlink()
    return path


def entry_damaged(base: Path) -> Path:
    cut(entries(base)[1])
    return entries(base)[1]


def entry_missing(base: Path) -> Path:
    path = entries(base)[1]
    path.unlink()
    return path


def entry_foreign(base: Path) -> Path:
    shutil.copy(entries(base)[0], entries(base)[1])
    return entries(base)[1]


def schema_missing(base: Path) -> Path:
    path = next((base / INVENTORY).glob("*.schema"))
    path.unlink()
    return path


def schema_damaged(base: Path) -> Path:
    path = next((base / INVENTORY).glob("*.schema"))
    flip(path)
    return path


def version_missing(base: Path) -> Path:
    entries(base)[-1].unlink()
    return record(base, V, newest(base, V))


def _entry(path: Path) -> Entry:
    return Entry.from_bytes(path.read_bytes(), where=str(path))


def version_doubled(base: Path) -> Path:
    entry = _entry(entries(base)[-1])
    path = base / INVENTORY / f"{entry.version + 1:012d}.entry"
    path.write_bytes(replace(entry, version=entry.version + 1).to_bytes())
    return base / INVENTORY


def ledger_replaced(base: Path) -> Path:
    forged = rewritten(
        record(base, V, 0), lambda one: replace(one, nonce="00000000-0000-4000-8000-0000000000ee")
    )
    complete(base, V, 0).write_bytes(Completion(nonce=forged.nonce).to_bytes())
    return record(base, V, 0)


def inventory_disagrees(base: Path) -> Path:
    path = entries(base)[-1]
    entry = _entry(path)
    (file,) = entry.epoch.added
    added = (replace(file, rows=(file.rows or 0) + 5),)
    path.write_bytes(replace(entry, epoch=replace(entry.epoch, added=added)).to_bytes())
    return base / file.path


def file_lost(base: Path) -> Path:
    path = live(base)[0]
    path.unlink()
    return path


def file_misplaced(base: Path) -> Path:
    path = live(base)[0]
    assert path.parent.name == "k=1"
    return path.rename(base / "k=2" / path.name)


def file_resized(base: Path) -> Path:
    cut(live(base)[0])
    return live(base)[0]


def file_torn(base: Path) -> Path:
    path = live(base)[0]
    path.write_bytes(path.read_bytes()[:-8] + bytes(8))
    return path


def file_rows(base: Path) -> Path:
    """Another file of the same size, to the byte."""
    path = max(live(base), key=lambda one: pq.ParquetFile(one).metadata.num_rows)
    table, size = pq.ParquetFile(path).read().slice(0, 1), path.stat().st_size
    for length in range(size):
        output = pa.BufferOutputStream()
        with pq.ParquetWriter(output, table.schema, store_schema=False) as writer:
            writer.write_table(table)
            writer.add_key_value_metadata({"k": "x" * length})
        if output.tell() == size:
            path.write_bytes(output.getvalue().to_pybytes())
            return path
    raise AssertionError("no length fits")


def file_returned(base: Path) -> Path:
    (old,) = (base.parent / "replaced").glob("*.parquet")
    return Path(shutil.copy2(old, base / "k=1" / old.name))


def file_doubled(base: Path) -> Path:
    path = live(base)[0]
    return Path(shutil.copy(path, path.with_name("copy.parquet")))


def file_doubled_elsewhere(base: Path) -> Path:
    path = live(base)[0]
    return Path(shutil.copy(path, base / "k=2" / path.name))


def file_unknown(base: Path) -> Path:
    path = live(base)[0]
    other = path.with_name(_other_part(path.name))
    pq.write_table(pa.table({"value": ["x" * 99]}), other)
    return other


def _other_part(name: str) -> str:
    """A name of the same sink and slot, with another random end."""
    head, _, tail = name.rpartition("-")
    return f"{head[:-4]}0bad-{tail}"


def file_foreign(base: Path) -> Path:
    path = base / "k=1" / "mine.parquet"
    pq.write_table(pa.table({"value": ["x" * 50]}), path)
    return path


def file_link(base: Path) -> Path:
    path = base / "k=1" / "link.parquet"
    path.symlink_to(live(base)[0])
    return path


def file_left(base: Path) -> Path:
    path = file_returned(base)
    chain = "_filesink/exclusive"
    slot = newest(base, chain)
    one = EpochRecord.from_bytes(record(base, chain, slot).read_bytes(), where="")
    file = ReplacedFile(path=str(path.relative_to(base)), size=path.stat().st_size, version="1-1")
    end = Completion(nonce=one.nonce, left=Section.of(CommittableCodec(), [file]))
    complete(base, chain, slot).write_bytes(end.to_bytes())
    return path


def base_nested(base: Path) -> Path:
    (base / "k=1/_filesink/uid-x").mkdir(parents=True)
    return base / "k=1"


def garbage(base: Path) -> Path:
    name = HiddenName(
        target="part-0", tag=sink_tag("uid-u"), slot=0, attempt="00000000-0000-4000-8000-000000000001"
    )
    path = base / "k=1" / str(name)
    path.write_bytes(b"x")
    return path


def garbage_of_a_put(base: Path) -> Path:
    path = base / U / ".000000000000.record.00000000-0000-4000-8000-000000000002"
    path.write_bytes(b"x")
    return path


def hidden_old(base: Path) -> Path:
    name = HiddenName(
        target="part-0", tag=sink_tag("uid-nobody"), slot=0, attempt="00000000-0000-4000-8000-000000000003"
    )
    path = base / "k=1" / str(name)
    path.write_bytes(b"x")
    os.utime(path, (WEEKS_AGO, WEEKS_AGO))
    return path


def tail_lost_by_a_hidden_file(base: Path) -> Path:
    name = HiddenName(
        target="part-0", tag=sink_tag("uid-u"), slot=99, attempt="00000000-0000-4000-8000-000000000004"
    )
    (base / "k=1" / str(name)).write_bytes(b"x")
    return base / U


def newer_release(base: Path) -> Path:
    record(base, V, 0).write_bytes(frame("epoch-record", 99, b"{}\n"))
    return record(base, V, 0)


def held_lost(base: Path) -> Path:
    path = hidden(base)[0]
    path.unlink()
    return path


def held_changed(base: Path) -> Path:
    path = hidden(base)[0]
    path.write_bytes(path.read_bytes() + b"x")
    return path


def pending_lost(base: Path) -> Path:
    (path,) = hidden(base)
    path.unlink()
    one = EpochRecord.from_bytes(record(base, U, 1).read_bytes(), where="")
    (file,) = (one for one in one.committables.decode(CommittableCodec()) if isinstance(one, PendingFile))
    return base / file.target


def epoch_unfinished(base: Path) -> Path:
    return record(base, U, 1)


@dataclass(frozen=True, kw_only=True)
class Damage:
    """One kind of damage.

    Attributes:
        code: of the finding.
        make: does it to a base path, and returns what the finding must name.
        on: makes the path that is damaged.
        also: codes of what follows from it.
    """

    code: str
    make: Callable[[Path], Path]
    on: Callable[[Path], Written] = whole
    also: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return self.make.__name__


def _damages() -> Iterator[Damage]:
    also = {
        record_missing: {"COMPLETION_STRAY"},
        pending_lost: {"EPOCH_UNFINISHED"},
    }
    others = {
        held_changed: "HELD_LOST",
        garbage_of_a_put: "GARBAGE",
        tail_lost_by_a_hidden_file: "TAIL_LOST",
        file_doubled_elsewhere: "FILE_DOUBLED",
    }
    on = {held_lost: with_open_parts, held_changed: with_open_parts}
    on |= {pending_lost: unfinished, epoch_unfinished: unfinished}
    for make in (
        record_damaged, record_missing, record_foreign, record_refused, head_missing, mark_stray, tail_lost,
        tail_lost_by_a_hidden_file, ledger_lost, completion_stray, completion_foreign, completion_damaged,
        completion_missing, batch_doubled, claim_damaged, claim_missing, layout_damaged, tag_shared,
        epoch_unfinished, inventory_missing, inventory_adopting, mark_damaged, mark_past, mark_missing,
        mark_foreign,
        segment_damaged, segment_missing, entry_damaged, entry_missing, entry_foreign, schema_missing,
        schema_damaged, version_missing, version_doubled, ledger_replaced, inventory_disagrees, file_lost,
        file_misplaced, file_resized, file_torn, file_rows, file_returned, file_doubled,
        file_doubled_elsewhere, file_unknown, file_foreign, file_link, file_left, base_nested, held_lost,
        held_changed, pending_lost, garbage, garbage_of_a_put, hidden_old, newer_release,
    ):  # fmt: skip
        yield Damage(
            code=others.get(make, make.__name__.upper()),
            make=make,
            on=on.get(make, whole),
            also=frozenset(also.get(make, ())),
        )


DAMAGES = tuple(_damages())
