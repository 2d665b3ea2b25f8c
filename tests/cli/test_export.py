"""``filesink export``: the plan first, and with ``--yes`` what the plan says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import run
from tests.cli.test_changing import done, planned
from tests.contracts.exporter_contract import Site


@pytest.mark.parametrize(
    ("to", "place"),
    [("delta", "_delta_log"), ("spark-metadata", "_spark_metadata"), ("manifest", "_manifests")],
)
def test_export_and_drop(tmp_path: Path, to: str, place: str) -> None:
    """A path that exported nothing gets its target; it is gone on with, and removed."""
    site = Site(tmp_path / "base")
    site.write("a")
    assert (
        f"{to} is not there; version 1 with 1 file to export" in planned("export", site.base, "--to", to).out
    )
    done("export", site.base, "--to", to)
    assert (site.base / place).exists()
    assert "is at version 1" in run("export", site.base, "--to", to, "--yes").out
    site.write("b")
    ran = run("export", site.base, "--to", to, "--yes")
    assert f"Done: {to}: at version 2; it was at version 1." in ran.out
    done("export", site.base, "--to", to, "--drop")
    assert not (site.base / place).exists()


def test_wrong_uses(tmp_path: Path) -> None:
    """No target, or one that nobody knows."""
    site = Site(tmp_path / "base")
    site.write("a")
    assert run("export", site.base).code == 2
    assert run("export", site.base, "--to", "hudi").code == 2
