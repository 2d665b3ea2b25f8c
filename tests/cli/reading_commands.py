"""Runs every command that reads, as a program: on a mount that a test makes for it alone.

``python -m tests.cli.reading_commands BASE COPY`` prints how each ended, a line of JSON for each.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.cli.running import run

READING = (
    ("status",), ("log",), ("ls",), ("files",), ("du",), ("schema",), ("schema", "--history"), ("show", "1"),
    ("diff", "0", "1"), ("fsck", "--deep"), ("recover",), ("finish",), ("sweep",), ("compact",), ("adopt",),
    ("repair",), ("export", "--to", "delta"),
    ("report", "--html", "/dev/null"), ("publish", "--success-file", "_SUCCESS"),
    ("retain", "--keep", "1"),
    ("retain", "--by", "partition-time", "--extractor", "$day", "--max-age", "1 d"),
    ("rollback", "--to", "1"), ("erase", "--where", "value = '7'"), ("copy", "{copy}"),
)  # fmt: skip


def main(base: str, copy: str) -> None:
    """Run them all."""
    for name, *arguments in READING:
        ran = run(name, base, *(one.format(copy=copy) for one in arguments), "--json")
        error = ran.json["code"] if ran.code > 1 else ""
        sys.stdout.write(json.dumps([name, ran.code, error]) + "\n")
    try:
        Path(base, "written").touch()
    except OSError as refused:
        sys.stdout.write(json.dumps(["touch", refused.errno, "OSError"]) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
