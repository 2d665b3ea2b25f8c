"""The page about a path: true, bounded, and nothing in it can run."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest

import filesink
from filesink.page import facts as page_facts
from filesink.page.document import document
from filesink.page.facts import Facts, facts_of
from filesink.page.markup import joined, tag
from filesink.sink_directory.status import PathStatus
from tests.cli.running import run
from tests.operations.broken_paths import unfinished, whole, with_open_parts
from tests.operations.test_fsck import everything

HOSTILE = "<script>alert(1)</script>"
NOW = datetime(2026, 1, 31, tzinfo=UTC)
ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "p", "div", "span", "b", "i",
    "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "code",
}  # fmt: skip


class Read(HTMLParser):
    """What a browser would take from a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += attrs
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def page_of(path: Path, name: str = "page.html") -> str:
    """What the command writes."""
    file = path.parent / name
    ran = run("report", path, "--html", file)
    assert (ran.code, ran.err) == (0, "")
    return file.read_text(encoding="utf-8")


def check_harmless(page: str) -> Read:
    """Nothing that runs, fetches or leads elsewhere is in it, and every element is closed."""
    read = Read(page)
    assert set(read.tags) <= ALLOWED
    assert read.open == []
    assert {name for name, _ in read.attributes} <= {
        "charset", "class", "content", "http-equiv", "lang", "name", "role", "style", "title", "aria-label",
    }  # fmt: skip
    assert "url(" not in page.lower()
    assert "://" not in page
    return read


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path of several sinks, whose own name is hostile."""
    path = tmp_path_factory.mktemp("page") / "<img src=x onerror=alert(1)>" / "base"
    path.parent.mkdir()
    whole(path)
    return path


def test_the_page_says_what_status_says(base: Path) -> None:
    """Rows, files, version and sinks; looking changes nothing."""
    before = everything(base)
    read = check_harmless(page_of(base))
    assert everything(base) == before
    status = filesink.open(base).status()
    for text in (f"{status.rows:,}", f"{status.files:,}", "uid-u", "uid-v", "k=3", "Nothing is wrong."):
        assert text in read.texts
    assert any(f"version {status.version}" in text for text in read.texts)


def test_a_hostile_path_is_text(base: Path) -> None:
    """It is there as it is spelled, in the title and the heading."""
    read = check_harmless(page_of(base))
    assert str(base) in read.texts
    assert not read.tags["img"]


def test_what_is_wrong_is_on_the_page(tmp_path: Path) -> None:
    """With the command that mends it; names of files in it are no markup."""
    base = tmp_path / "base"
    whole(base)
    next(base.glob("k=2/*.parquet")).unlink()
    (base / "k=2" / f"{HOSTILE[:8]}.parquet").write_bytes(b"x")
    read = check_harmless(page_of(base))
    assert any("FILE_LOST" in text for text in read.texts)
    assert any(f"{HOSTILE[:8]}.parquet" in text for text in read.texts)


def test_damage_leaves_the_rest(tmp_path: Path) -> None:
    """Without an inventory that can be read there is a page that says so."""
    base = tmp_path / "base"
    whole(base)
    for mark in (base / "_filesink/_inventory").iterdir():
        if mark.is_file():
            mark.write_bytes(b"x")
    read = check_harmless(page_of(base))
    assert any(text.startswith("Damaged: ") for text in read.texts)
    assert "uid-u" in read.texts


@pytest.mark.parametrize("make", [with_open_parts, unfinished])
def test_what_waits_is_on_the_page(tmp_path: Path, make) -> None:
    """Rows that no reader sees yet, or an epoch that is not complete."""
    make(tmp_path / "base")
    read = check_harmless(page_of(tmp_path / "base"))
    assert {"open part", "decided, not complete"} & set(read.texts)


def test_a_path_without_epochs_has_a_page(tmp_path: Path) -> None:
    """Zeros, and no error, where a sink has begun and written nothing."""
    base = tmp_path / "base"
    whole(base)
    status = filesink.open(base).status()
    empty = replace(
        status,
        version=None,
        visible=None,
        files=0,
        rows=None,
        bytes=0,
        buckets=0,
        small_files=0,
        sinks=(),
        held=(),
    )
    read = check_harmless(document(facts_with(empty)))
    assert "No epoch is remembered." in read.texts


def facts_with(status: PathStatus, **changes) -> Facts:
    """Facts of nothing, but for ``changes``."""
    checked = filesink.FsckReport(path=status.path, version=None, files=0, opened=0, findings=())
    nothing = Facts(
        now=NOW, status=status, target=2**27, spans=(), newest=None, epochs=0, typical=None, slow=None,
        sizes=(), directories=(), directory_count=0, checked=checked,
    )  # fmt: skip
    return replace(nothing, **changes)


def test_the_page_of_very_many_files_is_small(base: Path) -> None:
    """100,000 files in 50,000 directories with long names, 100,000 epochs: everything is added up."""
    number = 100_000
    rows = pa.table({
        "bucket": [f"{HOSTILE}{one // 2:0200d}" for one in range(number)],
        "size": [1000 * one for one in range(number)],
        "rows": list(range(number)),
    })  # fmt: skip
    found = list(page_facts._directories(rows, 2**25))
    timeline = page_facts._Timeline(
        visible=[1e9 + one for one in range(number)],
        seconds=[one % 7 for one in range(number)],
        rows=[1] * number,
        files=[1] * number,
    )
    facts = facts_with(
        filesink.open(base).status(),
        spans=list(timeline.spans()),
        newest=timeline.newest(),
        epochs=number,
        sizes=list(page_facts._sizes(rows)),
        directories=page_facts._largest(found),
        directory_count=len(found),
    )
    assert sum(one.files for one in facts.sizes) == sum(one.files for one in facts.directories) == number
    assert sum(span.epochs for span in facts.spans) == sum(span.rows for span in facts.spans) == number
    page = document(facts)
    check_harmless(page)
    assert len(page) < 100_000


def test_the_facts_are_those_of_the_files(base: Path) -> None:
    """Classes of sizes and directories count each live file once."""
    directory = filesink.open(base)
    facts = facts_of(directory, filesink.fsck(base, depth="quick"), now=NOW, target=500, small_below=430)
    files = list(directory.snapshot().files)
    assert sum(one.files for one in facts.sizes) == len(files)
    assert sum(one.bytes for one in facts.sizes) == sum(file.size for file in files)
    for one in facts.directories:
        own = [file for file in files if file.bucket == one.name]
        assert (one.files, one.rows) == (len(own), sum(file.rows or 0 for file in own))
        assert one.small_files == sum(file.size < 430 for file in own)
    assert facts.epochs == len(list(directory.epochs()))
    assert facts.spans[0].start + timedelta(seconds=60) > next(directory.epochs()).visible


@pytest.mark.parametrize("child", ["<b>", '"', "&amp;", "'", "\u202ex", "\x00", "\ud800"])
def test_text_is_text(child: str) -> None:
    """Whatever it is made of, in an element and in an attribute."""
    made = tag("p", child, title=child)
    read = Read(made)
    assert read.tags == {"p": 1}
    assert len(read.texts) == len(read.attributes) == 1
    assert made.encode()
    assert joined(made, None, child).startswith(made)


@pytest.mark.parametrize("option", [("--target", "x"), ("--small-below", "-1")])
def test_sizes_are_checked(base: Path, option: tuple[str, str]) -> None:
    """A wrong use."""
    ran = run("report", base, "--html", base.parent / "never.html", *option)
    assert ran.code == 2
    assert not (base.parent / "never.html").exists()


def test_a_file_that_cannot_be_written(base: Path, tmp_path: Path) -> None:
    """One sentence."""
    ran = run("report", base, "--html", tmp_path / "no" / "page.html")
    assert ran.code == 3
    assert "cannot be written" in ran.err
