"""Damage to the files of a path, hidden ones too, done by hand, as people and disks do it.

With ``random`` it hits any of those that it can hit, else the first.
"""

# ruff: noqa: D103 - what a function does to a path is in its name

from __future__ import annotations

import os
import shutil
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from filesink.ledger.completion import Completion
from filesink.ledger.record import EpochRecord, Section
from filesink.naming import HiddenName, sink_tag
from filesink.parts.committables import CommittableCodec, PendingFile, ReplacedFile
from tests.operations.broken_paths import (
    U,
    complete,
    cut,
    hidden,
    live,
    newest,
    one_of,
    record,
)

WEEKS_AGO = 1_600_000_000


def file_lost(base: Path, random: Random | None = None) -> Path:
    path = one_of(live(base), random)
    path.unlink()
    return path


def file_misplaced(base: Path, random: Random | None = None) -> Path:
    path = one_of(live(base), random)
    return path.rename(_elsewhere(base, path))


def _elsewhere(base: Path, path: Path) -> Path:
    """Its name in another directory with files."""
    return base / ("k=1" if path.parent.name != "k=1" else "k=2") / path.name


def file_resized(base: Path, random: Random | None = None) -> Path:
    path = one_of(live(base), random)
    cut(path)
    return path


def file_torn(base: Path, random: Random | None = None) -> Path:
    path = one_of(live(base), random)
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


def file_doubled(base: Path, random: Random | None = None) -> Path:
    path = one_of(live(base), random)
    return Path(shutil.copy(path, path.with_name("copy.parquet")))


def file_doubled_elsewhere(base: Path, random: Random | None = None) -> Path:
    path = one_of(live(base), random)
    return Path(shutil.copy(path, _elsewhere(base, path)))


def file_unknown(base: Path, random: Random | None = None) -> Path:
    path = one_of(live(base), random)
    other = path.with_name(_other_part(path.name))
    pq.write_table(pa.table({"value": ["x" * 99]}), other)
    return other


def _other_part(name: str) -> str:
    """A name of the same sink and slot, with another random end."""
    head, _, tail = name.rpartition("-")
    return f"{head[:-4]}0bad-{tail}"


def file_foreign(base: Path, random: Random | None = None) -> Path:
    path = one_of(live(base), random).with_name("mine.parquet")
    pq.write_table(pa.table({"value": ["x" * 50]}), path)
    return path


def file_link(base: Path, random: Random | None = None) -> Path:
    path = one_of(live(base), random).with_name("link.parquet")
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


def garbage(base: Path, random: Random | None = None) -> Path:
    name = HiddenName(
        target="part-0", tag=sink_tag("uid-u"), slot=0, attempt="00000000-0000-4000-8000-000000000001"
    )
    path = one_of(live(base), random).with_name(str(name))
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
        target="part-0",
        tag=sink_tag("uid-u"),
        slot=newest(base, U) + 9,
        attempt="00000000-0000-4000-8000-000000000004",
    )
    (base / "k=1" / str(name)).write_bytes(b"x")
    return base / U


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


#: All damage to files.
ALL = (
    tail_lost_by_a_hidden_file, file_lost, file_misplaced, file_resized, file_torn, file_rows,
    file_returned, file_doubled, file_doubled_elsewhere, file_unknown, file_foreign, file_link,
    file_left, base_nested, held_lost, held_changed, pending_lost, garbage, garbage_of_a_put,
    hidden_old,
)  # fmt: skip
