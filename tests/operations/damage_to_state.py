"""Damage to what stands below ``_filesink``, done by hand, as people and disks do it.

With ``random`` it hits any of those that it can hit, else the first.
"""

# ruff: noqa: D103 - what a function does to a path is in its name

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from random import Random

from filesink.framing import frame
from filesink.inventory.entry import Entry
from filesink.inventory.mark import Mark, MarkKind, digest, first_mark
from filesink.ledger.completion import Completion
from filesink.ledger.record import EpochRecord, Section
from filesink.naming import name_of, sink_tag
from filesink.parts.committables import CommittableCodec, PendingFile
from tests.operations.broken_paths import (
    INVENTORY,
    U,
    V,
    complete,
    cut,
    entries,
    flip,
    live,
    marks,
    newest,
    one_of,
    record,
    rewritten,
    segments,
)


def record_damaged(base: Path, random: Random | None = None) -> Path:
    path = _early(base, "record", random)
    flip(path)
    return path


def record_missing(base: Path, random: Random | None = None) -> Path:
    path = _early(base, "record", random)
    path.unlink()
    return path


def _early(base: Path, suffix: str, random: Random | None) -> Path:
    """Of an epoch between the first and the newest one."""
    return one_of(sorted((base / U).glob(f"*.{suffix}"))[1:-1], random)


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


def completion_foreign(base: Path, random: Random | None = None) -> Path:
    return Path(shutil.copy(complete(base, V, 0), _early(base, "complete", random)))


def completion_damaged(base: Path, random: Random | None = None) -> Path:
    path = _early(base, "complete", random)
    cut(path)
    return path


def completion_missing(base: Path, random: Random | None = None) -> Path:
    path = _early(base, "complete", random)
    path.unlink()
    return path


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


def segment_damaged(base: Path, random: Random | None = None) -> Path:
    path = one_of(segments(base), random)
    flip(path)
    return path


def segment_missing(base: Path, random: Random | None = None) -> Path:
    path = one_of(segments(base), random)
    path.unlink()
    return path


def entry_damaged(base: Path, random: Random | None = None) -> Path:
    path = one_of(entries(base)[1:], random)
    cut(path)
    return path


def entry_missing(base: Path, random: Random | None = None) -> Path:
    path = one_of(entries(base)[1:-1], random)
    path.unlink()
    return path


def entry_foreign(base: Path, random: Random | None = None) -> Path:
    return Path(shutil.copy(entries(base)[0], one_of(entries(base)[1:], random)))


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


def newer_release(base: Path) -> Path:
    record(base, V, 0).write_bytes(frame("epoch-record", 99, b"{}\n"))
    return record(base, V, 0)


def epoch_unfinished(base: Path) -> Path:
    return record(base, U, 1)


#: All damage to what stands below ``_filesink``.
ALL = (
    record_damaged, record_missing, record_foreign, record_refused, head_missing, mark_stray, tail_lost,
    ledger_lost, completion_stray, completion_foreign, completion_damaged, completion_missing,
    batch_doubled, claim_damaged, claim_missing, layout_damaged, tag_shared, epoch_unfinished,
    inventory_missing, inventory_adopting, mark_damaged, mark_past, mark_missing, mark_foreign,
    segment_damaged, segment_missing, entry_damaged, entry_missing, entry_foreign, schema_missing,
    schema_damaged, version_missing, version_doubled, ledger_replaced, inventory_disagrees,
    newer_release,
)  # fmt: skip
