"""A topic for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sinks.kafka.broker import Broker
from tests.sinks.kafka.site import Site


@pytest.fixture
def site(kafka: Broker, tmp_path: Path) -> Site:
    """A topic with two partitions."""
    return Site(kafka, tmp_path)
