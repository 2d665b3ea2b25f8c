"""Jobs that are killed again and again, by the program that does it at any size."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "benchmarks" / "job_endurance.py"
pytestmark = [pytest.mark.spark, pytest.mark.slow]


def endure(**numbers: int) -> str:
    """What the program prints, which ends with an error if a reader finds other rows than were put in."""
    given = [text for name, number in numbers.items() for text in (f"--{name}", str(number))]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    ran = subprocess.run(  # noqa: S603 - our own
        [sys.executable, str(PROGRAM), *given], env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    return ran.stdout


@pytest.mark.nightly
def test_a_pipeline_is_killed_and_a_job_restored() -> None:
    """The other pipeline is never started again, and each row is there once."""
    found = endure(pipelines=2, kills=2, savepoints=2, cancels=1, crashes=0)
    assert found.count("each once") == 3


@pytest.mark.nightly
def test_ten_pipelines() -> None:
    """One of them is killed 50 times; 50 restores; 20 cancels; crashes of everything."""
    assert endure(pipelines=10, kills=50, savepoints=50, cancels=20, crashes=5).count("each once") == 4
