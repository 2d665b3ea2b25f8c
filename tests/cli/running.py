"""Runs the command line in this process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from filesink.cli.app import app


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What a call has printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What is printed with ``--json``."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """What is printed of a list with ``--json``."""
        return [json.loads(line) for line in self.out.splitlines()]


def run(*arguments: str | Path) -> Ran:
    """``filesink <arguments>``; what no command may raise comes out."""
    done = CliRunner().invoke(app, [str(one) for one in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Ran(code=done.exit_code, out=done.stdout, err=done.stderr)
