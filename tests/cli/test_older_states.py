"""Paths of older releases, by the commands alone: there is nothing to convert."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import run
from tests.golden.states import reading
from tests.golden.states.frozen import FROZEN, Frozen


@pytest.mark.parametrize("frozen", FROZEN, ids=str)
def test_what_an_older_release_has_left_is_read_as_it_is(frozen: Frozen, tmp_path: Path) -> None:
    """Its ledgers at once, without a change on disk; its files by version, once they are adopted."""
    base = frozen.unpacked(tmp_path) / "base"
    before = _everything(base)
    shown = run("status", base, "--json")
    ledgers = {path.name for path in (base / "_filesink").iterdir() if path.name[0] not in "._"}
    assert ["filesink.adopt(" in sentence for sentence in shown.json["damage"]] == [True]
    assert {sink["id"] for sink in shown.json["sinks"]} == ledgers - {"compaction"}
    assert _everything(base) == before
    assert run("recover", base, "--announce", "skip", "--yes").code == 0
    assert run("adopt", base, "--yes").code == 0
    # Unpacked, the inputs of a compaction are not what they were: it does not remove them.
    unpacked = {"FILE_RETURNED"} if frozen.name == "compaction-decided" else set()
    assert {one["code"] for one in run("fsck", base, "--json").json["findings"]} == unpacked
    live = [base / file["path"] for file in run("ls", base, "--json").lines]
    assert set(reading.ids(live)) == set(frozen.known["recovered"])


def _everything(base: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in base.rglob("*") if path.is_file()}
