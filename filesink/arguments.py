"""Arguments of public calls, checked when they are given: a wrong one is a ``ConfigError``. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from filesink.errors import ConfigError
from formats import arguments

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

E = TypeVar("E", bound=Enum)
V = TypeVar("V")

_NO_BYTES = re.compile("[\0\ud800-\udfff]")  # a lone surrogate has none, and NUL ends a name


def instance_of(value: V, kind: type[Any], *, name: str) -> V:
    """``value`` if it is a ``kind``.

    Raises:
        ConfigError: ``BAD_VALUE``; it says ``name`` and both types, never the value.
    """
    return arguments.instance_of(value, kind, name=name, error=_bad_value)


def column_name(value: object, *, name: str) -> str:
    """``value`` if a column can have that name.

    Raises:
        ConfigError: ``BAD_VALUE``; it is not text, is empty, or has a lone surrogate.
    """
    column = str(instance_of(value, str, name=name))
    if not column or not arguments.is_text(column):
        raise _bad_value(f"{name} must be the name of a column, got {arguments.shown(column)}")
    return column


def one_of(value: object, allowed: Collection[str], *, name: str) -> None:
    """Raise ``ConfigError`` (``BAD_VALUE``) unless ``value`` is one of the words ``allowed``."""
    arguments.one_of(value, allowed, name=name, error=_bad_value)


def choice(kind: type[E], value: object, name: str) -> E:
    """The member of ``kind`` that the word ``value`` means, for the argument ``name``."""
    one_of(value, [member.value for member in kind], name=name)
    return kind(value)


def has_no_bytes(path: str) -> bool:
    """Whether no store and no system can take the path as it is."""
    return _NO_BYTES.search(path) is not None


def data_frame(df: DataFrame, where: str) -> DataFrame:
    """``df`` if it is a data frame of Spark, classic or not."""
    if not any(hasattr(one, "isStreaming") for one in (type(df), df)):  # the frame itself would ask the JVM
        raise ConfigError(
            f"{where}() takes a DataFrame of Spark, got {arguments.kind_of(df)}; make one with "
            "spark.createDataFrame(…)",
            code="BAD_VALUE",
        )
    return df


def not_built(method: str, *, of: str) -> ConfigError:
    """The error for a method that is called on the builder of a sink or a source."""
    return ConfigError(
        f"this is a builder, and {method}() is a method of the {of}: call .build() first, as in "
        f"builder.build().{method}(…)",
        code="NOT_BUILT",
    )


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


def _bad_value(message: str) -> ConfigError:
    return ConfigError(message, code="BAD_VALUE")
