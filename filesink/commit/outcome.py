"""What became of an epoch, for the caller that started it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from filesink.ledger.record import Cause, EpochRecord

C = TypeVar("C")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Generic[C]):
    """What became of an epoch.

    Attributes:
        replayed: an earlier call had decided it and this one wrote nothing.
        decided_ms: the driver's clock when it was decided, milliseconds since 1970 UTC.
        left: committables that should have been removed and could not be yet; later epochs try again.
        newly_left: the part of ``left`` that no earlier epoch has left.
        kept: committables that are not due yet; later epochs remove them.
        behind: by how many versions each export is behind the path, by its name, after the epoch; ``None``
            where nobody knows. Set by the engine, if anything is exported.
    """

    slot: int
    cause: Cause
    rows: int
    committables: Sequence[C]
    replayed: bool = False
    metrics: Mapping[str, int] = field(default_factory=dict)
    decided_ms: int = 0
    left: Sequence[C] = ()
    newly_left: Sequence[C] = ()
    kept: Sequence[C] = ()
    behind: Mapping[str, int | None] = field(default_factory=dict)


def first_outcome(
    record: EpochRecord,
    committables: Sequence[C],
    *,
    metrics: Mapping[str, int],
    left: Sequence[C],
    left_before: Sequence[C],
    kept: Sequence[C],
) -> Outcome[C]:
    """The outcome of an epoch that this driver has written, decided and published."""
    return Outcome(
        slot=record.slot,
        cause=record.cause,
        rows=record.rows,
        committables=committables,
        metrics=metrics,
        decided_ms=record.decided_ms,
        left=left,
        newly_left=[one for one in left if one not in left_before],
        kept=kept,
    )


def later_outcome(record: EpochRecord, committables: Sequence[C]) -> Outcome[C]:
    """The outcome of an epoch that was decided before; this call wrote nothing."""
    return Outcome(
        slot=record.slot,
        cause=record.cause,
        rows=record.rows,
        committables=committables,
        replayed=True,
        decided_ms=record.decided_ms,
    )
