"""A service of the test's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sinks.http.server import HttpServer, serving


@pytest.fixture
def server() -> Iterator[HttpServer]:
    """A server that takes everything, until it is told otherwise."""
    with serving() as found:
        yield found
