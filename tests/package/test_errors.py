"""Errors cross from the tasks to the driver, and to whoever has caught them in another process."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest

from filesink.errors import FilesinkError


def kinds(kind: type[FilesinkError] = FilesinkError) -> Iterator[type[FilesinkError]]:
    """Every kind of error of ours."""
    yield kind
    for other in kind.__subclasses__():
        yield from kinds(other)


@pytest.mark.parametrize("kind", sorted(set(kinds()), key=lambda kind: kind.__name__))
def test_an_error_is_the_same_on_the_other_side(kind: type[FilesinkError]) -> None:
    """Kind, code and text; programs go by the code, people see both."""
    error = pickle.loads(pickle.dumps(kind("what happened", code="WHY")))  # noqa: S301 - our own bytes
    assert (type(error), error.message, error.code) == (kind, "what happened", "WHY")
    assert str(error) == "[WHY] what happened"
