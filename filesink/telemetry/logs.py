"""Events as lines of Python's own logging, with a field for each of their figures."""

from __future__ import annotations

import logging
from dataclasses import fields
from typing import Any

from filesink.api.events import Changes, EpochFailed, SinkEvent

_LEFT_OUT = frozenset({"schema", "offsets", "metrics", "changes"})  # no figures, or too many


class LogListener:
    """Writes a line for each event. Its fields are in ``record.filesink``, a dict of plain values.

    A formatter of JSON puts them into its object; without one the line says the same. Paths of files, schemas
    and offsets are left out: they may be long.

    Args:
        logger: where to; ``filesink.events`` by default.
        level: of all events but ``EpochFailed``, which has ``logging.ERROR``.
    """

    def __init__(self, logger: logging.Logger | None = None, *, level: int = logging.INFO) -> None:
        self._logger = logging.getLogger("filesink.events") if logger is None else logger
        self._level = level

    def __call__(self, event: SinkEvent, /) -> None:
        """See ``Listener``."""
        level = logging.ERROR if isinstance(event, EpochFailed) else self._level
        if self._logger.isEnabledFor(level):
            found = fields_of(event)
            text = " ".join(f"{name}={value}" for name, value in found.items() if value is not None)
            self._logger.log(level, "%s", text, extra={"filesink": found})


def fields_of(event: SinkEvent) -> dict[str, Any]:
    """``event`` as plain values, by name; ``metrics`` and sums of ``changes`` are among them."""
    found: dict[str, Any] = {"event": type(event).__name__}
    found |= {one.name: getattr(event, one.name) for one in fields(event) if one.name not in _LEFT_OUT}
    found |= getattr(event, "metrics", {})
    changes = getattr(event, "changes", None)
    if isinstance(changes, Changes):
        found |= {
            "files": len(changes.files),
            "bytes": sum(file.bytes for file in changes.files),
            "removed": len(changes.removed),
        }
    return found
