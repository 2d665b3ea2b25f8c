"""Notes in a target that say it is no whole copy yet, and whose.

Rules:
1. Each call has a note of its own, and removes those of calls before it.
2. A call looks whether its note is there just before it makes anything visible or removes anything. If it is
   gone, another call has begun: that one may be done by now, and a sink be at work there.
"""

from __future__ import annotations

from typing import Final

from filesink.errors import ConcurrentDriverError, ConfigError
from filesink.framing import to_json
from filesink.naming import LEDGER_ROOT, join
from filesink.storage.api import Kind, Store

_PREFIX: Final = ".copy."  # and the id of a call


class Note:
    """The note of one call.

    Args:
        target: where it is.
        unique: id of the call.
        names: of source and target, for messages.
    """

    def __init__(self, target: Store, unique: str, *, names: tuple[str, str]) -> None:
        self.path = join(LEDGER_ROOT, f"{_PREFIX}{unique}")
        self._target = target
        self._source_path, self._target_path = names

    def earlier(self, inventory_id: str) -> list[str]:
        """The notes of calls that were interrupted.

        Raises:
            ConfigError: ``TARGET_NOT_EMPTY``; there is something else.
        """
        notes, data = self._there(), to_json({"inventory": inventory_id})
        if self._is_used() and not (notes and all(self._target.read(note) == data for note in notes)):
            raise ConfigError(
                f"'{self._target_path}' is not empty, and no interrupted copy of '{self._source_path}'. "
                "Nothing was copied. Name a place where nothing is",
                code="TARGET_NOT_EMPTY",
            )
        return notes

    def put(self, inventory_id: str) -> None:
        """From here on calls whose notes were there have to stop.

        Raises:
            ConfigError: as from ``earlier``.
            ConcurrentDriverError: another call begins as well.
        """
        earlier = self.earlier(inventory_id)
        self._target.prepare()
        self._target.put_if_absent(self.path, to_json({"inventory": inventory_id}))
        if {*self._there()} - {*earlier} != {self.path}:
            self.remove()
            raise self._overtaken()
        for note in earlier:
            self._target.delete(note)

    def check(self) -> None:
        """See rule 2.

        Raises:
            ConcurrentDriverError: another call has begun.
        """
        if self._target.read(self.path) is None:
            raise self._overtaken()

    def remove(self) -> None:
        """The copy is whole."""
        self._target.delete(self.path)

    def _there(self) -> list[str]:
        names = [entry.name for entry in self._target.list(LEDGER_ROOT)]
        return [join(LEDGER_ROOT, name) for name in names if name.startswith(_PREFIX)]

    def _is_used(self) -> bool:
        """Whether anything is there but what ``prepare`` and a note leave half done."""
        names = {entry.name for entry in self._target.list("")}
        below = self._target.list(LEDGER_ROOT) if names == {LEDGER_ROOT} else []
        is_begun = all(entry.kind is Kind.FILE and entry.name[0] == "." for entry in below)
        return bool(names) and not (names == {LEDGER_ROOT} and is_begun)

    def _overtaken(self) -> ConcurrentDriverError:
        return ConcurrentDriverError(
            f"another call copies '{self._source_path}' to '{self._target_path}', or has done so. This one "
            "stops",
            code="CONCURRENT_DRIVER",
        )
