"""Compaction in a history: each driver may come with another strategy, or with compaction turned off."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from compaction import FileCompactor, FileCompactStrategy
from compaction.contract import BaseFileCompactor
from filesink.file_sink.tiers import FileTiers
from filesink.parts.bucket import Closed
from filesink.parts.stages.closed_parts import Compaction, Waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacting:
    """What drivers choose from; ``turned_off`` is the probability that one drains instead."""

    strategies: tuple[FileCompactStrategy, ...]
    compactor: BaseFileCompactor
    turned_off: float = 0.0

    def choose(self, sink: FileTiers, random: Random) -> FileTiers:
        """``sink`` as one driver has it."""
        if random.random() < self.turned_off:
            return replace(sink, compaction=Waiting.PUBLISHED)
        compaction = Compaction(strategy=random.choice(self.strategies), compactor=self.compactor)
        return replace(sink, compaction=compaction, plan=replace(sink.plan, closed=Closed.HELD))


def draw_compacting(random: Random, format_: str) -> Compacting:
    """A strategy or two for a seed."""
    whole = FileCompactor.record_wise_file_compactor()
    joined = FileCompactor.concat_file_compactor()
    by_format = whole if format_ == "parquet" else joined
    return Compacting(
        strategies=tuple(_draw_strategy(random) for _ in range(random.choice((1, 2)))),
        compactor=by_format if random.random() < 0.9 else FileCompactor.identical_file_compactor(),
        turned_off=random.choice((0.0, 0.0, 0.3)),
    )


def _draw_strategy(random: Random) -> FileCompactStrategy:
    return FileCompactStrategy(
        size_threshold=random.choice((None, 9, 30, 60, 1000)),
        checkpoints=random.choice((None, 1, 2, 3)),
        max_age=random.choice((100, 1500, 10**6)),
        max_concurrent=random.choice((None, None, 1, 2)),
    )
