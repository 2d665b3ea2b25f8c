"""What ``${name}`` stands for, outside of the file itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from filesink.errors import JobError


@dataclass(frozen=True, slots=True, kw_only=True)
class Variables:
    """Given ones come before the file's own keys, and those before the environment.

    Args:
        given: what the caller says, as ``-i name=value`` does.
        environment: of the process; the names of others are never shown.
    """

    given: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


def given_variables(texts: Sequence[str]) -> dict[str, str]:
    """``name=value`` pairs of a command line.

    Raises:
        JobError: ``JOB_VARIABLE``; no value is in the message.
    """
    found = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            raise JobError(
                "-i takes NAME=VALUE, such as day=2026-01-31; for a secret write ${env:NAME} into the file",
                code="JOB_VARIABLE",
            )
        found[name.strip()] = value
    return found
