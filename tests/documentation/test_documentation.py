"""What README and docs say is true: their code is run, their links lead somewhere, their table is complete.

The blocks of a page are run in their order and share their names, as a reader would run them. Paths
below ``/tmp`` are moved into a directory of the test's own.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import compaction
import filesink
import formats
from filesink import errors
from filesink.storage import os_errors
from filesink.storage.objects.api import EXISTS
from filesink.storage.s3 import errors as s3_errors
from tests.spark.conftest import spark  # noqa: F401 - a fixture; tests name it by usefixtures

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = Path(str(filesink.__file__)).resolve().parents[1]  # where links to sources lead
README = ROOT / "README.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
PAGES = [
    *(README, CONTRIBUTING, ROOT / "SECURITY.md", ROOT / "examples" / "README.md"),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "reference").glob("*.md")),
]
ERRORS = ROOT / "docs" / "errors.md"
CODES = ROOT / "docs" / "reference" / "error-codes.md"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
MOST_NOT_RUN = 3

_BLOCK = re.compile(
    r"(?:<!-- no-run: (?P<reason>[^\n]+) -->\n)?^```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!`)\[[^\]]+\]\((?P<target>[^)\s]+)\)|<img[^>]* src=\"(?P<image>[^\"]+)\"")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_ANCHOR = re.compile(r"<a id=\"([^\"]+)\"></a>")
_PATH = re.compile(r"\b(?:filesink|formats|compaction|tests|property_tests|docs)(?:/\w+)+(?:\.\w+)?")
_STATION = re.compile(r"^(\d+)\. \[(\S+)\]\(\.\./\2\):", re.MULTILINE)
_TARGET = re.compile(r"^([a-z0-9-]+):.*## ", re.MULTILINE)
_MAKE = re.compile(r"(?:^(?: {4})?|`)make ([a-z][a-z0-9-]*)", re.MULTILINE)
_DRAWN = re.compile(r'\["(\d+) (\S+)"\]')
_CLASS_OR_CODE = re.compile(r"^(?:## (\w+)|\| (?:<a id=\"\w+\"></a>)?`([A-Z_]+)` \| .+ \|)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Block:
    """One block of Python in a page; ``line`` is that of its first line of code."""

    page: Path
    line: int
    code: str
    reason: str | None

    def run(self, names: dict[str, Any], directory: Path) -> None:
        """Run it in ``names``; a traceback shows the page and its line."""
        code = "\n" * (self.line - 1) + re.sub(r"(?<=[\"'])/tmp/", f"{directory}/", self.code)
        exec(compile(code, str(self.page), "exec"), names)  # noqa: S102 - our own pages


def blocks(page: Path) -> list[Block]:
    """The blocks of Python of ``page``, in their order."""
    text = page.read_text()
    return [
        Block(
            page=page,
            line=text.count("\n", 0, found.start("code")) + 1,
            code=found["code"],
            reason=found["reason"],
        )
        for found in _BLOCK.finditer(text)
    ]


WITH_CODE = [page for page in PAGES if blocks(page)]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("page", WITH_CODE, ids=[page.name for page in WITH_CODE])
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    """A reader who pastes the blocks of a page one after the other meets no error."""
    names: dict[str, Any] = {"__name__": "__main__"}  # so that classes are pickled as those of a script
    for block in blocks(page):
        if block.reason is None:
            block.run(names, tmp_path)


def test_few_blocks_are_not_run() -> None:
    """What is not run may be false, so it is rare and says why."""
    not_run = [f"{block.page.name}:{block.line}" for page in PAGES for block in blocks(page) if block.reason]
    assert len(not_run) <= MOST_NOT_RUN, not_run


def test_the_example_of_the_readme_is_short() -> None:
    """Fifteen lines at most, which is what the README promises to need."""
    first = blocks(README)[0]
    assert len([line for line in first.code.splitlines() if line.strip()]) <= 15


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link is a file or an image, and its anchor a heading of that page."""
    for target in _links(page):
        path, _, anchor = target.partition("#")
        found = [place for place in _places(page, path) if place.exists()]
        assert found, f"{page.name} links to {target}"
        if anchor:
            assert anchor in _anchors(found[0] if path else page), f"{page.name} links to {target}"


def test_the_table_of_errors_has_every_class() -> None:
    """Each class of ``filesink.errors`` is in docs/errors.md."""
    classes = {name for name, kind in vars(errors).items() if isinstance(kind, type)}
    text = ERRORS.read_text()
    assert [name for name in sorted(classes) if f"`{name}`" not in text] == []


def test_the_table_of_errors_has_every_code() -> None:
    """Each code in the sources has a row, and each row is a code in the sources, with its class."""
    rows = set(_rows_of_codes(CODES.read_text()))
    used = set(_codes_in_sources())
    known = {code for _, code in used}
    assert sorted(code for code in known if code not in {code for _, code in rows}) == []
    assert sorted((kind, code) for kind, code in used if kind and (kind, code) not in rows) == []
    assert sorted((kind, code) for kind, code in rows if code not in known) == []
    assert sorted(kind for kind, _ in rows if not hasattr(errors, kind)) == []


@pytest.mark.parametrize("example", ["toy_format.py", "toy_store.py"])
def test_the_toys_are_small_and_shown(example: str) -> None:
    """Forty lines at most, as CONTRIBUTING says of the finished examples that it links to."""
    path = Path("tests") / "examples" / example
    assert len((ROOT / path).read_text().splitlines()) <= 40
    assert str(path) in set(_links(CONTRIBUTING))


def test_what_pages_tell_to_make_is_in_the_help() -> None:
    """Each ``make`` of theirs is a target, and those for one who changes something are told of."""
    targets = set(_TARGET.findall((ROOT / "Makefile").read_text()))
    told = {page: set(_MAKE.findall(page.read_text())) for page in PAGES}
    assert {page.name: names - targets for page, names in told.items() if names - targets} == {}
    assert {"check", "test", "nightly", "soak", "mutants"} <= told[CONTRIBUTING]


def test_what_the_architecture_names_is_there() -> None:
    """In its drawing, too, whose paths are no links: each is a file or a directory."""
    paths = set(_PATH.findall(ARCHITECTURE.read_text()))
    assert len(paths) > 20
    assert [
        path for path in sorted(paths) if not any(place.exists() for place in _places(README, path))
    ] == []


def test_the_architecture_has_every_room() -> None:
    """Each folder of filesink has a row in the table."""
    rooms = {file.parent.name for file in (INSTALLED / "filesink").glob("*/__init__.py")}
    assert len(rooms) > 9
    rows = [line for line in ARCHITECTURE.read_text().splitlines() if line.startswith("| ")]
    assert [room for room in sorted(rooms) if not any(f"`{room}`" in row.split("|")[1] for row in rows)] == []


def test_the_stations_are_told_as_they_are_drawn() -> None:
    """The same files in the same order, from the door to the report, and none is visited twice."""
    text = ARCHITECTURE.read_text()
    told = _STATION.findall(text)
    assert told == _DRAWN.findall(text)
    assert [int(number) for number, _ in told] == list(range(1, 1 + len(told)))
    assert len({path for _, path in told}) == len(told) > 9


def _links(page: Path) -> Iterator[str]:
    for found in _LINK.finditer(_FENCED.sub("", page.read_text())):
        target = found["target"] or found["image"]
        if not re.match(r"[a-z]+:", target):
            yield target


def _places(page: Path, path: str) -> list[Path]:
    """Where ``path`` may be: beside ``page``, or, for a source, where the packages are installed."""
    relative = os.path.normpath(page.parent.relative_to(ROOT) / path)
    return [ROOT / relative, INSTALLED / relative]


def _anchors(page: Path) -> set[str]:
    """The anchors of the headings of ``page``, by GitHub's rule, and those that its rows carry themselves."""
    text = _FENCED.sub("", page.read_text())
    headings = {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in _HEADING.findall(text)
    }
    return headings | set(_ANCHOR.findall(text))


def _rows_of_codes(page: str) -> Iterator[tuple[str, str]]:
    """Class and code of each row; the class is the heading above it."""
    kind = ""
    for heading, code in _CLASS_OR_CODE.findall(page):
        kind = heading or kind
        if code:
            yield kind, code


def _codes_in_sources() -> Iterator[tuple[str, str]]:
    """Class and code of every error in the packages; the class is ``""`` where a variable holds it."""
    yield from (("StorageError", code) for code in os_errors._ADVICE)
    yield from (("StorageError", code) for code in s3_errors._ADVICE if code != EXISTS)
    trees = [ast.parse(file.read_text()) for file in _sources()]
    yield from (("", code) for tree in trees for code in _chosen_codes(tree))
    makers = dict(maker for tree in trees for maker in _makers(tree))
    for call in (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        kind = name if hasattr(errors, name) else makers.get(name, "")
        values = [keyword.value for keyword in call.keywords if keyword.arg == "code"]
        if not values and name in makers:
            values = call.args[:1]  # ``_refusal("CODE", …)``
        for value in values:
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield kind, value.value


def _chosen_codes(tree: ast.AST) -> Iterator[str]:
    """What a variable ``code`` may be."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["code"]:
            branches = [node.value.body, node.value.orelse] if isinstance(node.value, ast.IfExp) else []
            yield from (str(one.value) for one in branches if isinstance(one, ast.Constant))


def _makers(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Functions that take a code and return an error: their names and the class."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and isinstance(node.returns, ast.Name):
            arguments = [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)]
            if "code" in arguments and hasattr(errors, node.returns.id):
                yield node.name, node.returns.id


def _sources() -> list[Path]:
    packages = [Path(str(package.__file__)).parent for package in (filesink, formats, compaction)]
    return sorted(file for package in packages for file in package.rglob("*.py"))
