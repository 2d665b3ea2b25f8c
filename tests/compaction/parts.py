"""Closed parts that wait, as values."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from filesink.naming import HiddenName
from tests.fakes import held

_NUMBERS = count()


def make_part(size=1, *, bucket="b", slot=0, created_ms=0, segments=1, **fields):
    """A part that exists nowhere; each has another name. ``fields`` are those of ``HeldFile``."""
    number = next(_NUMBERS)
    name = HiddenName(
        target=f"part-{number}", tag="0" * 8, slot=slot, attempt="00000000-0000-4000-8000-000000000000"
    )
    one = held(f"{bucket}/{name}", group=str(number), bucket=bucket, size=size, created_ms=created_ms)
    return (replace(one, **fields),) * segments
