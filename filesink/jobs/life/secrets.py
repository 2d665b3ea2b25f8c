"""Where secrets come from, when they are needed: environment, files, Hadoop's credential providers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filesink.errors import JobError
from filesink.jobs.model.secret import Secret

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LARGEST = 1 << 16  # bytes of a file with a secret


def process_environment() -> dict[str, str]:
    """The variables of this process."""
    return dict(os.environ)


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """Reveals secrets.

    Args:
        environment: variables.
        spark: knows Hadoop's credential providers; ``None`` has none.
    """

    environment: Mapping[str, str] = field(repr=False)
    spark: SparkSession | None = None

    def reveal(self, secret: Secret) -> str:
        """The value.

        Raises:
            JobError: ``JOB_SECRET``; it is not there.
        """
        match secret.kind:
            case "inline":
                return secret.value
            case "env":
                found = self.environment.get(secret.name)
            case "file":
                found = _of_file(secret.name)
            case _:
                found = self._of_hadoop(secret.name)
        if not found:
            raise JobError(f"the secret {secret} is not there, or is empty; set it", code="JOB_SECRET")
        return found

    def _of_hadoop(self, alias: str) -> str | None:
        if self.spark is None:
            return None
        session: Any = self.spark
        found = session._jsparkSession.sessionState().newHadoopConf().getPassword(alias)  # noqa: SLF001 - no other way
        return None if found is None else "".join(found)


def _of_file(name: str) -> str | None:
    try:
        with Path(name).open("rb") as file:
            return file.read(_LARGEST).decode().strip()
    except (OSError, UnicodeDecodeError):
        return None
