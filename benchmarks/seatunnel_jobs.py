"""How many of SeaTunnel's own job files are read, planned and run: a table for docs/jobs.md.

    git clone https://github.com/apache/seatunnel /tmp/seatunnel
    python benchmarks/seatunnel_jobs.py /tmp/seatunnel --run local --run s3 --run ftp

Takes the files of ``seatunnel-e2e/seatunnel-connector-v2-e2e/connector-file-*``. Those that run
are not changed, but for paths and addresses: what they read and write lies below a directory of this run, or
in a server of its own. Nothing of SeaTunnel is kept.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from filesink.errors import FilesinkError
from filesink.jobs import Jobs, RunOptions, plan
from filesink.jobs.text.read import read
from filesink.jobs.text.variables import Variables
from seatunnel_places import CONNECTORS, ROOT, place

VARIABLES = {"ftpHost": "ftp"}


@dataclass(frozen=True, kw_only=True)
class Result:
    """How far a job file came, and why no further."""

    connector: str
    file: str
    reached: str
    reason: str = ""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", type=Path, help="a checkout of apache/seatunnel")
    parser.add_argument("--run", action="append", choices=CONNECTORS, default=[], help="run these, too")
    parser.add_argument("--only", default="", help="files whose names hold this")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        places = {name: stack.enter_context(place(name, given.path, Path(directory))) for name in given.run}
        results = [
            result(file, places, Path(directory))
            for file in sorted((given.path / ROOT).glob("connector-file-*/src/test/resources/**/*.conf"))
            if given.only in file.name
        ]
    show(results)


def result(file: Path, places: Mapping[str, Mapping[str, str]], directory: Path) -> Result:
    """How far one comes."""
    connector = next(part for part in file.parts if part.startswith("connector-file-")).split("-")[2]
    try:
        read(file, Variables(given=VARIABLES))
    except FilesinkError as error:
        return Result(connector=connector, file=file.name, reached="none", reason=error.message)
    try:
        plan(file, variables=VARIABLES, inline_secrets=True)
    except FilesinkError as error:
        reason = error.message.partition(".conf:")[2]
        return Result(connector=connector, file=file.name, reached="refused", reason=reason)
    if connector not in places:
        return Result(connector=connector, file=file.name, reached="planned")
    reason = run(file, places[connector], directory)
    return Result(connector=connector, file=file.name, reached="planned" if reason else "run", reason=reason)


def run(file: Path, moved: Mapping[str, str], directory: Path) -> str:
    """Run it; why it failed."""
    text = re.sub("|".join(map(re.escape, moved)), lambda found: moved[found[0]], file.read_text())
    copy = directory / file.name
    copy.write_text(text)
    begin = time.monotonic()
    options = RunOptions(master="local[2]", say=lambda _: None)
    try:
        info = Jobs(directory / "jobs").run(copy, inline_secrets=True, options=options)
    except FilesinkError as error:
        return error.message
    print(
        f"{time.monotonic() - begin:6.1f} s {info.state} {file.name} {info.error}",
        file=sys.stderr,
        flush=True,
    )
    return "" if info.state == "FINISHED" else info.error


def show(results: list[Result]) -> None:
    """The table, and the reasons."""
    print("| connector | files | read | refused by name | planned | run |\n|---|---|---|---|---|---|")
    for name in [*sorted({one.connector for one in results}), ""]:
        mine = [one for one in results if not name or one.connector == name]
        counts = Counter(one.reached for one in mine)
        planned = counts["planned"] + counts["run"]
        read_ = len(mine) - counts["none"]
        print(
            f"| {name or 'all'} | {len(mine)} | {read_} | {counts['refused']} | {planned} | {counts['run']} |"
        )
    reasons = Counter(
        (one.reached, re.sub(r"^\d+: ", "", re.sub(r"'[^']*/[^']*'", "'…'", one.reason))[:150])
        for one in results
        if one.reason
    )
    for (how, reason), number in reasons.most_common():
        print(f"{number:4} {how}: {reason}")


if __name__ == "__main__":
    main()
