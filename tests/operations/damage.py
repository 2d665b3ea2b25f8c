"""Every kind of damage that ``fsck`` knows, with what it has to be done to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from random import Random

from tests.operations import damage_to_files as files
from tests.operations import damage_to_state as state
from tests.operations.broken_paths import (
    unfinished,
    whole,
    with_open_parts,
)
from tests.sink_directory.written import Written


@dataclass(frozen=True, kw_only=True)
class Damage:
    """One kind of damage.

    Attributes:
        code: of the finding.
        make: does it to a base path, and returns what the finding must name.
        on: makes the path that is damaged.
        also: codes of what follows from it.
    """

    code: str
    make: Callable[..., Path]
    on: Callable[[Path], Written] = whole
    also: frozenset[str] = frozenset()

    def anywhere(self, base: Path, random: Random) -> Path:
        """As ``make``, to any of those that it can hit."""
        hits_any = "random" in signature(self.make).parameters
        return self.make(base, random) if hits_any else self.make(base)

    def __str__(self) -> str:
        return self.make.__name__


def _damages() -> Iterator[Damage]:
    also = {
        state.record_missing: {"COMPLETION_STRAY"},
        files.pending_lost: {"EPOCH_UNFINISHED"},
    }
    others = {
        files.held_changed: "HELD_LOST",
        files.garbage_of_a_put: "GARBAGE",
        files.tail_lost_by_a_hidden_file: "TAIL_LOST",
        files.file_doubled_elsewhere: "FILE_DOUBLED",
    }
    on = {files.held_lost: with_open_parts, files.held_changed: with_open_parts}
    on |= {files.pending_lost: unfinished, state.epoch_unfinished: unfinished}
    for make in (*state.ALL, *files.ALL):
        yield Damage(
            code=others.get(make, make.__name__.upper()),
            make=make,
            on=on.get(make, whole),
            also=frozenset(also.get(make, ())),
        )


DAMAGES = tuple(_damages())
