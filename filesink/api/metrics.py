"""Counters that tasks and stages fill, and reports show."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Metrics:
    """Counters of one task, added up over the tasks of an epoch into its report."""

    values: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, amount: int) -> None:
        """Count ``amount`` more of ``name``, as in ``metrics.add("parts_rolled", 1)``."""
        self.values[name] = self.values.get(name, 0) + amount
