"""Bars of long work, which people see at a terminal."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from io import StringIO
from pathlib import Path

import pytest
import typer
from rich.console import Console

from filesink.cli.call import Call, _Console, ending
from filesink.cli.commands.changes import adopt, sweep
from filesink.cli.commands.compact import compact
from filesink.cli.commands.copy import copy
from filesink.cli.commands.repair import repair
from filesink.cli.commands.replacing import erase, retain
from filesink.operations.at_path import operations_at
from tests.operations.broken_paths import whole
from tests.operations.damage_to_files import hidden_old
from tests.operations.damage_to_state import inventory_missing


def at_a_terminal(*, as_json: bool = False) -> tuple[Call, StringIO]:
    """A call, and what its terminal is sent as errors."""
    sent = StringIO()
    err = Console(file=sent, force_terminal=True, width=100)
    return Call(json=as_json, out=Console(file=StringIO()), err=err), sent


@pytest.mark.parametrize(
    ("steps", "command"),
    [
        (("directories listed", "files removed"), lambda call, base: sweep(call, str(base), yes=True)),
        (
            ("directories listed", "files removed"),
            lambda call, base: retain(call, str(base), keep=1, yes=True),
        ),
        (("directories listed",), lambda call, base: adopt(call, str(base), yes=True)),
        (("merging 3 files",), lambda call, base: compact(call, str(base), bucket="k=2", yes=True)),
        (("files searched again",), lambda call, base: erase(call, str(base), "value = 'c'", yes=True)),
        (("ledgers",), lambda call, base: copy(call, str(base), str(base.parent / "copy"), yes=True)),
    ],
    ids=["sweep", "retain", "adopt", "compact", "erase", "copy"],
)
def test_a_terminal_shows_how_far_it_is(
    tmp_path: Path, steps: tuple[str, ...], command: Callable[[Call, Path], None]
) -> None:
    """And a machine, which reads JSON, is not disturbed."""
    for as_json in (False, True):
        base = tmp_path / str(as_json) / "base"
        whole(base)
        hidden_old(base)
        call, sent = at_a_terminal(as_json=as_json)
        with suppress(typer.Exit):  # an erasure that finds the rows in a dead file, too, exits with 1
            command(call, base)
        assert [step in sent.getvalue() for step in steps] == [not as_json] * len(steps)


def test_a_repair_shows_how_far_each_of_its_commands_is(tmp_path: Path) -> None:
    """Here an adoption, behind the bars of its fsck."""
    base = tmp_path / "base"
    whole(base)
    inventory_missing(base)
    call, sent = at_a_terminal()
    repair(call, str(base), yes=True)
    assert "directories listed" in sent.getvalue()


class Closed(StringIO):
    """A terminal that is gone."""

    def write(self, text: str, /) -> int:
        raise BrokenPipeError(text)


def test_a_terminal_that_is_gone_ends_no_work(tmp_path: Path) -> None:
    """What is warned of then, such as that its bar has failed, is told nobody: and the sweep sweeps."""
    base = tmp_path / "base"
    whole(base)
    old = hidden_old(base)
    call = Call(json=True, err=_Console(file=Closed(), width=100))

    def gone(*_: object) -> None:
        raise BrokenPipeError

    with ending(call):
        operations_at(str(base)).sweep(progress=gone)
    assert not old.exists()
