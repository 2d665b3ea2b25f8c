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
    for more in ((), ("--yes",)):
        again = run("export", site.base, "--to", to, "--drop", *more)
        assert (again.code, again.out) == (0, f"{to} is not there\nThere is nothing to do.\n")


@pytest.mark.parametrize(
    ("to", "place"),
    [("delta", "_delta_log"), ("spark-metadata", "_spark_metadata"), ("manifest", "_manifests")],
)
def test_an_export_that_was_changed_is_found_and_mended(tmp_path: Path, to: str, place: str) -> None:
    """``status`` says how far it is, ``fsck`` that it names another file, and its advice is what helps."""
    site = Site(tmp_path / "base")
    site.write("a")
    done("export", site.base, "--to", to)
    assert f"export {to}: at version 1, the newest" in run("status", site.base).out
    for path in (site.base / place).iterdir():
        if path.is_file():
            path.write_text(path.read_text().replace(".parquet", "-2.parquet"))
    ran = run("fsck", site.base, "--json")
    assert [(one["code"], one["path"]) for one in ran.json["findings"]] == [("EXPORT_DISAGREES", to)]
    done("export", site.base, "--to", to, "--drop")
    done("export", site.base, "--to", to)
    assert run("fsck", site.base).code == 0
    site.write("b")
    assert "1 version behind" in run("status", site.base).out
    assert run("status", site.base, "--json").json["exports"] == [
        {"name": to, "version": 1, "behind": 1, "error": ""}
    ]


def test_wrong_uses(tmp_path: Path) -> None:
    """No target, or one that nobody knows."""
    site = Site(tmp_path / "base")
    site.write("a")
    assert run("export", site.base).code == 2
    assert run("export", site.base, "--to", "hudi").code == 2
