"""What becomes of a sink that Spark Connect sends to its server, in a function for ``foreachBatch``.

A sink drives the classic driver, in one process. It is refused there, rather than where it first needs a JVM.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from filesink.errors import ConfigError


def over_connect() -> ConfigError:
    """The error for a sink that meets Spark Connect; it names the door to use."""
    return ConfigError(
        "this sink drives Spark's classic driver, and a client of Spark Connect has none, nor has a function "
        "of foreachBatch that its server runs. Files go through df.write.format('filesink') and "
        "df.writeStream.format('filesink') there; for all else use a classic session, with a master URL "
        "instead of .remote(…)",
        code="SPARK_CONNECT",
    )


class SinkElsewhere:
    """Stands for a sink in another process, and refuses whatever is asked of it."""

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        if name.startswith("__"):  # those are Python's questions
            raise AttributeError(name)
        return _refuse


def _refuse(*_: object, **__: object) -> NoReturn:
    raise over_connect()
