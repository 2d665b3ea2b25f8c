"""Finished files whose rows are in a merged one, and that stay until readers have had time.

Rules:
1. The newest record of offline compaction names all of them, not only those of its own epoch.
2. A file is superseded only while one that holds its rows is there; else it is data again. There may
   be several, of which the last one was made of those before.
3. One that was changed since it was listed, as all are in a copy of the directory, is not ours to
   remove. It stays superseded until somebody else removes it, or its rows would be there twice.
4. A grace begins when the file that holds the rows is there: after a long merge, or a crash, that may be
   long after the start of its epoch, and until then readers were given the inputs.
5. A reader that lists files and then asks for superseded ones drops those that a file of its list
   supersedes. So it reads each row once, however far apart the two steps are.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from filesink.arguments import has_no_bytes
from filesink.errors import ConfigError
from filesink.inventory.chains import left_files
from filesink.ledger.directory import COMPACTION, ledger_ids
from filesink.ledger.identity import EXCLUSIVE
from filesink.ledger.ledger import Ledger
from filesink.ledger.nearby import nothing_at
from filesink.ledger.record import EpochRecord, OfflineCompaction
from filesink.ledger.sweep import visible
from filesink.naming import LEDGER_ROOT, join, parent
from filesink.parts.committables import CommittableCodec, ReplacedFile, SupersededFile
from filesink.parts.recorded_paths import check_record
from filesink.spark.input.s3a import of_active_session
from filesink.storage.address import StoreAddress
from filesink.storage.api import Entry, Kind, Store
from filesink.storage.base_path import check_base_path

log = logging.getLogger("filesink")

_NEVER = (1 << 63) - 1  # milliseconds since 1970


def files(
    base_path: str | Path,
    *,
    bucket: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> list[str]:
    """The files that hold each row once, for readers that start while merged inputs still exist.

    They can be read for ``reader_grace`` from now on: ``spark.read.parquet(*compaction.files(path))``.

    Args:
        base_path: of the sinks.
        bucket: the only directory to look at; ``None`` for all, ``""`` for the base path itself.
        storage_options: of the store, as ``with_storage_options`` takes them.

    Raises:
        ConfigError: ``NO_SINK``, this is not the base path of one; ``NO_DIRECTORY``, there is no such bucket.
    """
    checked = check_base_path(base_path)
    options = of_active_session(checked, storage_options)
    store = written(StoreAddress(base_path=checked, storage_options=options), bucket)
    return [f"{checked}/{path}" for path in current(store, bucket)]


def check_bucket(bucket: object) -> str | None:
    """``bucket`` if it is one, as users name it.

    Raises:
        ConfigError: ``BAD_VALUE``.
    """
    if bucket is not None and (not isinstance(bucket, str) or has_no_bytes(bucket)):
        raise ConfigError(
            "bucket must be the path of a directory below the base path, such as 'day=2024-01-01'; got "
            f"{repr(bucket)[:40]}",
            code="BAD_VALUE",
        )
    return bucket


def written(address: StoreAddress, bucket: object) -> Store:
    """The store, if a sink has written there; nothing else may get a ledger, or be read by one.

    One in the directory of a bucket would make it a base path of its own, hidden from its sink for ever.
    What is superseded there is known above it only. A ``bucket`` that is none is refused, too.

    Raises:
        ConfigError: ``NO_SINK``, ``NO_DIRECTORY`` or ``BAD_VALUE``.
    """
    checked = check_bucket(bucket)
    store = address()
    if not ledger_ids(store):
        raise nothing_at(
            address, advice="Pass the base path of the sink; for one directory below it, name that as bucket"
        )
    if checked and not store.list(checked.removesuffix("/")):
        beside, _, name = checked.removesuffix("/").rpartition("/")
        names = [entry.name for entry in store.list(beside) if entry.kind is Kind.DIRECTORY]
        like = [join(beside, found) for found in get_close_matches(name, names)]
        raise ConfigError(
            f"there is no directory '{checked}' with files below '{address.base_path}'; nothing was changed. "
            + (
                f"Did you mean {' or '.join(map(repr, like))}?"
                if like
                else "Name one that a sink has written"
            ),
            code="NO_DIRECTORY",
        )
    return store


def current(store: Store, bucket: str | None) -> list[str]:
    """Paths of the visible files that are not superseded by another visible one, in order."""
    earlier = superseded(store)  # of these, the last ones may be removed while files are listed
    replaced = {file.path for file in overwritten(store)}
    seen = visible(store, None if bucket is None else [bucket.removesuffix("/")])
    there = {path for path, entry in seen if entry.kind is Kind.FILE}
    dropped = {file.path for file in (*earlier, *superseded(store)) if file.by in there}
    replaced |= {file.path for file in overwritten(store)}
    return sorted(there - dropped - replaced)


def overwritten(store: Store) -> list[ReplacedFile]:
    """What complete overwrites have replaced and left, as for readers who hold a snapshot; there or not."""
    return left_files(Ledger(store, EXCLUSIVE, check=check_record))


def superseded(store: Store) -> list[SupersededFile]:
    """What the newest record of offline compaction names, there or not."""
    return _named(_newest(store))


def _named(record: EpochRecord | None) -> list[SupersededFile]:
    if record is None:
        return []
    found = record.committables.decode(CommittableCodec())
    return [file for file in found if isinstance(file, SupersededFile)]


def _newest(store: Store) -> EpochRecord | None:
    exclusive = Ledger(store, EXCLUSIVE, check=check_record)
    record = next(iter(exclusive.history.publishing()), None)  # one at most, in a chain that is not open
    if record is None or not isinstance(record.cause, OfflineCompaction):
        # Its copy is made before an epoch is complete, so none is missed.
        head = exclusive.beside(COMPACTION).head()
        return None if head is None else head.record
    return record


def outstanding(store: Store) -> list[SupersededFile]:
    """The superseded files that exist, each with the file that holds its rows; changed ones never expire.

    They have what is left of their graces since the epoch that names them was carried through.
    """
    record = _newest(store)
    named = _named(record)
    listing = _entries(store, sorted({parent(file.path) for file in named}))
    there = [file for file in named if file.by in listing and file.path in listing]
    changed = {file.path for file in there if not _is_same(listing[file.path], file)}
    if changed:
        log.warning(
            "'%s' and %d other merged files were changed or copied since: compaction does not remove them, "
            "though other files have their rows. Remove by hand what compaction.files() does not name",
            min(changed),
            len(changed) - 1,
        )
    late = _lateness_ms(store, record)
    return [
        replace(file, until_ms=_NEVER if file.path in changed else file.until_ms + late) for file in there
    ]


def _lateness_ms(store: Store, record: EpochRecord | None) -> int:
    """From the start of the record's epoch to the moment when all its files were visible."""
    if record is None:
        return 0
    name = f"{record.slot:012d}.complete"
    found = [entry.mtime_ms for entry in store.list(f"{LEDGER_ROOT}/{COMPACTION}") if entry.name == name]
    return max([0, *(mtime_ms - record.decided_ms for mtime_ms in found)])


def _entries(store: Store, directories: Iterable[str]) -> dict[str, Entry]:
    return {
        join(directory, entry.name): entry for directory in directories for entry in store.list(directory)
    }


def _is_same(entry: Entry, file: SupersededFile) -> bool:
    return (entry.size, entry.version) == (file.size, file.version)
