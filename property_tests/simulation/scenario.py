"""What a history is made of, besides its seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from random import Random

from property_tests.simulation.spark.machine import Trouble
from property_tests.simulation.workload import Shape
from property_tests.simulation.world.world import Plan


class Neighbour(Enum):
    """Who else writes."""

    NOBODY = "nobody"
    QUERY = "a second query with a uid of its own"
    BATCH = "a batch write with a txn_id, started again until it has succeeded"
    DATA_SOURCE = "a query through the data source"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """All that is drawn before a history begins."""

    shape: Shape = field(default_factory=Shape)
    trouble: Trouble = field(default_factory=Trouble)
    plan: Plan = field(default_factory=Plan)
    pace: int = 0
    neighbour: Neighbour = Neighbour.NOBODY
    grace_ms: int = 0  # of its overwrites


def draw_neighbour(seed: int) -> Neighbour:
    """The neighbour in the history of a seed, most often nobody; by a source of chance of its own."""
    random = Random(f"neighbour {seed}")
    return random.choice(tuple(Neighbour)) if random.random() < 0.3 else Neighbour.NOBODY
