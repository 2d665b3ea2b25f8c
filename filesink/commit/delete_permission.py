"""Checks, before anything is written, that an epoch which removes files may delete.

A store may let a job write but not delete. Then an overwrite would show old rows beside the new ones, and
the hidden inputs of a merge would stay for ever.
"""

from __future__ import annotations

from filesink.api import EpochContext, PreCommitStage, Prepared
from filesink.errors import ConfigError
from filesink.parts.committables import Committable, HeldFile
from filesink.save_mode import SaveMode
from filesink.storage.api import Removal, Store


def check_removal(store: Store, who: str) -> None:
    """Raise ``ConfigError[NO_REMOVAL]`` if ``store`` lets no file be removed; ``who`` needs it."""
    if store.removal() is Removal.REFUSED:
        raise ConfigError(
            f"{who} removes files, and these credentials may not delete below the base path. Nothing was "
            "written. Allow it (s3:DeleteObject, or Azure's 'delete'), or only append, without compaction",
            code="NO_REMOVAL",
        )


class RequireRemoval(PreCommitStage[HeldFile, Committable]):
    """Refuses a batch write that replaces files where none can be removed."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def begin(self, epoch: EpochContext) -> None:
        """See ``PreCommitStage.begin``."""
        if epoch.supersedes or epoch.mode in {SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS}:
            check_removal(self._store, f"mode '{epoch.mode.value}'")

    def prepare(
        self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]
    ) -> Prepared[HeldFile, Committable]:
        """See ``PreCommitStage.prepare``: nothing is changed."""
        del epoch
        return prepared
