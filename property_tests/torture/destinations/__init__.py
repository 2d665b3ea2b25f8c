"""What is tortured, by name; a module each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from property_tests.torture.destination import Destination
from property_tests.torture.destinations.collected import Collected
from property_tests.torture.destinations.files import Files
from property_tests.torture.destinations.http import HttpRequests
from property_tests.torture.destinations.kafka import KafkaTopic
from property_tests.torture.destinations.postgres import PostgresRows
from property_tests.torture.destinations.toy import ToyTable

DESTINATIONS: Mapping[str, Callable[[], Destination]] = {
    "files": Files,
    "postgres": PostgresRows,
    "kafka": KafkaTopic,
    "http": HttpRequests,
    "collect": Collected,
    "toy": ToyTable,
}
