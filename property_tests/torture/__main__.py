"""The command; see ``property_tests.torture``."""

from __future__ import annotations

import argparse
import sys
import time

from property_tests.torture.destinations import DESTINATIONS
from property_tests.torture.torture import torture
from property_tests.torture.verdict import Verdict, table


def main() -> int:
    """Torture what is asked for; 1 if a promise was broken."""
    arguments = _arguments()
    verdicts: dict[str, Verdict] = {}
    for name in arguments.destination or DESTINATIONS:
        destination, began = DESTINATIONS[name](), time.monotonic()
        with destination.serving() as server:
            verdicts[name] = torture(
                destination, server, kills=arguments.kills, seed=arguments.seed, first=arguments.first
            )
        print(
            f"{name}: {sum(verdicts[name].kills.values())} kills in {time.monotonic() - began:.0f} s",
            file=sys.stderr,
        )
        for wrong in verdicts[name].wrong:
            print(wrong, file=sys.stderr)
    print(table(verdicts))
    return int(any(verdict.wrong for verdict in verdicts.values()))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m property_tests.torture")
    parser.add_argument(
        "--destination", action="append", choices=DESTINATIONS, help="as often as you like; all by default"
    )
    parser.add_argument("--kills", type=int, default=300, help="of drivers, tasks, servers and clients each")
    parser.add_argument(
        "--seed", type=int, default=time.time_ns() // 1_000_000_000, help="the time by default"
    )
    parser.add_argument("--first", type=int, default=0, help="number of the first history, to repeat one")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
