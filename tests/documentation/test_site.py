"""The site has every page, and what ``make site`` has built needs nobody else to be read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "build" / "site"
#: Attributes by which a browser fetches something at once; an ``href`` of an ``a`` waits for a click.
_FETCHED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}
_NO_FETCH = {"canonical", "prev", "next", "alternate"}

needs_site = pytest.mark.skipif(not BUILT.is_dir(), reason="`make site` has not built it")


class Page(HTMLParser):
    """What a page links to, what it fetches, and the anchors that it has."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.linked: list[str] = []
        self.fetched: list[str] = []
        self.anchors: set[str] = set()
        self.feed(file.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        self.anchors |= {known[name] for name in ("id", "name") if name in known}
        for name, value in known.items():
            if (tag, name) in _FETCHED and known.get("rel") not in _NO_FETCH:
                self.fetched.append(value)
            elif (tag, name) == ("a", "href"):
                self.linked.append(value)


class _Loader(yaml.SafeLoader):
    """Reads the settings without making the objects that they name."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


def test_every_page_is_in_the_navigation_once():
    """A page that nobody can find is not written."""
    config = yaml.load((ROOT / "mkdocs.yml").read_text(), Loader=_Loader)  # noqa: S506 - a safe one
    named = [path for path in _leaves(config["nav"]) if "/" not in path]
    assert sorted(named) == sorted(file.name for file in (ROOT / "docs").glob("*.md"))


def test_every_page_is_in_the_index():
    """Who reads the repository finds them as well."""
    text = (ROOT / "docs" / "index.md").read_text()
    pages = [file.name for file in (ROOT / "docs").glob("*.md") if file.name != "index.md"]
    assert [name for name in sorted(pages) if f"({name})" not in text] == []


def test_the_readme_is_read_in_a_minute_or_four():
    """At most 900 words outside of code."""
    text = re.sub(r"^```.*?^```$", "", (ROOT / "README.md").read_text(), flags=re.MULTILINE | re.DOTALL)
    assert len(re.findall(r"\S+", text)) <= 900


@needs_site
def test_nothing_is_fetched_from_elsewhere():
    """Fonts, scripts, styles and pictures lie beside the pages."""
    found = {
        (file.name, url) for file, page in _pages() for url in page.fetched if re.match(r"(\w+:)?//", url)
    }
    assert found == set()
    styles = [
        file
        for file in BUILT.rglob("*.css")
        if re.search(r"(url\(|@import\s*)[\"']?https?:", file.read_text())
    ]
    assert styles == []


@needs_site
def test_every_link_of_the_site_leads_somewhere():
    """To a file of the site, and to an anchor that it has."""
    pages = dict(_pages())
    assert len(pages) > 30
    broken = {
        (file.name, url)
        for file, page in pages.items()
        for url in (*page.linked, *page.fetched)
        if not re.match(r"[a-z]+:", url) and not _leads_somewhere(file, url, pages)
    }
    assert broken == set()


@needs_site
def test_the_reference_has_every_public_name_and_command():
    """What is public can be looked up."""
    import compaction
    import filesink
    from filesink.cli.app import app

    anchors = {anchor for _, page in _pages() for anchor in page.anchors}
    names = {f"{package.__name__}.{name}" for package in (filesink, compaction) for name in package.__all__}
    assert sorted(names - anchors) == []
    commands = {f"filesink-{command.name}" for command in app.registered_commands}
    assert sorted(commands - anchors) == []


@needs_site
def test_the_reference_has_every_method_of_sinks_and_sources():
    """Also those that they inherit: what users call most, and every option of the builders."""
    import filesink

    anchors = {anchor for _, page in _pages() for anchor in page.anchors}
    kinds = (filesink.FileSink, filesink.FileSinkBuilder, filesink.FileSource, filesink.FileSourceBuilder)
    methods = {
        f"filesink.{kind.__name__}.{name}"
        for kind in kinds
        for name in dir(kind)
        if not name.startswith("_") and callable(getattr(kind, name))
        if not (getattr(kind, name).__doc__ or "").startswith("Call ``build()`` first")
    }
    assert {"filesink.FileSink.write", "filesink.FileSinkBuilder.with_uid"} <= methods
    assert sorted(methods - anchors) == []


@needs_site
def test_the_reference_has_every_finding():
    """A code that ``fsck`` prints can be looked up."""
    from filesink.operations.fsck.kinds import KINDS

    page = Page(BUILT / "reference" / "findings.html")
    assert sorted(set(KINDS) - page.anchors) == []


def _leaves(part: object) -> Iterator[str]:
    match part:
        case str():
            yield part
        case dict():
            for each in part.values():
                yield from _leaves(each)
        case list():
            for each in part:
                yield from _leaves(each)


def _pages() -> Iterator[tuple[Path, Page]]:
    for file in sorted(BUILT.rglob("*.html")):
        if file.name != "404.html":  # its paths are from the root of a server
            yield file, Page(file)


def _leads_somewhere(file: Path, url: str, pages: dict[Path, Page]) -> bool:
    path, _, anchor = unquote(url).partition("#")
    target = (file.parent / path.partition("?")[0]).resolve() if path else file
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return False
    return not anchor or target not in pages or anchor in pages[target].anchors or anchor.startswith("__")
