"""A path of ``CollectSink`` as earlier code has left it: with a client half way, and an epoch half done.

    python -m tests.sinks.collect.frozen tests/golden/collected-<number>.tar.gz

Run it from the root of the repository before the first change of anything that is written, with the next
number, and never again for an old one.

    version 1    rows 0, 1    acknowledged, and removed
    version 2    rows 2 to 4  acknowledged up to row 3, the second of its three
    version 3    row 5        waits
    slot 3       rows 6, 7    decided; its driver died before a file was visible
    a query has begun, and is not over
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.contracts.sink_site import Death, DyingSink, Killed, Moment, Tier
from tests.fakes import micro_batch
from tests.golden.states.archive import pack
from tests.sinks.collect.site import Site, rows

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
ARCHIVES = sorted(GOLDEN.glob("collected-*.tar.gz"))
EPOCHS: Sequence[Sequence[Sequence[int]]] = [([0], [1]), ([2, 3], [4]), ([5],), ([6], [7])]
#: What a client has still to take: at once, and when the last epoch is done.
WAITING, DECIDED = [4, 5], [6, 7]


def freeze(directory: Path) -> None:
    """Leave the path there."""
    site = Site(directory)
    site.marks().begin("r")
    for batch in range(2):
        site.stream(batch, *EPOCHS[batch])
    results = site.new()
    for _ in range(4):
        next(results)
    results.acknowledge()
    site.stream(2, *EPOCHS[2])
    driver = site.loop()
    dying = DyingSink(site.sink()._sink, Death(Tier.COMMITTER, Moment.BEFORE))
    driver._chain.publisher._committer = dying.create_committer()
    with suppress(Killed):
        driver.run(micro_batch(3), site.job([rows(*ids)] for ids in EPOCHS[3]))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        freeze(Path(name))
        pack(Path(name), Path(sys.argv[1]))
