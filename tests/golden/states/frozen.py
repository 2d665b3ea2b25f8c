"""The frozen states as tests take them: unpacked, with what is known of them, and with a sink of today."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filesink import FileSinkBuilder
from tests.golden.states import pieces, reading
from tests.golden.states.archive import STATES, unpack


@dataclass(frozen=True, slots=True, kw_only=True)
class Txn:
    """A batch write with a ``txn_id``."""

    txn_id: str
    mode: str
    ids: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """One state. ``number`` and ``name`` say which; ``known`` is as ``makers.State`` says."""

    number: str
    name: str
    known: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.number}-{self.name}"

    def unpacked(self, directory: Path) -> Path:
        """A copy of its own for one test, in ``directory``."""
        unpack(STATES / self.number / f"{self.name}.tar.gz", directory / "sink")
        return directory / "sink"

    def builder(self, directory: Path) -> FileSinkBuilder:
        """The sink of an unpacked copy."""
        return pieces.sink_of(self.name)(directory / "base")

    @property
    def committed(self) -> list[Txn]:
        """Writes that must never be done again."""
        return _txns(self.known["committed"])

    @property
    def free(self) -> list[Txn]:
        """Writes that were taken back."""
        return _txns(self.known["free"])

    def check_recovered(self, directory: Path) -> None:
        """Readers see what was decided, each row as often as it must be."""
        base = directory / "base"
        assert reading.visible_ids(base) == self.known["recovered"]
        assert reading.dead_letters(base) == self.known["dead_letters"]
        assert reading.success_files(base) == self.known["announced"]


def _txns(known: dict[str, Any]) -> list[Txn]:
    return [Txn(txn_id=name, mode=mode, ids=numbers) for name, (mode, numbers) in known.items()]


def twice(numbers: Sequence[int]) -> list[int]:
    """What is there more than once."""
    return [number for number, count in Counter(numbers).items() if count > 1]


def _all() -> list[Frozen]:
    found = []
    for manifest in sorted(STATES.glob("*/states.json")):
        states = json.loads(manifest.read_text())["states"]
        number = manifest.parent.name
        found += [Frozen(number=number, name=name, known=states[name]) for name in sorted(states)]
    return found


#: Every state of every time that they were frozen.
FROZEN = _all()
