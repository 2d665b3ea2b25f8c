"""``pyspark_filesink`` where Spark looks for it, though the tests may run against the sources."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import filesink.data_source


def source() -> Path:
    """The module. A wheel has it on top and nowhere else; the sources have it beside its data source."""
    found = find_spec("pyspark_filesink")
    if found is not None and found.origin is not None:
        return Path(found.origin)
    return Path(filesink.data_source.__path__[0]) / "pyspark_filesink.py"


def site(directory: Path) -> list[str]:
    """A directory for ``PYTHONPATH`` that has it; none where a wheel is installed, which has it on top."""
    if find_spec("pyspark_filesink") is not None:
        return []
    place = directory / "site"
    place.mkdir(parents=True)
    shutil.copy(source(), place)
    return [str(place)]


def offer(directory: Path) -> None:
    """Have the workers of this process's Spark find it."""
    os.environ["PYTHONPATH"] = os.pathsep.join([*site(directory), os.environ["PYTHONPATH"]])
