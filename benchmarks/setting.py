"""What a result was measured on: a figure without its machine, versions and commit cannot be repeated."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_CPUS = Path("/proc/cpuinfo")  # Linux; elsewhere ``platform`` knows
_PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
_NAMED = ("filesink", "pyspark", "pyarrow")


def setting() -> dict[str, object]:
    """The program that measures, the machine, the versions, the commit and the time."""
    return {
        "program": Path(sys.argv[0]).stem,
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: _version(name) for name in _NAMED},
        "commit": _commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _version(name: str) -> str:
    """That of the package; filesink may be the sources beside this program, and not be installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        if name != "filesink":
            raise
    found: str = tomllib.loads(_PROJECT.read_text())["project"]["version"]
    return found


def _cpu() -> str:
    lines = _CPUS.read_text().splitlines() if _CPUS.exists() else []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or "unknown")


def _commit() -> str:
    """The commit that is checked out; it ends with ``-dirty`` if something was changed since."""
    describe = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    try:
        found = subprocess.run(
            describe, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return "unknown"
    return found.stdout.strip() or "unknown"
