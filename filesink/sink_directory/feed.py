"""What followers of a path get: an entry for each version, in their order.

Rules:
1. Entries are values: two followers who ask at different times get equal ones, folded or not.
2. While a follower works on entries, nothing is held open. When it asks for more, the path is looked at anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from filesink.errors import IdentityError
from filesink.inventory.versions import Versions
from filesink.sink_directory.epochs import Epoch, epochs_in
from filesink.sink_directory.live_files import COLUMNS, LiveFiles
from filesink.sink_directory.site import Site
from filesink.sink_directory.waiting import Waiting


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FeedEntry:
    """What one epoch has changed. Made by ``SinkDirectory.follow``.

    Attributes:
        inventory_id: see ``SinkDirectory``. With the version it names the entry for ever, anywhere.
        epoch: what it was for, when it was decided and visible, the offsets of its input.
        added: files that became visible with it, in the order of their paths. None at an adoption, of kind
            ``adopted``: take ``SinkDirectory.snapshot`` of its version instead.
        removed: paths of files that it has taken away, in order. A file that stays for those who hold a
            snapshot, see ``with_reader_grace``, may be named again by later entries.
    """

    inventory_id: str
    epoch: Epoch
    added: LiveFiles
    removed: tuple[str, ...]

    @property
    def version(self) -> int:
        """That of its epoch: the next entry has the next one."""
        return self.epoch.version

    @property
    def id(self) -> str:
        """``<inventory id>/<version>``: the same whenever it is read, and of no other entry."""
        return f"{self.inventory_id}/{self.version}"

    def __repr__(self) -> str:
        return f"<FeedEntry {self.version}: {len(self.added):,} added, {len(self.removed):,} removed>"


def entries(site: Site, after: int | None, until: int | None, wait_ms: int | None) -> Iterator[FeedEntry]:
    """See ``SinkDirectory.follow``."""
    snapshots, waiting = site.snapshots(), Waiting(site, wait_ms)
    place, base_id = after, ""
    while until is None or place is None or place < until:
        looked_ms = site.clock.now_ms()
        found = snapshots.versions(place, until)
        base_id = _same(base_id, found, site)
        for entry in _of(found):
            yield entry
            place = entry.version
        if found.epochs.num_rows:
            waiting.begin()
        place = found.newest if place is None else place
        if place >= found.newest and not waiting.wait(found.newest, found.mark, looked_ms=looked_ms):
            return


def _same(base_id: str, found: Versions, site: Site) -> str:
    if base_id and found.base_id != base_id:
        raise IdentityError(
            f"'{site.base_path}' was removed and written anew while it was followed, and its versions begin "
            "again: follow it from the start",
            code="OTHER_INVENTORY",
        )
    return found.base_id


def _of(found: Versions) -> Iterator[FeedEntry]:
    added, removed = _ByVersion(found.files, "added"), _ByVersion(found.files, "removed")
    for epoch in epochs_in(found.epochs):
        yield FeedEntry(
            inventory_id=found.base_id,
            epoch=epoch,
            added=LiveFiles(added.of(epoch.version).select(list(COLUMNS))),
            removed=tuple(map(str, removed.of(epoch.version)["path"].to_pylist())),
        )


class _ByVersion:
    """Rows of files, to be found by a column that is a version."""

    def __init__(self, files: pa.Table, column: str) -> None:
        self._rows = files.sort_by([(column, "ascending"), ("path", "ascending")])
        versions = self._rows[column].drop_null()
        self._versions = versions.to_numpy()  # nulls are last

    def of(self, version: int) -> pa.Table:
        """The rows of ``version``, in the order of their paths."""
        first, last = np.searchsorted(self._versions, [version, version + 1])
        return self._rows.slice(first, last - first)
