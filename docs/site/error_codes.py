"""Write docs/reference/error-codes.md: every error by class and code, as the sources make it.

    python docs/site/error_codes.py

What messages leave out is in ``error_notes.toml``, beside.
"""

from __future__ import annotations

import itertools
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from error_messages import Made, Sources

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "error-codes.md"
PACKAGES = ("filesink", "formats", "compaction")
_NOTES = Path(__file__).with_name("error_notes.toml")
_MOST_SHOWN = 4
_MOST_ROOMS = 3

_HEAD = """\
# Errors by code

<!-- Made by docs/site/error_codes.py of the sources and of error_notes.toml beside it. Do not edit. -->

What a [class](../errors.md) means for the data has a page of its own. Words between \u2039\u203a vary.
Below the messages stands where they are made.
"""
_TABLE = "| code | message |\n|---|---|\n"

Notes = dict[str, dict[str, str]]


def page(roots: Sequence[Path], notes: Notes) -> str:
    """The page for the packages at ``roots``, the first of which has the classes of errors."""
    sources = Sources(roots)
    by_class = {
        kind: list(errors) for kind, errors in itertools.groupby(sources.errors(), key=lambda made: made.kind)
    }
    unknown = _unknown(notes, by_class)
    if unknown:
        raise SystemExit(f"{_NOTES.name} has notes for what no source makes: {', '.join(unknown)}")
    seen: set[str] = set()
    parts = [
        _part(kind, sources.kinds[kind], by_class[kind], notes, seen)
        for kind in sources.kinds
        if kind in by_class
    ]
    return "\n".join([_HEAD, *parts])


def notes() -> Notes:
    """What is said by hand, by class and code; ``about`` is of the class itself."""
    return tomllib.loads(_NOTES.read_text())


def _unknown(notes: Notes, by_class: dict[str, list[Made]]) -> list[str]:
    noted = {(kind, code) for kind, codes in notes.items() for code in codes}
    known = {(made.kind, made.code) for errors in by_class.values() for made in errors}
    return [
        f"{kind} {code}" for kind, code in sorted(noted - known) if code != "about" or kind not in by_class
    ]


def _part(kind: str, means: str, errors: list[Made], notes: Notes, seen: set[str]) -> str:
    said = notes.get(kind, {})
    about = f"{said['about']}\n\n" if "about" in said else ""
    rows = (
        _row(code, list(same), said.get(code, ""), seen)
        for code, same in itertools.groupby(errors, key=lambda made: made.code)
    )
    return f"## {kind}\n\n{_markdown(means)}\n\n{about}{_TABLE}{''.join(rows)}"


def _row(code: str, errors: list[Made], note: str, seen: set[str]) -> str:
    anchor = "" if code in seen else f'<a id="{code}"></a>'
    seen.add(code)
    messages = [_markdown(text) for text in dict.fromkeys(made.message for made in errors)]
    marked = [f"• {text}" for text in messages] if len(messages) > 1 else messages
    shown, rest = "<br>".join(marked[:_MOST_SHOWN]), "<br>".join(marked[_MOST_SHOWN:])
    said = f"**{note}**<br>" if note else ""
    more = f"<details><summary>{len(marked) - _MOST_SHOWN} more</summary>{rest}</details>" if rest else "<br>"
    return f"| {anchor}`{code}` | {said}{shown}{more}<small>{', '.join(_rooms(errors))}</small> |\n"


def _rooms(errors: list[Made]) -> Iterator[str]:
    """Where the errors are made: modules, or, if these are many, the packages around them."""
    modules = list(dict.fromkeys(made.module.removeprefix("filesink.") for made in errors))
    packages = list(dict.fromkeys(module.partition(".")[0] for module in modules))
    shown = modules if len(modules) <= _MOST_ROOMS else packages
    yield from shown[: 2 * _MOST_ROOMS]
    if len(shown) > 2 * _MOST_ROOMS:
        yield "…"


def _markdown(text: str) -> str:
    """The text as it stands, for a cell of a table."""
    text = re.sub(r"([\\`*\[\]]|(?<!\w)_|_(?!\w))", r"\\\1", text)
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "&#124;"), ("{", "&#123;")):
        text = text.replace(character, entity)
    return " ".join(text.split())


def main() -> None:
    """Write the page."""
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page([ROOT / package for package in PACKAGES], notes()))


if __name__ == "__main__":
    main()
