"""Names of the parts of an upload. Pure.

    part of ``a/x``    ``a/.x.part.<token of x>.<level>.<number>``

Level 0 has what was uploaded or copied; each level above has what up to 32 of the one below were put
together to. The names are hidden ones of the same directory and never end like a part file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_PART = re.compile(
    r"\.(?P<name>.+)\.part\.(?P<token>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.(?P<level>[0-9])\.(?P<number>[0-9]{5})",
    re.DOTALL,
)
#: Bytes that the name of a part has more than what it becomes.
LONGER_BY = len("..part.") + 36 + len(".0.00000")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartName:
    """What the name of a part tells; ``key`` is that of the object it becomes a part of."""

    key: str
    token: str
    level: int
    number: int

    def __str__(self) -> str:
        return f"{parts_prefix(self.key, self.token)}{self.level}.{self.number:05d}"


def parts_prefix(key: str, token: str) -> str:
    """What the names of all parts of an upload begin with."""
    return f"{hidden_prefix(key)}.part.{token}."


def hidden_prefix(prefix: str) -> str:
    """What the names of parts begin with if those of what they become begin with ``prefix``."""
    directory, slash, name = prefix.rpartition("/")
    return f"{directory}{slash}.{name}"


def parse_part(key: str) -> PartName | None:
    """What a key tells if it is that of a part, else ``None``."""
    directory, slash, name = key.rpartition("/")
    found = _PART.fullmatch(name)
    if found is None:
        return None
    return PartName(
        key=f"{directory}{slash}{found['name']}",
        token=found["token"],
        level=int(found["level"]),
        number=int(found["number"]),
    )
