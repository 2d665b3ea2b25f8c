"""``filesink report``."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

import filesink
from filesink.cli.call import Call
from filesink.cli.command import PathArgument
from filesink.errors import ConfigError, StorageError
from filesink.exports.found import exporters_beside, exports_beside
from filesink.page.document import document
from filesink.page.facts import facts_of
from formats.errors import FormatError
from formats.sizes import parse_size, size_text

TargetOption = Annotated[
    str, typer.Option("--target", metavar="SIZE", help="The size that files should have.")
]
SmallOption = Annotated[
    str, typer.Option("--small-below", metavar="SIZE", help="Files below this size are small.")
]


def report(
    call: Call,
    path: PathArgument,
    html: Annotated[Path, typer.Option("--html", metavar="FILE", help="Where to; replaced if it is there.")],
    target: TargetOption = "128MiB",
    small_below: SmallOption = "32MiB",
) -> None:
    """A page about PATH: one file of HTML, without scripts, that opens from a disk.

    Its size has a bound, however many files and epochs there are. It shows names of directories and files.
    """
    page = page_of(call, path, now=call.now(), target=target, small_below=small_below)
    try:
        html.write_text(page, encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"'{html}' cannot be written: {error.strerror}; name another place",
            code="NOT_WRITTEN",
        ) from error
    if call.json:
        call.show({"html": str(html), "bytes": len(page.encode())})
    else:
        call.line(f"{html}, {size_text(len(page.encode()))}")


def page_of(call: Call, path: str, *, now: datetime, target: str, small_below: str) -> str:
    """The page as it is now.

    Raises:
        ConfigError: no sink has written to ``path``, or a size cannot be read.
    """
    sizes = _size(target, "--target"), _size(small_below, "--small-below")
    directory = call.open(path)
    checked = filesink.fsck(path, call.options, depth="quick", exporters=exporters_beside())
    exports = exports_beside(directory)
    return document(facts_of(directory, checked, exports, now=now, target=sizes[0], small_below=sizes[1]))


def _size(text: str, name: str) -> int:
    try:
        return parse_size(text, name=name)
    except FormatError as error:
        raise ConfigError(error.message, code="BAD_VALUE") from error
