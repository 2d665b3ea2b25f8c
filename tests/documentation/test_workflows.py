"""The workflows of a forge run the commands that a developer runs, and no others."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
_TARGET = re.compile(r"^([a-z0-9-]+):.*## ", re.MULTILINE)
_PACKAGES = "sudo apt-get update && sudo apt-get install --yes postgresql"


def steps(workflow: Path) -> list[dict[str, Any]]:
    """The steps of all jobs."""
    jobs = yaml.safe_load(workflow.read_text())["jobs"].values()
    return [step for job in jobs for step in job["steps"]]


def commands() -> dict[str, set[str]]:
    """What each workflow runs."""
    return {file.name: {step["run"] for step in steps(file) if "run" in step} for file in WORKFLOWS}


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=[file.name for file in WORKFLOWS])
def test_every_command_is_one_of_ours(workflow: Path) -> None:
    """A target of the Makefile or the program of CI; what only the forge knows cannot be tried at home."""
    targets = set(_TARGET.findall((ROOT / "Makefile").read_text()))
    for command in commands()[workflow.name] - {_PACKAGES}:
        program, _, argument = command.partition(" VERSIONS=")[0].partition(" ")
        assert argument in targets if program == "make" else os.access(ROOT / command, os.X_OK), command


def test_each_gate_has_its_workflow() -> None:
    """A change, a night and a release."""
    found = commands()
    assert {".ci/run", "make check", "make site"} <= found["ci.yml"]
    assert "make nightly" in found["nightly.yml"]
    assert any(command.startswith("make test-versions ") for command in found["nightly.yml"])
    assert "make release-dry" in found["release.yml"]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=[file.name for file in WORKFLOWS])
def test_a_job_may_read_and_no_more(workflow: Path) -> None:
    """Unless it says so itself, as the one that publishes does."""
    assert yaml.safe_load(workflow.read_text())["permissions"] == {"contents": "read"}
