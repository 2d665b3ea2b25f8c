"""Removes all that a path shows, since a new query writes it again from the start of its source.

Rules:
1. What goes is listed first, then the chain of the query is looked at: if it has got another epoch, some of
   its files may be among those listed, or in a file that they were merged into. Then nothing goes.
2. What others make visible after that stays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from filesink.file_sink.tiers import FileTiers
from filesink.operations.replacing.epochs import Change, Seen, replacing
from filesink.ports import Ports

WHAT = "replace"


@dataclass(frozen=True, kw_only=True)
class Refresh:
    """Makes way for a query that replaces what is there; a ``filesink.commit.replay.MakeWay``.

    Attributes:
        tiers: the sink.
        base_path: for messages.
    """

    tiers: FileTiers
    base_path: str

    def __call__(self, ports: Ports, check: Callable[[], object]) -> None:
        """Remove every live file, in one epoch; does nothing if there is none.

        Args:
            ports: of the query.
            check: raises if the chain of the query has got another epoch.

        Raises:
            StateError: ``NO_INVENTORY``, ``ADOPTING``.
            ConcurrentDriverError: what ``check`` raises; or another write replaces files at the same time.
            FilesinkError: nothing was removed, or the epoch is decided and the next call completes it.
        """

        def choose(seen: Seen) -> Change:
            live = list(seen.snapshot.files)
            check()
            return Change(removed=[file for file in live if not seen.is_busy(file)])

        replacing(self.tiers, WHAT, choose, base_path=self.base_path).run(ports)
