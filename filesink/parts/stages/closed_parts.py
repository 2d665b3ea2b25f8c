"""The stage between the closing of parts and the epoch's record: what happens to closed parts.

Without compaction each becomes a file of its own. With compaction the strategy's stage lets small parts
wait for each other, as state of the stages, and merges those that are due.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from filesink.api import OF_STAGES, EpochContext, PreCommitStage, Prepared
from filesink.errors import StateError
from filesink.parts.committables import Committable, HeldFile
from filesink.parts.stages.merger import SinkFiles
from filesink.parts.stages.merging import Merging
from filesink.parts.stages.open_parts import Part, parts_of


class CompactStrategy(Protocol):
    """Plans the merging of small files; ``compaction.FileCompactStrategy`` is the one we bring."""

    def stage(self, compactor: Any, files: SinkFiles) -> PreCommitStage[HeldFile, Committable]:
        """The stage that merges with ``compactor``, a combine or what the strategy takes for one.

        Called on the driver, once per driver, and once when the sink is built.

        Raises:
            ConfigError: ``COMPACTION``; the compactor cannot merge files of this format.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """How small files are merged. Sent to the tasks with the sink, but not used there."""

    strategy: CompactStrategy
    compactor: Any


class Waiting(Enum):
    """What a sink without compaction does with parts that one with compaction has left waiting."""

    REFUSED = "refused"
    PUBLISHED = "published"


class MergeParts(PreCommitStage[HeldFile, Committable]):
    """The stage of a sink without compaction: each closed part becomes a file of its own.

    Args:
        files: of the sink.
        waiting: what happens to parts that an earlier sink has left waiting for compaction.
    """

    def __init__(self, files: SinkFiles, waiting: Waiting) -> None:
        self._merging = Merging(files=files)
        self._waiting = waiting

    def is_due(self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]) -> bool:
        """Whether parts wait that must be published."""
        del epoch
        return bool(self._parts(prepared))

    def prepare(
        self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]
    ) -> Prepared[HeldFile, Committable]:
        """See ``PreCommitStage.prepare``."""
        parts = self._parts(prepared)
        if not parts:
            return prepared
        groups = [(part,) for part in parts]
        return self._merging.carry_out(epoch, prepared, groups=groups, waiting=())

    def _parts(self, prepared: Prepared[HeldFile, Committable]) -> list[Part]:
        if prepared.states.get(OF_STAGES) and self._waiting is Waiting.REFUSED:
            raise compaction_off()
        return closed_parts(prepared)


def compaction_off() -> StateError:
    """The error for a sink without compaction over files that wait for it."""
    return StateError(
        "the ledger holds small files that wait for compaction, and this sink is built without it: they "
        "would stay hidden. Nothing was written. Build the sink with .enable_compact(…) again, or have them "
        "published as they are with .disable_compact()",
        code="COMPACTION_OFF",
    )


def closed_parts(prepared: Prepared[HeldFile, Committable]) -> list[Part]:
    """Parts that wait since earlier epochs, then those that were closed in this one."""
    closed = (held for held in prepared.committables if isinstance(held, HeldFile))
    return [*parts_of(prepared.states.get(OF_STAGES, ())), *parts_of(closed)]
