"""How a path is, at one moment: what a person on call asks first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from filesink.errors import SecurityError, StateError
from filesink.inventory.rows.files import FILES
from filesink.inventory.snapshots import Files
from filesink.parts.committables import ReplacedFile
from filesink.sink_directory.epochs import Epoch, epochs_in, moment
from filesink.sink_directory.sink_states import (
    ChainLook,
    HeldPart,
    SinkState,
    chain_ids,
    look_at,
    replaced_by_overwrites,
)
from filesink.sink_directory.site import Site
from formats.arrow import pc


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStatus:
    """How far a path is, and what waits. Made by ``SinkDirectory.status``.

    What cannot be read is left out, and ``damage`` says why.

    Attributes:
        path: the base path.
        version: the newest, see ``Epoch``; ``None`` if the inventory does not say.
        visible: when that epoch was visible, in UTC; ``None`` before the first, or if nobody remembers.
        files, bytes: of the newest version; 0 if the inventory cannot be read.
        rows: as well; ``None`` if that of any file is not known.
        buckets: number of directories with files.
        small_files, small_bytes: files that are smaller than ``small_below``, and their size together.
        small_below: in bytes.
        sinks: the state of each chain that can be read.
        held: rows that no reader sees yet, by chain and directory.
        kept_files, kept_bytes: files that overwrites have replaced and that stay for readers who hold a
            snapshot.
        kept_until: when the last of them may go, in UTC; ``None`` if there are none.
        damage: a sentence about each chain that cannot be read, or lacks the newest epoch of the inventory,
            and about the inventory if that cannot be read. Files are not looked for; see ``filesink.fsck``.
    """

    path: str
    version: int | None
    visible: datetime | None
    files: int
    rows: int | None
    bytes: int
    buckets: int
    small_files: int
    small_bytes: int
    small_below: int
    sinks: tuple[SinkState, ...]
    held: tuple[HeldPart, ...]
    kept_files: int
    kept_bytes: int
    kept_until: datetime | None
    damage: tuple[str, ...]

    @property
    def small_share(self) -> float:
        """Which part of the files is small, from 0 to 1; 0 if there are none."""
        return self.small_files / self.files if self.files else 0.0


def status_of(site: Site, small_below: int) -> PathStatus:
    """What can be read now."""
    damage: list[str] = []
    chains = list(_chains(site, damage))
    live = _live(site, damage)
    rows = FILES.empty_table() if live is None else live.rows
    small = rows["size"].filter(pc.less(rows["size"], small_below))
    kept = _kept(site)
    newest = None if live is None else _newest(site, live.version)
    if newest is not None:
        damage += _lost_tail(site, newest, {chain.state.id: chain.state.slot for chain in chains})
    return PathStatus(
        path=site.base_path,
        version=None if live is None else live.version,
        visible=None if newest is None else newest.visible,
        files=rows.num_rows,
        rows=None if live is None or rows["rows"].null_count else _sum(rows["rows"]),
        bytes=_sum(rows["size"]),
        buckets=len(pc.unique(rows["bucket"].cast(pa.string()))),
        small_files=len(small),
        small_bytes=_sum(small),
        small_below=small_below,
        sinks=tuple(chain.state for chain in chains),
        held=tuple(sorted((held for chain in chains for held in chain.held), key=_place)),
        kept_files=len(kept),
        kept_bytes=sum(file.size for file in kept),
        kept_until=max((moment(file.until_ms) for file in kept), default=None),
        damage=tuple(damage),
    )


def _chains(site: Site, damage: list[str]) -> Iterator[ChainLook]:
    for sink_id in chain_ids(site.store):
        try:
            yield look_at(site.store, sink_id)
        except (StateError, SecurityError) as error:  # told; others may be whole
            damage.append(error.message)


def _kept(site: Site) -> list[ReplacedFile]:
    """What is left of overwrites, and not due."""
    try:
        left = replaced_by_overwrites(site.store)
    except (StateError, SecurityError):  # ``_chains`` tells
        return []
    now_ms = site.clock.now_ms() if left else 0
    return [file for file in left if not file.is_due(now_ms)]


def _live(site: Site, damage: list[str]) -> Files | None:
    try:
        return site.snapshots().files_at(None)
    except (StateError, SecurityError) as error:  # told; the chains say how far they are all the same
        damage.append(error.message)
        return None


def _newest(site: Site, version: int) -> Epoch | None:
    """The epoch of ``version``. Adoptions and old epochs may be forgotten."""
    try:
        newest = list(epochs_in(site.snapshots().epochs(max(0, version - 1))))
    except StateError:  # nobody remembers, or it was damaged meanwhile: all else is known
        return None
    return next((epoch for epoch in newest if epoch.version == version), None)


def _lost_tail(site: Site, newest: Epoch, slots: Mapping[str, int]) -> Iterator[str]:
    """A sentence if the ledger of the newest epoch lacks it; ``slots`` are older than the inventory."""
    if not newest.sink or slots.get(newest.sink, -1) >= newest.slot:
        return
    try:
        slot = look_at(site.store, newest.sink).state.slot
    except (StateError, SecurityError):  # ``_chains`` has told
        return
    if slot < newest.slot:
        ends = f"ends with epoch {slot}" if slot >= 0 else "is gone"
        yield (
            f"the inventory has epoch {newest.slot} of '{newest.sink}', whose ledger {ends}: it was "
            "removed, or is an older copy. A restart may write again what is there"
        )


def _sum(values: pa.ChunkedArray[Any]) -> int:
    return int(pc.sum(values).as_py() or 0)


def _place(held: HeldPart) -> tuple[str, str, datetime]:
    return held.sink, held.bucket, held.since
