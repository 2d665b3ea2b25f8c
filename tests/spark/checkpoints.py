"""Checkpoints as they are after a crash, or after somebody has edited them."""

from __future__ import annotations

from pathlib import Path


def forget(checkpoint: Path, log: str, *batches: int) -> None:
    """Remove entries of a log (``offsets`` or ``commits``) with their checksums."""
    for batch in batches:
        (checkpoint / log / str(batch)).unlink()
        (checkpoint / log / f".{batch}.crc").unlink(missing_ok=True)
