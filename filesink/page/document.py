"""The page, from top to bottom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Final

from filesink.operations.fsck.finding import Finding
from filesink.page.charts import Column, Row, bar, columns, table
from filesink.page.facts import Facts, SizeClass, Span
from filesink.page.markup import Markup, raw, tag
from filesink.page.style import STYLE
from formats.sizes import size_text

_SHOWN: Final = 20  # sinks, and held parts
_FINDINGS: Final = 3  # of each code
#: Nothing is fetched and no script runs, whatever is in the page.
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def document(facts: Facts) -> str:
    """The whole file."""
    return _file(facts.status.path, body(facts))


def plain_page(title: str, *children: Markup) -> str:
    """A page that only says something."""
    return _file(title, tag("main", tag("h1", title), *children))


def _file(title: str, inside: Markup) -> str:
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{title} - filesink"),
        tag("style", raw(STYLE)),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', inside), lang='en')}\n"


def body(facts: Facts) -> Markup:
    """What is inside of ``<body>``."""
    version = "no version" if facts.status.version is None else f"version {facts.status.version:,}"
    return tag(
        "main",
        tag("h1", facts.status.path),
        tag("p", f"{version}, looked at {_time(facts.now)} UTC by filesink"),
        *(tag("p", f"Damaged: {sentence}", class_="bad") for sentence in facts.status.damage[:_SHOWN]),
        tag("div", *_tiles(facts), class_="tiles"),
        *_timeline(facts),
        *_sizes(facts),
        *_directories(facts),
        *_sinks(facts),
        *_held(facts),
        *_exports(facts),
        *_findings(facts),
    )


def _tiles(facts: Facts) -> Iterator[Markup]:
    status = facts.status
    yield _tile("?" if status.rows is None else f"{status.rows:,}", "rows")
    yield _tile(f"{status.files:,}", f"files in {status.buckets:,} directories")
    yield _tile(size_text(status.bytes), "size")
    share = f"{status.small_share:.0%}"
    yield _tile(share, f"of the files below {size_text(status.small_below)}", _warn(status.small_share > 0.5))
    yield _tile(_age(status.visible, facts.now), "since the newest version")
    yield _tile(_seconds(facts.slow), f"until visible, 19 of 20 epochs; half in {_seconds(facts.typical)}")
    waiting = sum(part.rows for part in status.held)
    yield _tile(f"{waiting:,}", "rows wait, hidden")
    bad = sum(finding.severity != "note" for finding in facts.checked.findings)
    yield _tile(f"{bad:,}", "findings of fsck --quick", "bad" if bad else "good")


def _tile(value: str, what: str, kind: str | None = None) -> Markup:
    return tag("div", tag("b", value, class_=kind), tag("span", what), class_="tile")


def _timeline(facts: Facts) -> Iterator[Markup]:
    yield tag("h2", "Epochs")
    if facts.newest is None:
        yield tag("p", "No epoch is remembered.")
        return
    axis = [_time(facts.spans[0].start), f"{facts.epochs:,} epochs", _time(facts.newest)]
    rows = [Column(value=span.rows, text=_told(span)) for span in facts.spans]
    yield tag("p", "Rows that came in, by the time when their epoch was visible")
    yield columns(rows, label=f"rows of {facts.epochs:,} epochs over time", axis=axis)
    yield tag("h2", "From the begin of an epoch until all of it was visible")
    slow = [
        Column(value=span.median or 0, behind=span.longest or 0, text=_told(span)) for span in facts.spans
    ]
    highest = max((span.longest or 0 for span in facts.spans), default=0)
    yield tag("p", f"Half of the epochs, and pale the longest: at most {_seconds(highest)}")
    if highest:
        label = f"seconds until visible over time, at most {_seconds(highest)}"
        yield columns(slow, label=label, axis=axis)


def _told(span: Span) -> str:
    return (
        f"from {_time(span.start)}: {span.epochs:,} epochs, {span.rows:,} rows, {span.files:,} files, "
        f"half in {_seconds(span.median)}, longest {_seconds(span.longest)}"
    )


def _sizes(facts: Facts) -> Iterator[Markup]:
    yield tag("h2", "File sizes")
    reached = any(one.upper >= facts.target for one in facts.sizes)
    line = f"The line is the target, {size_text(facts.target)}"
    none = f"No file is as large as the target, {size_text(facts.target)}"
    yield tag("p", f"{line if reached else none}; small files have another colour")
    most = max((one.files for one in facts.sizes), default=0)
    rows = (
        Row(
            cells=(_class_text(one), bar(one.files, most, is_small=one.upper <= facts.status.small_below),
                   f"{one.files:,}", size_text(one.bytes)),
            kind="target" if one.lower < facts.target <= one.upper else None,
        )
        for one in facts.sizes
    )  # fmt: skip
    yield table(("size", "", ">files", ">together"), rows)


def _class_text(one: SizeClass) -> str:
    return (
        f"{size_text(one.lower)} to {size_text(one.upper)}" if one.lower else f"below {size_text(one.upper)}"
    )


def _directories(facts: Facts) -> Iterator[Markup]:
    yield tag("h2", "Directories")
    named = sum(one.name is not None for one in facts.directories)
    yield tag("p", f"The largest {named:,} of {facts.directory_count:,}")
    most = max((one.bytes for one in facts.directories if one.name is not None), default=0)
    rows = (
        Row(
            cells=(
                tag("td", "all others" if one.name is None else one.name or ".", class_="wide"),
                bar(0 if one.name is None else one.bytes, most),
                size_text(one.bytes), f"{one.files:,}",
                "?" if one.rows is None else f"{one.rows:,}", f"{one.small_files / one.files:.0%}",
            )
        )
        for one in facts.directories
    )  # fmt: skip
    yield table(("directory", "", ">size", ">files", ">rows", ">small"), rows)


def _sinks(facts: Facts) -> Iterator[Markup]:
    yield tag("h2", "Sinks")
    rows = (
        Row(cells=(state.id, str(state.slot) if state.slot >= 0 else "", _age(state.decided, facts.now),
                   "complete" if state.complete else tag("td", "decided, not complete", class_="warn"),
                   f"{state.open_rows:,}", f"{state.waiting_rows:,}", f"{len(state.waiting_partitions):,}"))
        for state in facts.status.sinks[:_SHOWN]
    )  # fmt: skip
    heads = ("sink", ">epoch", ">newest", "state", ">open rows", ">waiting rows", ">waiting partitions")
    yield table(heads, rows)
    yield from _more(len(facts.status.sinks))


def _held(facts: Facts) -> Iterator[Markup]:
    yield tag("h2", "What waits")
    if not facts.status.held:
        yield tag("p", "Nothing: every row that was committed can be read.")
        return
    oldest = sorted(facts.status.held, key=lambda part: part.since)
    rows = (
        Row(cells=(part.bucket or ".", "open part" if part.kind == "open" else "waits to be merged",
                   f"{part.rows:,}", f"{part.files:,}", size_text(part.bytes), _age(part.since, facts.now)))
        for part in oldest[:_SHOWN]
    )  # fmt: skip
    yield table(("directory", "why", ">rows", ">files", ">size", ">since"), rows)
    yield from _more(len(oldest))


def _exports(facts: Facts) -> Iterator[Markup]:
    if not facts.exports:
        return
    yield tag("h2", "Exports")
    rows = (Row(cells=(one.name, _number(one.version), _number(one.behind))) for one in facts.exports)
    yield table(("export", ">version", ">versions behind"), rows)


def _number(value: int | None) -> Markup:
    if value is None:
        return tag("td", "cannot be read", class_="n bad")
    return tag("td", f"{value:,}", class_="n")


def _findings(facts: Facts) -> Iterator[Markup]:
    yield tag("h2", "What fsck --quick has found")
    if not facts.checked.findings:
        yield tag("p", "Nothing is wrong.")
    for _, found in groupby(facts.checked.findings, key=lambda finding: finding.code):
        yield _finding(list(found))


def _finding(found: Sequence[Finding]) -> Markup:
    first = found[0]
    where = [tag("li", tag("code", one.path or "."), f": {one.detail}") for one in found[:_FINDINGS]]
    return tag(
        "div",
        tag("b", f"{first.severity}: {first.code}, {len(found):,}"),
        tag("p", first.meaning),
        tag("ul", *where),
        *_more(len(found), _FINDINGS),
        tag("p", "To mend it: ", tag("code", first.mend if len(found) == 1 else first.mend_all)),
        class_=f"finding {first.severity}",
    )


def _more(number: int, shown: int = _SHOWN) -> Iterator[Markup]:
    if number > shown:
        yield tag("p", f"and {number - shown:,} more", class_="note")


def _warn(is_high: bool) -> str | None:  # noqa: FBT001 - of this module
    return "warn" if is_high else None


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def _age(moment: datetime | None, now: datetime) -> str:
    return "never" if moment is None else _seconds(max(timedelta(0), now - moment).total_seconds())


def _seconds(value: float | None) -> str:
    """``0.3 s``, ``5 min``, ``3 d``."""
    if value is None:
        return "?"
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if value >= 2 * length:
            return f"{value / length:.0f} {unit}"
    return f"{value:.0f} s" if value >= 10 else f"{value:.2g} s"
