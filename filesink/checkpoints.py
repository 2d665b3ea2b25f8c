"""Where a query's checkpoint may lie: never among what readers of the base path take for data.

Readers would count its files as rows, and an overwrite would remove them. Below a directory whose name
begins with ``.`` or ``_`` nobody looks, so there a checkpoint is safe, as Spark's users know it.
"""

from __future__ import annotations

from pathlib import Path

from filesink.errors import ConfigError
from filesink.naming import LEDGER_ROOT, is_data
from filesink.storage.base_path import check_base_path


def check_checkpoint(location: str, base_path: str) -> None:
    """Refuse a checkpoint among the data of a sink. Called before the query starts.

    Both are compared as they are spelled, local ones as their links lead. What Hadoop's configuration
    makes of a path without a scheme is not known here.

    Args:
        location: as Spark is given it; ``""`` is Spark's matter.
        base_path: as ``check_base_path`` has returned it.

    Raises:
        ConfigError: ``CHECKPOINT``.
    """
    below = _below(base_path, location)
    if below is None or (_is_skipped(below) and LEDGER_ROOT not in below and is_data(below[0])):
        return
    where = f"'{'/'.join(below)}' below the base path" if below else "the base path itself"
    raise ConfigError(
        f"checkpoint_location is {where}, '{base_path}': readers would take the checkpoint's files for data, "
        "and an overwrite would remove them. Nothing was written. Put it elsewhere, or below a directory "
        "whose name begins with '_' or '.' and is not ours, such as '_checkpoint'. If it is on another file "
        "system, write its scheme, such as hdfs://",
        code="CHECKPOINT",
    )


def _is_skipped(names: list[str]) -> bool:
    return any(name[0] in "._" for name in names)


def _below(base_path: str, location: str) -> list[str] | None:
    """The names that lead from the base path to ``location``; ``None`` if it is not there."""
    try:
        checkpoint = check_base_path(location)
    except ConfigError:
        return None  # what no sink can write to is below no base path
    base = base_path
    if base.startswith("/") and checkpoint.startswith("/"):
        base, checkpoint = str(Path(base).resolve()), str(Path(checkpoint).resolve())
    if not f"{checkpoint}/".startswith(f"{base.rstrip('/')}/"):
        return None
    return [name for name in checkpoint[len(base) :].split("/") if name]
