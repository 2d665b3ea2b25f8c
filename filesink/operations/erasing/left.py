"""Where rows may still be that were erased from the live files: beside them, hidden, or not yet published.

Rules:
1. Every file below the path is looked at, those that readers skip as well; but for ledgers, and for what lies
   below another base path inside.
2. What nobody can read may have such rows, and so may an upload that is not complete.
3. Logs of exports name files, numbers of rows and values of directories, and no other value. A log of Delta
   with statistics was made by somebody else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from filesink.errors import StateError, StorageError
from filesink.inventory.chains import at_work, left_files, superseded
from filesink.ledger.identity import EXCLUSIVE
from filesink.ledger.ledger import Ledger
from filesink.ledger.sweep import hidden_of
from filesink.naming import LEDGER_ROOT, is_data, join, parse_part, parse_upload
from filesink.operations.erasing.parquet_files import ParquetFiles
from filesink.operations.replacing.epochs import Seen
from filesink.parts.committables import HeldFileCodec
from filesink.parts.recorded_paths import check_record
from filesink.sink_directory.live_files import LiveFile
from filesink.sink_directory.sink_states import chain_ids
from filesink.storage.api import Entry, Kind, Store
from formats.arrow import pc

#: What is not clean, and what to do about it.
ADVICE: Final[Mapping[str, str]] = {
    "live": "it became visible meanwhile, or its epoch is not complete: recover, then erase again",
    "held": "it waits for a later epoch: finish the sink, or wait until it is visible, then erase again",
    "hidden": "a driver is writing it, or has died: stop the writers and sweep, then erase again",
    "replaced": "it stays for readers of old versions, or could not be removed: wait, or see the log",
    "returned": "it was brought back, or copied here: no epoch removes it. Move it away, then erase again",
    "stranger": "it is no file of a sink: remove it, or its rows, by hand, or move it away, then erase again",
    "dead letter": "records that could not be written: remove it by hand, then erase again",
    "log": "another program has written values of columns into a table's log: remove them, then erase again",
    "statistics": "the inventory has values of its columns, until its history expires",
}


#: Files of logs, by the names that exports give them; whatever else lies beside them is a stranger.
_LOG: Final = re.compile(
    r"_delta_log/(?:\d{20}\.json|_last_checkpoint|\d{20}\.checkpoint(?:\.[0-9a-f-]+)*\.(?:parquet|json)"
    r"|_sidecars/[^/]+\.parquet)|_manifests/(?:snapshots/)?\d{12}\.json"
    r"|_spark_metadata/\d+(?:\.compact)?|_iceberg/[^/]+\.(?:avro|metadata\.json)"
)
_STATISTICS: Final = "minValues"  # in a log of Delta, of columns that it has values of


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """Something that is not clean yet.

    Attributes:
        kind: one of ``ADVICE``.
        path: relative to the base path.
        rows: how many the condition names; ``None`` if nobody knows.
    """

    kind: str
    path: str
    rows: int | None

    @property
    def advice(self) -> str:
        """What to do about it."""
        return ADVICE[self.kind]


def left_beside(seen: Seen, files: ParquetFiles) -> Iterator[Left]:
    """Each file with such rows that is not live: hidden, held, replaced, a dead letter or a stranger's."""
    live = {file.path for file in seen.snapshot.files}
    held = _held(seen.store)
    entries = list(_everything(seen.store))
    going = _going(
        seen.store
    )  # after the listing: of what is not named by then, an epoch was complete before
    for directory, entry in entries:
        path = join(directory, entry.name)
        kind = "" if path in live else _kind(directory, entry, held, going)
        if kind and (entry.kind is not Kind.FILE or parse_upload(entry.name)):
            yield Left(kind=kind, path=path, rows=None)
        elif kind and _LOG.fullmatch(path):
            yield from _logged(seen.store, path)
        elif kind:
            yield from _judged(kind, path, directory, files)


def left_live(live: Sequence[LiveFile], files: ParquetFiles) -> Iterator[Left]:
    """Live files that still have such rows. This is the proof: they are read again."""
    for file in live:
        yield from _judged("live", file.path, file.bucket, files)


def left_in_inventory(erased: Sequence[LiveFile]) -> Iterator[Left]:
    """What the inventory goes on saying of columns of files that are gone."""
    for file in erased:
        if file.statistics:
            yield Left(kind="statistics", path=file.path, rows=None)


def _judged(kind: str, path: str, directory: str, files: ParquetFiles) -> Iterator[Left]:
    rows: int | None
    try:
        rows = files.matching(path, directory)
    except FileNotFoundError:
        return  # removed meanwhile
    except (StateError, StorageError):  # see rule 2
        rows = None
    if rows != 0:
        yield Left(kind=kind, path=path, rows=rows)


def _logged(store: Store, path: str) -> Iterator[Left]:
    """A log of Delta that has values; see rule 3."""
    if path.startswith("_delta_log/") and _has_statistics(path, store.read(path) or b""):
        yield Left(kind="log", path=path, rows=None)


def _has_statistics(path: str, data: bytes) -> bool:
    """Whether a log of Delta has values of columns; of a checkpoint that cannot be read nobody knows."""
    if not path.endswith(".parquet"):
        return _STATISTICS.encode() in data
    try:
        checkpoint = pq.read_table(pa.BufferReader(data))
    except (OSError, pa.ArrowException):
        return bool(data)
    return any(_has_values(checkpoint[name]) for name in ("add", "remove") if name in checkpoint.column_names)


def _has_values(actions: pa.ChunkedArray[Any]) -> bool:
    """Whether some of a checkpoint's actions have statistics, or may have some in a strange form."""
    if not pa.types.is_struct(actions.type) or _STATISTICS in str(actions.type):
        return True
    text = next((field.type for field in actions.type if field.name == "stats"), pa.null())
    if pa.types.is_null(text):
        return False
    if not (pa.types.is_string(text) or pa.types.is_large_string(text)):
        return True
    found = pc.any(pc.match_substring(pc.struct_field(actions, "stats"), _STATISTICS))
    return bool(found.as_py())


def _everything(store: Store) -> Iterator[tuple[str, Entry]]:
    """Directory and entry of all that is no directory; see rule 1."""
    waiting = [""]
    while waiting:
        found = zip(waiting, store.runner.run(store.list, waiting), strict=True)
        waiting = []
        for directory, entries in found:
            below = [entry.name for entry in entries if entry.kind is Kind.DIRECTORY]
            if directory and LEDGER_ROOT in below:
                continue
            waiting += [join(directory, name) for name in below if name != LEDGER_ROOT]
            yield from ((directory, entry) for entry in entries if entry.kind is not Kind.DIRECTORY)


def _kind(directory: str, entry: Entry, held: set[str], going: set[str]) -> str:
    """What a file is that is not live; ``""`` for an empty one, such as a mark of success."""
    if join(directory, entry.name) in held:
        return "held"
    if hidden_of(directory, entry) is not None:
        return "hidden"
    if entry.kind is Kind.FILE and not entry.size:
        return ""
    if not is_data(directory):
        return "dead letter"
    if parse_part(entry.name) is None:
        return "stranger"
    return "replaced" if join(directory, entry.name) in going else "returned"


def _going(store: Store) -> set[str]:
    """Paths of files that are not live and that an epoch removes, sooner or later, or makes live."""
    left = {file.path for file in left_files(Ledger(store, EXCLUSIVE, check=check_record))}
    busy = (one.paths | one.replaced for one in at_work(store).values())
    return left.union(superseded(store), *busy)


def _held(store: Store) -> set[str]:
    found: set[str] = set()
    for sink_id in chain_ids(store):
        head = Ledger(store, sink_id, check=check_record).history.newest()
        states = () if head is None else head.record.states.values()
        found |= {file.staged.path for section in states for file in section.decode(HeldFileCodec())}
    return found
