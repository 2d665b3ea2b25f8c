"""The command; see ``property_tests.one_directory``."""

from __future__ import annotations

import argparse
import sys

from property_tests.one_directory.engines import ENGINES
from property_tests.one_directory.trial import trial


def main() -> int:
    """Print what every engine saw; 1 if one saw anything else than the rows of its version."""
    parser = argparse.ArgumentParser(prog="python -m property_tests.one_directory")
    parser.add_argument("base", help="a directory that is not there yet")
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--only", nargs="*", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--engine", action="append", default=[], metavar="NAME=PYTHON")
    given = parser.parse_args()
    pythons = dict(one.split("=", 1) for one in given.engine)
    verdict = trial(given.base, epochs=given.epochs, kills=given.kills, names=given.only, pythons=pythons)
    print("\n".join(verdict.lines()))
    return int(bool(verdict.wrong))


if __name__ == "__main__":
    sys.exit(main())
