"""What this process has open, as the system tells it."""

from __future__ import annotations

import gc
from pathlib import Path


def descriptors() -> set[str]:
    """Numbers of all open descriptors."""
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


def descriptors_in_use() -> set[str]:
    """The same without what earlier tests have left to the collector."""
    gc.collect()
    return descriptors()
