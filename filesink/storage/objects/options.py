"""How files are sent to a store of objects: what S3 and its like have in common.

Rules: no value of an option ever enters a message, a record, a ``repr`` or a log; only names do.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from filesink.errors import ConfigError
from filesink.storage.objects.api import LARGEST_PART, MIB

_MOST_CONCURRENCY = 256

#: At a time, of those that carry hardly a byte: completing, looking, removing.
SMALL_REQUESTS = 32


class ConditionalWrites(Enum):
    """Whether the store makes a key only if it is absent when asked to."""

    REQUIRED = "required"
    #: The user vouches that one driver at a time writes here: two could overwrite each other.
    ONE_DRIVER = "one_driver"


class Copying(Enum):
    """What a store copies into a part of an upload by itself."""

    RANGES = "ranges"  # any bytes of an object, if they are enough for a part; S3
    WHOLE = "whole"  # objects as they are, of any size; Google Cloud Storage


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class UploadOptions:
    """Options, checked.

    Attributes:
        part_size: bytes of the first thousand parts of an upload; also what each open file may hold
            in memory before it is sent.
        largest_part: bytes that the service takes as one.
        max_concurrency: requests of one task, or of the driver, at a time.
        copying: what the service makes parts of without them coming here.
    """

    part_size: int = 8 * MIB
    max_concurrency: int = 10
    conditional_writes: ConditionalWrites = ConditionalWrites.REQUIRED
    largest_part: ClassVar[int] = LARGEST_PART
    copying: ClassVar[Copying] = Copying.RANGES

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"


def whole_number(name: str, value: object, least: int, most: int) -> int:
    """``value``, or ``ConfigError[BAD_VALUE]`` for the option ``name``."""
    if type(value) is not int or not least <= value <= most:
        raise ConfigError(
            f"storage option '{name}' must be a whole number from {least} to {most}", code="BAD_VALUE"
        )
    return value


def concurrency(name: str, value: object) -> int:
    """``max_concurrency``, checked."""
    return whole_number(name, value, 1, _MOST_CONCURRENCY)


def conditional_writes(name: str, value: object) -> ConditionalWrites:
    """The member that ``value`` means, or ``ConfigError[BAD_VALUE]`` for the option ``name``."""
    try:
        return ConditionalWrites(value)
    except ValueError:
        allowed = " or ".join(repr(choice.value) for choice in ConditionalWrites)
        raise ConfigError(f"storage option '{name}' must be {allowed}", code="BAD_VALUE") from None
