"""What MkDocs asks while it builds the site: pages that are made, and links that leave ``docs/``.

Pages of ``docs/`` link to sources and to the files in the root, as a reader of the repository wants. In the
site the pages of the root stand below ``project/``, and each source that is linked to is copied, as text.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))

import generated  # beside this file, which MkDocs loads by its path

ROOT = Path(__file__).parents[2]
PROJECT = ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY", "benchmarks/README", "examples/README")
_LINK = re.compile(r"(?<!`)(?P<text>\[[^\]]*\])\((?P<target>[^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of the Python reference, which are known only now, into the navigation."""
    reference = next(part["Reference"] for part in config.nav or [] if "Reference" in part)
    python = next(part for part in reference if isinstance(part, dict) and "Python" in part)
    python["Python"] = [f"reference/{name}" for name in generated.python_pages()]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is made: the reference, the pages of the root, and all sources that a page links to."""
    made = {"command-line.md": generated.command_line(), "findings.md": generated.findings()}
    for name, text in {**generated.python_pages(), **made}.items():
        files.append(File.generated(config, f"reference/{name}", content=text))
    for name in PROJECT:
        text = (ROOT / f"{name}.md").read_text()
        files.append(File.generated(config, f"project/{name}.md", content=text))
    pages = [file for file in files.documentation_pages() if not file.src_uri.startswith("reference/")]
    for source in sorted({source for file in pages for source in _sources(file)}):
        content = generated.source(ROOT / source)
        files.append(File.generated(config, _copied(source), content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to where their targets are in the site."""
    del config, files
    if page.file.src_uri.startswith("reference/"):
        return markdown
    return _outside_of_code(markdown, lambda text: _LINK.sub(lambda link: _moved(link, page.file), text))


def _outside_of_code(markdown: str, change: Any) -> str:
    parts, end = [], 0
    for code in _CODE.finditer(markdown):
        parts += [change(markdown[end : code.start()]), code.group()]
        end = code.end()
    return "".join([*parts, change(markdown[end:])])


def _moved(link: re.Match[str], file: File) -> str:
    target = link["target"]
    path, hash_sign, anchor = target.partition("#")
    if not path or re.match(r"[a-z]+:", target):
        return link.group()
    place = _in_site(_in_repository(path, file))
    relative = posixpath.relpath(place, posixpath.dirname(file.src_uri) or ".")
    return f"{link['text']}({relative}{hash_sign}{anchor})"


def _in_repository(path: str, file: File) -> str:
    """The path from the root of the repository of what ``file`` links to."""
    uri = file.src_uri
    page = uri.removeprefix("project/") if uri.startswith("project/") else f"docs/{uri}"
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), path))


def _in_site(path: str) -> str:
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path.removesuffix(".md") in PROJECT:
        return f"project/{path}"
    return _copied(path)


def _copied(path: str) -> str:
    return f"sources/{path}.txt"


def _sources(file: File) -> list[str]:
    links = []
    _outside_of_code(file.content_string, lambda text: links.extend(_LINK.finditer(text)) or text)
    targets = [link["target"].partition("#")[0] for link in links]
    paths = [_in_repository(path, file) for path in targets if path and not re.match(r"[a-z]+:", path)]
    return [path for path in paths if _in_site(path).startswith("sources/")]
