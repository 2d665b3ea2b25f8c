"""``pyspark_filesink`` where Spark looks for it, though the tests run against the sources."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

from filesink.data_source import pyspark_filesink


def offer(directory: Path) -> None:
    """Have Spark's workers find it; nothing to do where a wheel is installed, which has it on top."""
    if find_spec("pyspark_filesink") is not None:
        return
    site = directory / "site"
    site.mkdir(parents=True)
    shutil.copy(pyspark_filesink.__file__, site)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(site), os.environ["PYTHONPATH"]])
