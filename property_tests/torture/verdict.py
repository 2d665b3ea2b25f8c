"""What has come of histories: numbers to add up, and a sentence for all that was wrong."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from property_tests.torture.destination import Delivery
from property_tests.torture.steps import CLIENT, DRIVER, SERVER, TASK

WHO = (DRIVER, TASK, SERVER, CLIENT)


@dataclass(frozen=True, kw_only=True)
class Found:
    """What readers have found of rows ``0`` to ``expected``.

    Attributes:
        lost: rows that nobody has found.
        strange: what was found and never written.
        doubled: times that a row was found again.
        one_key: as many of these as came under the same key.
    """

    lost: tuple[int, ...]
    strange: tuple[int, ...]
    doubled: int
    one_key: int

    @staticmethod
    def of(deliveries: Iterable[Delivery], expected: int) -> Found:
        """Compare them."""
        keys: defaultdict[int, list[str]] = defaultdict(list)
        for row, key in deliveries:
            keys[row].append(key)
        again = {row: len(each) - 1 for row, each in keys.items()}
        same = (times for row, times in again.items() if len(set(keys[row])) == 1 and keys[row][0])
        return Found(
            lost=tuple(row for row in range(expected) if row not in keys),
            strange=tuple(sorted(row for row in keys if not 0 <= row < expected)),
            doubled=sum(again.values()),
            one_key=sum(same),
        )


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Of any number of histories.

    Attributes:
        kills: how many processes were killed, by who they were.
        failed: lives that ended with an error; some must, while a server is away.
        epochs: micro-batches that were asked for, and committed.
        rows: that were written.
        wrong: what broke a promise, and of which history.
    """

    histories: int = 0
    kills: Mapping[str, int] = field(default_factory=dict)
    failed: int = 0
    epochs: int = 0
    rows: int = 0
    lost: int = 0
    doubled: int = 0
    one_key: int = 0
    wrong: tuple[str, ...] = ()

    def __add__(self, other: Verdict) -> Verdict:
        return Verdict(
            histories=self.histories + other.histories,
            kills=Counter(self.kills) + Counter(other.kills),
            failed=self.failed + other.failed,
            epochs=self.epochs + other.epochs,
            rows=self.rows + other.rows,
            lost=self.lost + other.lost,
            doubled=self.doubled + other.doubled,
            one_key=self.one_key + other.one_key,
            wrong=self.wrong + other.wrong,
        )


_COLUMNS = (
    "histories",
    *(f"{who}s killed" for who in WHO),
    "lives failed",
    "epochs",
    "rows",
    "lost",
    "doubled",
    "under one key",
    "wrong",
)


def table(verdicts: Mapping[str, Verdict]) -> str:
    """A row for each destination, in Markdown."""
    rows: list[Sequence[str]] = [("", *_COLUMNS)]
    rows += [(name, *_cells(verdict)) for name, verdict in verdicts.items()]
    widths = [max(len(row[number]) for row in rows) for number in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def _cells(verdict: Verdict) -> Sequence[str]:
    kills = (verdict.kills.get(who, 0) for who in WHO)
    counts = (verdict.failed, verdict.epochs, verdict.rows, verdict.lost, verdict.doubled, verdict.one_key)
    return [f"{one:,}" for one in (verdict.histories, *kills, *counts, len(verdict.wrong))]
