"""Count the words that somebody wrote by hand: README.md and docs/*.md, page by page.

    python docs/site/words.py

Not counted are fenced code, comments, the targets of links, and what a program made: pages that say *Do not
edit*, and whatever stands between ``<!-- made by …`` and ``<!-- end -->``.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
MOST = 20_000

_MADE_PAGE = "Do not edit. -->"
#: What is no word by hand, in this order; an anchor or a picture is an element of HTML.
_LEFT_OUT = tuple(
    re.compile(pattern, re.MULTILINE | re.DOTALL)
    for pattern in (
        r"^```.*?^```$",
        r"^(?: {4}[^\n]*\n)+",
        r"<!-- made by .*?<!-- end -->",
        r"<!--.*?-->",
        r"<[a-z/][^>]*>",
        r"(?<=\])\([^)\s]+\)",
    )
)
_WORD = re.compile(r"\S*[^\W\d_]\S*")


def by_hand(text: str) -> int:
    """The number of words of a page; figures, and signs such as the bars of a table, are none."""
    if _MADE_PAGE in text:
        return 0
    for pattern in _LEFT_OUT:
        text = pattern.sub(" ", text)
    return len(_WORD.findall(text))


def counted() -> dict[str, int]:
    """The number of words by page."""
    return {str(page.relative_to(ROOT)): by_hand(page.read_text()) for page in PAGES}


if __name__ == "__main__":
    words = counted()
    for page, number in [*words.items(), ("all", sum(words.values()))]:
        print(f"{number:6,} {page}")
