"""Write docs/reference/metrics.md: every metric with its kind, its labels and what it is of.

python docs/site/metrics.py
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from filesink.telemetry.measures import METRICS, Metric

PAGE = Path(__file__).parents[1] / "reference" / "metrics.md"
_HEAD = """\
# Metrics

<!-- Made by docs/site/metrics.py of filesink/telemetry/measures.py. Do not edit. -->

All have the labels `destination` and `sink`, too. How to get them: [metrics and
events](../operations.md#metrics-and-events).

| metric | kind | labels | of |
|---|---|---|---|
"""


def page() -> str:
    """The page for all metrics, in their order."""
    return _HEAD + "".join(map(_row, METRICS))


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    return f"| `{metric.name}` | {metric.kind.value} | {labels} | {metric.meaning} |\n"


if __name__ == "__main__":
    PAGE.write_text(page())
