"""One instant, as sessions with different time zones write it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import pyarrow as pa

NOON: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
ZONES: Final = ("UTC", "Etc/UTC", "Zulu", "Etc/GMT", "+00:00", "Europe/Berlin", "-08:00")


def at_noon(zone: str) -> pa.RecordBatch:
    """A record with that instant, plain and in a list."""
    kind = pa.timestamp("us", zone)
    return pa.RecordBatch.from_pydict(
        {"at": pa.array([NOON], kind), "all": pa.array([[NOON]], pa.list_(kind))}
    )
