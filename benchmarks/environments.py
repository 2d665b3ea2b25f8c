"""Python environments for peers whose packages do not go with ours; each is made once and kept."""

from __future__ import annotations

import os
import subprocess
import venv
from pathlib import Path

#: Lead a Python to the packages of another one.
_LEADING = ("PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME")


def environment(directory: Path, *requirements: str) -> Path:
    """The Python of an environment with ``requirements``; made, as this Python is, if it is not there."""
    python = directory / "bin" / "python"
    if not (directory / "complete").exists():
        venv.create(directory, clear=True, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *requirements], check=True)
        (directory / "complete").touch()
    return python


def own_packages_only() -> dict[str, str]:
    """Variables for a process of such a Python: those of this process that lead to no other packages."""
    return {name: value for name, value in os.environ.items() if name not in _LEADING}
