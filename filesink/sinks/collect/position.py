"""Where a client is: everything before it has been taken. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from filesink.errors import ConfigError

_ID: Final = 8  # characters of an inventory's id
_TEXT: Final = re.compile(r"(?P<version>[0-9]{1,12}):(?P<row>[0-9]{1,15})@(?P<inventory>[0-9a-f]{8})?")


@dataclass(frozen=True, slots=True, order=True)
class CollectPosition:
    """What lies before it: all rows of earlier versions of a path, and so many of this one.

    ``str()`` makes a text of it, which ``results(after=…)`` takes as well.

    Attributes:
        version: see ``filesink.open``.
        row: number of rows of that version, in the order in which ``results()`` has them.
        inventory: which versions those are; ``""`` before the first.
    """

    version: int = 0
    row: int = 0
    inventory: str = ""

    @staticmethod
    def of(given: object) -> CollectPosition:
        """``given`` as a user hands it in: one of these, or its text.

        Raises:
            ConfigError: ``BAD_VALUE``.
        """
        text = str(given) if isinstance(given, CollectPosition) else given
        found = _TEXT.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise ConfigError(
                "after must be the position of a client, as results().position tells it, or the text of one, "
                f"such as '12:500@0a1b2c3d'; got {repr(given)[:40]}",
                code="BAD_VALUE",
            )
        return CollectPosition(int(found["version"]), int(found["row"]), found["inventory"] or "")

    def at(self, version: int, row: int) -> CollectPosition:
        """Another place of the same inventory."""
        return CollectPosition(version, row, self.inventory)

    def __str__(self) -> str:
        return f"{self.version}:{self.row}@{self.inventory}"


def short(inventory_id: str) -> str:
    """As much of an inventory's id as a position has."""
    return inventory_id[:_ID]
