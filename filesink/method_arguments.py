"""Arguments of the public methods of a sink: what they accept, and the errors for everything else. Pure."""

from __future__ import annotations

import os
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from filesink.errors import ConfigError
from filesink.storage.base_path import has_no_bytes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

E = TypeVar("E", bound=Enum)
V = TypeVar("V")


def accepted(value: V, kind: type[Any], *, by: str) -> V:
    """``value`` if it is a ``kind``; ``by`` is the method whose only argument it is.

    Raises:
        ConfigError: ``BAD_VALUE``; it says the method and both types, never the value.
    """
    if not isinstance(value, kind):
        raise ConfigError(f"{by} takes a {kind.__name__}, got {kind_of(value)}", code="BAD_VALUE")
    return value


def kind_of(value: object) -> str:
    """What ``value`` is, in a message."""
    return f"the class {value.__name__}; call it" if isinstance(value, type) else type(value).__name__


def data_frame(df: DataFrame, where: str) -> DataFrame:
    """``df`` if it is a data frame of Spark, classic or not."""
    if not hasattr(df, "isStreaming"):
        raise ConfigError(
            f"{where}() takes a DataFrame of Spark, got {kind_of(df)}; make one with "
            "spark.createDataFrame(…)",
            code="BAD_VALUE",
        )
    return df


def checkpoint(given: object) -> str:
    """``given`` as Spark takes a checkpoint location."""
    location = os.fspath(given) if isinstance(given, os.PathLike) else given
    if not isinstance(location, str) or not location.strip() or has_no_bytes(location):
        raise ConfigError(
            "exactly-once needs checkpoint_location, a directory of this query's own, as text or a path; got "
            f"{repr(given)[:40]}, a value of type {type(given).__name__}",
            code="CHECKPOINT",
        )
    return location


def choice(kind: type[E], value: str, name: str) -> E:
    """The member of ``kind`` that ``value`` means, for the argument ``name``."""
    try:
        return kind(value)
    except ValueError:
        allowed = " or ".join(repr(member.value) for member in kind)
        raise ConfigError(f"{name} must be {allowed}, got {repr(value)[:40]}", code="BAD_VALUE") from None
