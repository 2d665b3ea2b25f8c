"""The last look before an epoch is decided: what it is about to name is there, as it was closed."""

from __future__ import annotations

from functools import partial
from typing import assert_never

from filesink.api import EpochContext, PreCommitStage, Prepared
from filesink.errors import InternalError, SecurityError, StagedDataLost
from filesink.naming import slot_of
from filesink.parts.committables import (
    Committable,
    DiscardFile,
    HeldFile,
    PendingFile,
    ReplacedFile,
    SupersededFile,
    UndoneFile,
    Watermark,
)
from filesink.storage.api import Store
from filesink.storage.retrying import RetryingStore


class VerifyStage(PreCommitStage[HeldFile, Committable]):
    """The last stage: every file that this epoch is about to name is there, as it was closed.

    Catches tasks that wrote to a disk which the driver does not see.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._runner = store.runner

    def prepare(
        self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]
    ) -> Prepared[HeldFile, Committable]:
        """Look at each new file; see ``PreCommitStage.prepare``."""
        new: list[PendingFile | HeldFile] = []
        for committable in prepared.committables:
            match committable:
                case PendingFile():
                    new.append(committable)
                case HeldFile():
                    raise InternalError(
                        "a closed part was not put together before its epoch; please report this", code="HELD"
                    )
                case DiscardFile() | ReplacedFile() | SupersededFile() | UndoneFile() | Watermark():
                    pass
                case _:
                    assert_never(committable)
        for held in (held for states in prepared.states.values() for held in states):
            slot = slot_of(held.staged.path)
            if slot is None:
                raise SecurityError(f"'{held.staged.path}' is not a name of ours", code="FOREIGN_FILE")
            if slot == epoch.slot:
                new.append(held)
        store = RetryingStore(self._store, epoch.clock)
        self._runner.run(partial(self._verify, store, epoch.slot), new)
        return prepared

    def _verify(self, store: Store, slot: int, file: PendingFile | HeldFile) -> None:
        is_new = slot_of(file.staged.path) in {None, slot}
        try:
            store.verify(file.staged)
        except StagedDataLost as error:
            if not is_new:
                raise  # held since an earlier epoch
            raise StagedDataLost(
                f"a task reported '{file.staged.path}' and the driver does not find it as it was closed. "
                "On a cluster of several hosts the base path must be on storage that all of them share. "
                f"Nothing was committed. ({error.message})",
                code="NOT_SHARED",
            ) from error
