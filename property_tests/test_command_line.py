"""The command line meets every state that a kill can leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from property_tests.end_states import end_state
from tests.cli.reading_commands import READING
from tests.cli.running import run

#: What may be found after a kill: what waits to be completed or removed, and files of others.
_HARMLESS = {"EPOCH_UNFINISHED", "FILE_FOREIGN", "FILE_LEFT", "GARBAGE", "HIDDEN_OLD"}
#: What an operation may object to, when it has changed nothing.
_REFUSED = {"FILES_GONE", "NO_INVENTORY", "NO_VERSION", "HISTORY_EXPIRED", "UNKNOWN_ROWS"}


def _files(base: Path) -> dict[str, tuple[bytes, int]]:
    found = (path for path in base.rglob("*") if path.is_file())
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in found}


def _meet(seed: int, base: Path) -> None:
    if not end_state(seed, base):
        return
    before = _files(base)
    for name, *arguments in READING:
        given = [one.format(copy=base.with_name(f"{base.name}-copy")) for one in arguments]
        ran = run(name, base, *given, "--json")  # raises whatever a command may not raise
        assert ran.code in {0, 1, 2, 3}, (seed, name)
        assert ran.code < 2 or ran.json["code"] != "INTERNAL", (seed, name, ran.out)
        if name == "fsck" and ran.code < 2:
            codes = {finding["code"] for finding in ran.json["findings"]}
            assert codes <= _HARMLESS, (seed, codes)
    assert _files(base) == before, seed
    if run("fsck", base, "--json").code < 2:
        _recover(seed, base)
        _go_on(seed, base)


def _recover(seed: int, base: Path) -> None:
    """What was decided can be completed by who knows the path only."""
    ran = run("recover", base, "--announce", "skip", "--yes", "--json")
    assert (ran.code, ran.json.get("done")) == (0, True), (seed, ran.out)
    codes = {finding["code"] for finding in run("fsck", base, "--deep", "--json").json["findings"]}
    # Files of a copy are other files than those that the record of an overwrite names: they stay.
    assert codes <= _HARMLESS - {"EPOCH_UNFINISHED"} | {"FILE_RETURNED"}, (seed, codes)


def _go_on(seed: int, base: Path) -> None:
    """What was completed can be copied, thinned out and rolled back; each path is as good as before."""
    if run("status", base, "--json").json.get("version", 0) < 1:
        return
    copied = base.with_name(f"{base.name}-copy")
    for command, path, *arguments in (
        ("copy", base, str(copied)),
        ("retain", copied, "--keep", "1"),
        ("rollback", base, "--to", "0"),
        ("retain", base, "--keep", "1"),
    ):
        ran = run(command, path, *arguments, "--yes", "--json")
        # Bytes of old versions are gone, or somebody has removed a file, or it holds what no copy can hold.
        assert ran.code == 0 or ran.json["code"] in _REFUSED, (seed, command, ran.out)
        if not path.exists():
            continue
        codes = {finding["code"] for finding in run("fsck", path, "--deep", "--json").json["findings"]}
        assert codes <= _HARMLESS - {"EPOCH_UNFINISHED"} | {"FILE_RETURNED"}, (seed, command, codes)


@pytest.mark.slow
def test_commands_meet_what_kills_leave(tmp_path: Path) -> None:
    """No traceback, nothing changed by reading, no damage seen where none is; recovery completes all."""
    for seed in range(12):
        _meet(seed, tmp_path / str(seed))


@pytest.mark.nightly
@pytest.mark.parametrize("chunk", range(14))
def test_commands_meet_what_a_thousand_kills_leave(tmp_path: Path, chunk: int) -> None:
    """The same for 1,400 seeds, of which a thousand have a disk."""
    for seed in range(chunk * 100, chunk * 100 + 100):
        _meet(seed, tmp_path / str(seed))
