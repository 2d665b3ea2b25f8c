"""Inputs of an offline compaction that stay for readers go with what they were merged into: plans say so."""

from __future__ import annotations

from pathlib import Path

import compaction
import filesink
from filesink import Retention
from formats import Encoder
from tests.cli.running import run
from tests.compaction.test_finished import filled, names

TEXT = Encoder.simple_string_encoder()


def merged(base: Path) -> list[str]:
    """Fills ``base``, and merges; the inputs, which stay for an hour."""
    filled(base)
    inputs = [name for name in names(base) if name.startswith("x")]
    compaction.compact(base, TEXT, reader_grace="1 h")
    return inputs


def lost(base: Path, before: list[str]) -> set[str]:
    """What is not there any more."""
    return set(before) - set(names(base))


def test_a_rollback_plans_what_it_removes(tmp_path: Path) -> None:
    """The merged file, what comes back as copies, and inputs that came later: none would be listed twice."""
    inputs = merged(tmp_path)
    before = names(tmp_path)
    plan = filesink.plan_rollback(tmp_path, 2)
    shown = run("rollback", tmp_path, "--to", "2").out
    filesink.rollback(tmp_path, 2)
    planned = {*(file.path for file in plan.removed), *plan.merged}
    assert set(inputs) <= set(plan.merged)
    assert planned == lost(tmp_path, before)
    assert " ".join(shown.split()).startswith("back to version 2 from 7: 2 files (")
    assert "and 5 that were kept for readers, 2 files to bring back" in " ".join(shown.split())
    assert sum(len((tmp_path / name).read_text().split()) for name in names(tmp_path)) == 2


def test_a_rollback_without_compaction_has_nothing_to_add(tmp_path: Path) -> None:
    """Its plan is what it was."""
    filled(tmp_path)
    assert filesink.plan_rollback(tmp_path, 2).merged == []


def test_retention_plans_what_it_removes(tmp_path: Path) -> None:
    """With a file that was merged, its inputs are dropped."""
    inputs = merged(tmp_path)
    before = names(tmp_path)
    plan = filesink.plan_retain(tmp_path, Retention(max_bytes=1))
    assert set(plan.merged) == set(inputs)
    filesink.retain(tmp_path, Retention(max_bytes=1))
    assert lost(tmp_path, before) >= set(inputs)


def test_what_is_gone_already_is_not_planned(tmp_path: Path) -> None:
    """Somebody has removed the inputs."""
    inputs = merged(tmp_path)
    for name in inputs[:-1]:
        (tmp_path / name).unlink()
    assert filesink.plan_retain(tmp_path, Retention(max_bytes=1)).merged == inputs[-1:]
