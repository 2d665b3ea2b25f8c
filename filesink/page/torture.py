"""The page about a trial, from top to bottom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from filesink.operations.torture.torture import TortureReport
from filesink.page.charts import Column, Row, bar, columns, table
from filesink.page.document import plain_page
from filesink.page.markup import Markup, tag
from formats.sizes import size_text


def torture_page(report: TortureReport, now: datetime) -> str:
    """The whole file."""
    return plain_page(report.path, *_body(report, now))


def verdict_of(report: TortureReport) -> str:
    """In a sentence."""
    tried = f"{report.kills:,} kills, {report.epochs:,} epochs, {report.rows:,} rows"
    if report.is_good:
        return f"The promise held: {tried}; nothing lost, nothing twice, nothing half."
    if not report.epochs:
        return f"Nothing was tried: no epoch was written ({tried})."
    return f"THE PROMISE DID NOT HOLD, after {tried}. What was written is left there as evidence."


def _body(report: TortureReport, now: datetime) -> Iterator[Markup]:
    yield tag("p", f"filesink torture, ended {now:%Y-%m-%d %H:%M} UTC")
    yield tag("p", tag("b", verdict_of(report)), class_="good" if report.is_good else "bad")
    yield tag("div", *_tiles(report), class_="tiles")
    yield tag("h2", "Over time")
    yield tag("p", "Rows that the observer has seen; the number of kills so far is on each column")
    yield columns(
        [
            Column(value=one.rows, text=f"{one.seconds} s: {one.rows:,} rows, {one.kills:,} kills")
            for one in report.moments
        ],
        label=f"rows seen over {report.seconds} seconds",
        axis=["0 s", f"{report.seconds:,} s"],
    )
    yield tag("h2", "What writers were at when they were killed")
    most = max(report.killed_while.values(), default=0)
    yield table(
        ["step", ">kills", ""],
        [Row(cells=[step, f"{kills:,}", bar(kills, most)]) for step, kills in report.killed_while.items()],
    )
    yield from _listed("What must not be seen, and was", report.violations)
    yield from _listed("What fsck has found", report.findings)
    yield from _listed("Errors with which writers have ended by themselves", report.errors)


def _tiles(report: TortureReport) -> Iterator[Markup]:
    yield _tile(f"{report.kills:,}", f"kills of {report.writers} writers, {report.starts:,} starts")
    yield _tile(f"{report.epochs:,}", "epochs written")
    yield _tile(f"{report.rows:,}", f"rows in {report.files:,} files, {size_text(report.bytes)}")
    yield _tile(f"{report.looks:,}", "looks at everything")
    wrong = len(report.violations) + len(report.findings) + report.unfinished
    yield _tile(f"{wrong:,}", "things wrong", "bad" if wrong else "good")


def _tile(value: str, what: str, kind: str | None = None) -> Markup:
    return tag("div", tag("b", value, class_=kind), tag("span", what), class_="tile")


def _listed(title: str, sentences: Sequence[str]) -> Iterator[Markup]:
    if sentences:
        yield tag("h2", title)
        yield tag("ul", *(tag("li", sentence) for sentence in sentences))
