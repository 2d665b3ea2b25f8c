"""Drivers, tasks and brokers that die at any step: readers of what is committed see each row once."""

from __future__ import annotations

import pytest

from property_tests.torture.destinations.kafka import KafkaTopic
from property_tests.torture.kills import few_and_many, survives
from tests.sinks.kafka.broker import Broker


@few_and_many
@pytest.mark.slow
def test_every_row_once_whoever_dies(kafka: Broker, kills: int) -> None:
    """Whether an epoch is sent at once or file by file."""
    survives(KafkaTopic(), kafka, kills=kills)
