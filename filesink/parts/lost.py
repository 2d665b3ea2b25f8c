"""Decided files whose bytes are gone: found before anything of their epoch is published."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from filesink.errors import StagedDataLost, StorageError
from filesink.naming import slot_of
from filesink.parts.committables import PendingFile
from filesink.ports import TaskRunner
from filesink.storage.api import Store

_SHOWN = 3  # values in a message
log = logging.getLogger("filesink")


def refuse_lost(pending: Sequence[PendingFile], *, store: Store, runner: TaskRunner) -> None:
    """Raise ``StagedDataLost`` if a file is neither hidden nor published."""
    found = runner.run(partial(_is_lost, store), pending)
    lost = [file for file, is_lost in zip(pending, found, strict=True) if is_lost]
    if lost:
        slots = sorted({slot for file in lost if (slot := slot_of(file.staged.path)) is not None})
        paths = [f"'{file.staged.path}'" for file in lost]
        raise StagedDataLost(
            f"{len(lost)} of {len(pending)} files that an epoch has decided on are gone, with "
            f"{sum(file.rows for file in lost)} rows written in epoch {_text(slots)}: {_text(paths)}. "
            "Nothing more of the epoch was published. Restore them, or choose with "
            "FileSink.recover(lost=...) how to go on",
            code="STAGED_DATA_LOST",
        )


def _is_lost(store: Store, file: PendingFile) -> bool:
    try:
        return store.is_lost(file.staged, file.target)
    except StorageError as error:
        log.warning("'%s' could not be looked at; publishing it will tell: %s", file.staged.path, error)
        return False


def _text(values: Sequence[object]) -> str:
    more = ", …" if len(values) > _SHOWN else ""
    return ", ".join(map(str, values[:_SHOWN])) + more
