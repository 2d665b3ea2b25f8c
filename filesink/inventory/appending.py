"""How an epoch gets its version: exactly one, no matter how many drivers try, and how often.

Rules:
1. A driver puts a version only after it has seen that all versions up to it belong to other epochs. So two
   drivers that complete the same epoch cannot give it two versions: the second finds the first one's entry.
2. Nothing is ever replaced. A driver that finds a version taken looks what has happened.
3. An entry counts unless a mark had reached its version before. So a driver that has put one looks for marks;
   if its entry is void, it looks for the epoch in what was folded, and puts it again.
4. An epoch is appended when its files are visible and announced, and before it is complete.
5. A path that was written without an inventory gets none by itself: see ``adoption``.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from filesink.errors import FilesinkError, StateCorruptError
from filesink.inventory import chains
from filesink.inventory.entry import Draft, Entry
from filesink.inventory.folding import HISTORY_MS, Folder
from filesink.inventory.mark import Mark, MarkKind, first_mark
from filesink.inventory.names import DIRECTORY, entry_path, mark_path
from filesink.inventory.putting import put
from filesink.inventory.reading import Look, Reader
from filesink.inventory.rows.segments import ADOPT_AGAIN
from filesink.inventory.schemas import put_schema
from filesink.ports import Clock, Ids
from filesink.storage.api import Store

log = logging.getLogger("filesink")

FOLD_EVERY = 64  # versions; folding in steps keeps the cost of an epoch flat


class Inventory:
    """The inventory of one base path, for a driver that commits epochs. For one thread at a time.

    Args:
        store: where it lives.
        clock: of the driver.
        ids: name segments, and the inventory itself.
        fold_every: how many versions are folded at a time; ``None`` for ``FOLD_EVERY``.
        history_ms: how long epochs, and files that are removed, are remembered.
    """

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        ids: Ids,
        fold_every: int | None = None,
        history_ms: int = HISTORY_MS,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._fold_every = fold_every or FOLD_EVERY
        self._reader = Reader(store, clock)
        self._folder = Folder(store, clock=clock, ids=ids, history_ms=history_ms)
        self._known: Look | None = None
        self._was_old = False  # when it was looked for, the path had no inventory, and epochs without one
        self._schemas: set[str] = set()  # that are there

    def newest(self) -> int:
        """The newest version that this driver knows of; 0 without any. For the record to be decided next.

        Looks at the store only as long as it has seen none.
        """
        if self._known is None and not self._was_old:
            self._known = self._reader.look()
        return 0 if self._known is None else self._known.newest

    def begin(self) -> None:
        """Have an inventory there, unless the path was written without one."""
        if self._known is None:
            self._find_or_begin()

    def append(self, draft: Draft, *, floor: int) -> int | None:
        """Give an epoch its version, unless it has one; return the version. Replayable, by any driver.

        Called when everything of the epoch is done except its completion. In the long run that costs one
        file that is put, and one read of a file that does not exist.

        Args:
            draft: the epoch.
            floor: what ``newest`` returned to the driver that decided the epoch, before it did; 0 if that is
                not known.

        Returns:
            ``None`` if the path has no inventory, since it was written before there were any.

        Raises:
            CommitStateUnknown, StorageError: try again.
            StateCorruptError: the inventory is damaged, and the message names the file.
        """
        known = self._known or self._find_or_begin()
        if known is None:
            return None
        self._note_columns(draft)
        checked = floor
        while True:
            if known.newest != checked:
                found, known = self._find(draft, after=checked)
                if found is not None:
                    return found
                checked = known.newest
            if self._put(known, draft, checked + 1) and (now := self._counted(known, checked + 1)):
                return self._is_at(now, checked + 1)
            known = self._look()

    def _find_or_begin(self) -> Look | None:
        """What is known, now that it was looked for; ``None`` as in ``append``."""
        if not self._was_old:
            self._known = self._reader.look()
            if self._known is not None:
                return self._known
            if chains.is_new(self._store):
                put(self._store, mark_path(0), self._first_mark().to_bytes())
                return self._look()
        # Asked after the chains: of two first epochs one may have begun the inventory and be complete by now.
        self._was_old = self._store.read(mark_path(0)) is None
        return None if self._was_old else self._look()

    def _first_mark(self) -> Mark:
        return first_mark(MarkKind.FRESH, now_ms=self._clock.now_ms(), base_id=self._ids.uuid())

    def _look(self) -> Look:
        self._known = self._reader.look()
        if self._known is None:
            raise _gone()
        return self._known

    def _find(self, draft: Draft, *, after: int) -> tuple[int | None, Look]:
        """The version of ``draft`` above ``after`` if it has one; and what counted when it was looked for."""

        def ask(look: Look, entries: list[Entry]) -> tuple[int | None, Look]:
            if look.newest < after:
                raise StateCorruptError(
                    f"{entry_path(look.newest + 1)} is missing, and there was version {after}: maybe "
                    f"{DIRECTORY} is an older copy. Bring it back, or {ADOPT_AGAIN}",
                    code="GAP",
                )
            found = next((one.version for one in entries if one.epoch.nonce == draft.nonce), None)
            if found is None:
                found = self._reader.version_of(look, draft.nonce, after=after)
            if found is None and draft.added and after < look.mark.horizon:
                # It is so old that its own row may be gone; those of its files are not.
                found = self._reader.added_at(look, [file.path for file in draft.added])
            return found, look

        answer = self._reader.steady(ask, after=after)
        if answer is None:
            raise _gone()
        found, self._known = answer
        if found is not None:
            # The driver that put it may have died before its name was durable.
            self._store.sync_directories([DIRECTORY])
        return answer

    def _put(self, known: Look, draft: Draft, version: int) -> bool:
        entry = Entry(version=version, base_id=known.mark.base_id, epoch=draft)
        return put(self._store, entry_path(version), entry.to_bytes())

    def _counted(self, known: Look, version: int) -> Look | None:
        """What counts now, if the entry that stands at ``version`` does; see rule 3."""
        now_ms = self._clock.now_ms()
        if self._reader.is_newest(known):
            return replace(known, newest=version, seen_ms=now_ms)
        now = self._look()
        return now if version > now.mark.version else None

    def _is_at(self, known: Look, version: int) -> int:
        self._known = known
        if version % self._fold_every == 0:
            self.fold()
        return version

    def _note_columns(self, draft: Draft) -> None:
        if draft.columns and draft.schema not in self._schemas:
            put_schema(self._store, draft.columns)
            self._schemas.add(draft.schema)

    def fold(self) -> None:
        """Put what has come since the last mark into segments, unless others are just doing that.

        What goes wrong is told in the log: entries stay, and the next fold has them, too.
        """
        try:
            self._known = self._folder.fold() or self._known
        except FilesinkError as error:
            log.warning("the inventory was not folded, which will be tried again: %s", error)


def _gone() -> StateCorruptError:
    return StateCorruptError(
        f"{DIRECTORY} was there and is gone; bring it back, or {ADOPT_AGAIN}", code="NO_MARK"
    )
