"""How far a receiver was told: files beside the path whose names say it all, created if absent.

    _filesink/_notifications/<name>/<version>-<inventory>.told    everything up to this version was taken

Rules:
1. A version is noted when the receiver has taken it and all before it. So who dies between the two sends it
   again, and nobody leaves one out.
2. The greatest counts. So it makes no difference in which order two drivers come; what is below goes.
3. ``<inventory>`` is the beginning of its id: one that was removed and written anew is told of anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from filesink.errors import StorageError
from filesink.framing import frame, to_json
from filesink.naming import LEDGER_ROOT
from filesink.sink_directory.directory import SinkDirectory
from filesink.storage.api import Kind

_FORM: Final = 1
_ID: Final = 8  # characters of an inventory's id
_TOLD: Final = re.compile(r"([0-9]{12})-([0-9a-f]{8})\.told")
_HIDDEN: Final = re.compile(r"\.(?P<target>[0-9a-f-]+\.told)\.")


class Cursor:
    """That of one receiver. Looks at the store when it is made.

    Args:
        directory: the path.
        name: of the receiver.
    """

    def __init__(self, directory: SinkDirectory, name: str) -> None:
        self._store = directory.store
        self._inventory = directory.inventory_id[:_ID]
        self._directory = f"{LEDGER_ROOT}/_notifications/{name}"
        listed = self._store.list(self._directory)
        self._names = [entry.name for entry in listed if entry.kind is Kind.FILE]
        self.version = max(self._versions(), default=None)

    def note(self, version: int) -> None:
        """The receiver has taken everything up to ``version``.

        Raises:
            StorageError: it is not noted, or nobody knows.
        """
        if version <= (self.version or 0):
            return
        name = f"{version:012d}-{self._inventory}.told"
        # The content is for people who look into it.
        self._store.put_if_absent(f"{self._directory}/{name}", frame("told", _FORM, to_json({"name": name})))
        below = [old for old in self._names if self._is_below(old, version)]
        self._names = [name]
        self.version = version
        with suppress(
            StorageError
        ):  # they count for nothing any more; what is left goes with the next driver
            for old in below:
                self._store.discard(f"{self._directory}/{old}")

    def _is_below(self, name: str, version: int) -> bool:
        """Whether ``name`` is that of an older cursor, of another inventory's, or what a crash has left."""
        hidden = _HIDDEN.match(name)
        found = _TOLD.fullmatch(hidden["target"] if hidden else name)
        return found is not None and (found[2] != self._inventory or int(found[1]) < version)

    def _versions(self) -> Iterable[int]:
        ours = (found for name in self._names if (found := _TOLD.fullmatch(name)))
        return (int(found[1]) for found in ours if found[2] == self._inventory)
