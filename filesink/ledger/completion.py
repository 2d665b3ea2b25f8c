"""What stands in ``<slot>.complete``: which record is done, and what of it could not be removed.

A mark without these would be believed wherever it lies: one that was put, copied or restored into a slot
before its record would have the rows of that epoch swept as if they were visible.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from filesink.errors import StateCorruptError
from filesink.framing import check_field, frame, from_json, to_json, unframe
from filesink.ledger.record import EMPTY, EpochRecord, Section

COMPLETION_VERSION = 1
_LAST_UNMARKED = 2  # records up to this version are completed by an empty file


class End(Enum):
    """What became of the epoch."""

    DONE = "done"
    TAKEN_BACK = "taken back"


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """The end of one epoch.

    Attributes:
        nonce: of its record.
        left: committables that are still to be removed, for the next epoch of the chain; mostly ``EMPTY``.
        end: see there.
    """

    nonce: str
    left: Section = EMPTY
    end: End = End.DONE

    def to_bytes(self) -> bytes:
        """Durable form."""
        head = {"nonce": self.nonce, "end": self.end.value, "left": self.left.version}
        return frame("completion", COMPLETION_VERSION, to_json(head) + b"\n" + self.left.data)

    @staticmethod
    def from_bytes(data: bytes, *, where: str) -> Completion:
        """What ``to_bytes`` was called on.

        Raises:
            StateCorruptError, StateVersionError: see ``filesink.framing.unframe``.
        """
        _, payload = unframe("completion", COMPLETION_VERSION, data, where=where)
        line, _, left = payload.partition(b"\n")
        head = from_json(line, where=where)
        try:
            check_field("nonce", head["nonce"], str)
            check_field("left", head["left"], int)
            return Completion(
                nonce=head["nonce"], end=End(head["end"]), left=Section(head["left"], left) if left else EMPTY
            )
        except (TypeError, ValueError, KeyError) as error:
            raise StateCorruptError(f"{where} is malformed: {type(error).__name__}", code="JSON") from error


def completion_of(record: EpochRecord, data: bytes, *, where: str) -> Completion:
    """What the ``.complete`` file of ``record`` says.

    Raises:
        StateCorruptError: ``FOREIGN``, it belongs to another record; or it is damaged.
    """
    if not data and record.version <= _LAST_UNMARKED:
        return Completion(nonce=record.nonce)
    found = Completion.from_bytes(data, where=where)
    if found.nonce != record.nonce:
        raise StateCorruptError(
            f"{where} does not belong to the record beside it: it was copied, or put there by hand. Nothing "
            "was published or removed. Restore the directory from a backup; or, if the rows of that epoch "
            "are not visible, remove this file and call recover()",
            code="FOREIGN",
        )
    return found
