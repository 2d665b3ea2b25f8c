"""Spark's checkpoints, seen from outside: where one may lie, and whether a batch will come from it again.

It never lies among what readers of the base path take for data: they would count its files as rows, and an
overwrite would remove them. Below a directory whose name begins with ``.`` or ``_`` nobody looks, so there a
checkpoint is safe, as Spark's users know it.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from filesink.errors import ConfigError, IdentityError
from filesink.ledger.record import MicroBatch
from filesink.naming import LEDGER_ROOT, is_data
from filesink.storage.api import Store
from filesink.storage.base_path import check_base_path
from filesink.storage.open import open_store


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


def check_replay(cause: MicroBatch, location: str | None) -> None:
    """Raise unless Spark will replay this very batch from the checkpoint at ``location``.

    Raises:
        ConfigError: ``CHECKPOINT``; there is no location, and only Spark's own logs tell.
        IdentityError: it will not.
    """
    if location is None:
        raise ConfigError(
            "lost='rewrite' needs checkpoint_location: only Spark's commit log tells whether batch "
            f"{cause.batch_id} will be replayed",
            code="CHECKPOINT",
        )
    log = open_store(location, {})
    _check_planned(log, cause)
    if log.read(f"commits/{cause.batch_id}") is not None:
        raise IdentityError(
            f"Spark has noted batch {cause.batch_id} as done and will not replay it; use "
            f"lost='accept', or remove commits/{cause.batch_id} from the checkpoint first",
            code="NO_REPLAY",
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


def _check_planned(log: Store, cause: MicroBatch) -> None:
    """Raise ``IdentityError`` unless Spark has planned this very batch in this checkpoint."""
    offsets = log.read(f"offsets/{cause.batch_id}")
    if _query_id(log.read("metadata")) != cause.query_id:
        reason = f"its metadata file does not name query {cause.query_id}"
    elif offsets is None:
        reason = f"it has no offsets/{cause.batch_id}"
    elif cause.fingerprint and hashlib.sha256(offsets).hexdigest() != cause.fingerprint:
        reason = f"its offsets/{cause.batch_id} are other input than the epoch was decided from"
    else:
        return
    raise IdentityError(
        f"checkpoint_location is not where batch {cause.batch_id} came from, so nothing would replay it: "
        f"{reason}. Nothing was taken back. Pass the checkpoint of the query that writes to this sink",
        code="WRONG_CHECKPOINT",
    )


def _query_id(metadata: bytes | None) -> object:
    """The id in a checkpoint's ``metadata`` file, one line of JSON; ``None`` if there is none."""
    try:
        values = json.loads(metadata or b"null")
    except (ValueError, RecursionError):
        return None
    return values.get("id") if isinstance(values, dict) else None
