"""Runs the command line in this process."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from typer.main import get_command
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
    runner, command, code = CliRunner(), _command(), 0
    with runner.isolation() as (out, err, _):
        try:
            command.main([str(one) for one in arguments], prog_name=runner.get_default_prog_name(command))
        except SystemExit as ended:
            code = int(ended.code or 0)
        sys.stdout.flush()
        sys.stderr.flush()
        return Ran(code=code, out=_text(out.getvalue()), err=_text(err.getvalue()))


@cache  # since typer makes it anew at each call, which takes longer than many a command
def _command() -> Any:
    return get_command(app)


def _text(data: bytes) -> str:
    return data.decode().replace("\r\n", "\n")
