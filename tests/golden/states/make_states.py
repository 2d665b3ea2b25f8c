"""Freezes a sink of every kind, as today's code leaves it on disk, for tomorrow's to take over.

    python -m tests.golden.states.make_states tests/golden/states/<number> [<state> ...]

Run it from the root of the repository before the first change of anything that is written, with the next
number, and never again for an old one: the states of ``1`` were written by release state 0.1.0.dev0, with
epoch records of version 2, before any change of format. With names of states only these are made.

Each state is made by a real Spark in a directory ``base`` with, for a stream, its ``checkpoint`` beside it.
A driver that dies does so: it is a process of its own that ends by ``os._exit`` in the midst of its work.
``states.json`` says which ids readers see in a state, and which they see after ``recover()``. Both are
written by hand (``makers``) and compared with what was made; what only repeats what it finds proves nothing.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from tests.golden.states import reading
from tests.golden.states.archive import pack, unpack
from tests.golden.states.makers import MAKERS, State
from tests.golden.states.pieces import sink_of
from tests.spark import sessions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def freeze(spark: SparkSession, name: str, archive: Path, scratch: Path) -> State:
    """Make a state, write it down, and look whether it is what it is said to be, once unpacked, too."""
    directory, copy = scratch / name, scratch / f"{name}-copy"
    (directory / "base").mkdir(parents=True)
    state = MAKERS[name](spark, directory)
    if state.recovered is None:
        state = replace(state, recovered=state.visible)
    _require(name, "visible", reading.visible_ids(directory / "base"), state.visible)
    pack(directory, archive)
    unpack(archive, copy)
    sink_of(name)(copy / "base").build().recover()
    _require(name, "recovered", reading.visible_ids(copy / "base"), state.recovered)
    _require(name, "dead letters", reading.dead_letters(copy / "base"), state.dead_letters)
    _require(name, "announced", reading.success_files(copy / "base"), state.announced)
    return state


def _require(name: str, what: str, found: Sequence[object], expected: Sequence[object] | None) -> None:
    if list(found) != list(expected or ()):
        raise RuntimeError(f"'{name}': {what} are {found} and should be {expected}")


def main(target: Path, names: Sequence[str]) -> None:
    """Make the states of these names, or all."""
    manifest = target / "states.json"
    states = json.loads(manifest.read_text())["states"] if manifest.exists() else {}
    spark = sessions.start()
    scratch = Path(tempfile.mkdtemp())
    try:
        for name in names or MAKERS:
            states[name] = asdict(freeze(spark, name, target / f"{name}.tar.gz", scratch))
            print(name, flush=True)  # noqa: T201 - a program
            content = {"filesink": version("filesink"), "states": states}
            manifest.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")
    finally:
        spark.stop()
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
