"""Arguments of the public methods of a sink: what they accept, and the errors for everything else. Pure."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from filesink.errors import ConfigError
from filesink.storage.base_path import has_no_bytes
from formats.arguments import kind_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def data_frame(df: DataFrame, where: str) -> DataFrame:
    """``df`` if it is a data frame of Spark, classic or not."""
    if not hasattr(df, "isStreaming"):
        raise ConfigError(
            f"{where}() takes a DataFrame of Spark, got {kind_of(df)}; make one with "
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
