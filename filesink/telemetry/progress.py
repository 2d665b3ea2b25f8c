"""How far an epoch is, as one line that is written anew: for terminals and notebooks."""

from __future__ import annotations

import sys
from typing import Final, TextIO

from filesink.api.events import (
    EpochBegan,
    EpochComplete,
    EpochDecided,
    EpochFailed,
    EpochVisible,
    PartsMerged,
    PartsRolled,
    SinkEvent,
)
from formats.sizes import size_text

_WIDTH: Final = 100  # columns
_LONGEST: Final = 40  # characters of a path; its end tells more


class ProgressLine:
    """Writes a line at each step of an epoch over that of the step before; the last one stays.

    Between begin and end of the tasks Spark's own bar tells more. A listener for a person at a terminal or a
    notebook; logs are better served by ``LogListener``.

    Args:
        out: where to; by default what ``sys.stderr`` is then.
    """

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out

    def __call__(self, event: SinkEvent, /) -> None:
        """See ``Listener``."""
        text = _text(event)
        if not text:
            return
        path = event.destination
        shown = path if len(path) <= _LONGEST else f"…{path[1 - _LONGEST :]}"
        epoch = "" if event.epoch is None else f" {event.epoch:,}"
        line = f"{shown}: {event.kind}{epoch}: {text}"[:_WIDTH]
        out = sys.stderr if self._out is None else self._out
        end = "\n" if isinstance(event, EpochComplete | EpochFailed) else ""
        out.write(f"\r{line:{_WIDTH}}{end}")
        out.flush()


def _text(event: SinkEvent) -> str:
    text = ""
    match event:
        case EpochBegan():
            text = "tasks write"
        case PartsRolled():
            text = f"{event.files:,} files ({size_text(event.bytes)}) written, hidden"
        case PartsMerged():
            text = f"{event.files_in:,} files merged into {event.files_out:,}"
        case EpochDecided():
            text = f"{event.rows:,} rows decided, becoming visible"
        case EpochVisible():
            text = "visible, being announced and noted"
        case EpochComplete():
            text = _done(event)
        case EpochFailed():
            later = ": it is decided, and the next start completes it" if event.decided else ""
            text = f"failed, {' '.join(filter(None, (event.error, event.code)))}{later}"
    return text


def _done(event: EpochComplete) -> str:
    files = event.changes.files
    size = size_text(sum(file.bytes for file in files))
    took = "" if event.began_ms is None else f" in {(event.at_ms - event.began_ms) / 1000:,.1f} s"
    return f"{event.rows:,} rows, {len(files):,} files, {size}{took}"
