"""``filesink serve``."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from filesink.cli.call import Call
from filesink.cli.commands.report import SmallOption, TargetOption, page_of
from filesink.errors import StorageError
from filesink.page.server import Page, PageServer


def serve(
    call: Call,
    paths: Annotated[list[str], typer.Argument(metavar="PATH…", help="Base paths of sinks.")],
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 for any that is free.")] = 8470,
    every: Annotated[
        int, typer.Option("--every", metavar="SECONDS", help="How old a page may get.", min=1, max=86_400)
    ] = 10,
    target: TargetOption = "128MiB",
    small_below: SmallOption = "32MiB",
) -> None:
    """The page of ``report`` for each PATH, live, on this machine alone; until it is interrupted.

    It cannot change anything. Each look lists the whole path: at most every few seconds, and
    while a page is open.
    """
    pages = [_page(call, path, every, target, small_below) for path in paths]
    try:
        server = PageServer(pages, port=port)
    except OSError as error:
        raise StorageError(f"port {port} cannot be used: {error.strerror}", code="PORT") from error
    with server:
        if call.json:
            call.show({"url": server.url})
        else:
            call.line(f"{server.url} shows {', '.join(paths)}; Ctrl-C ends it")
        try:
            server.serve_forever()
        except KeyboardInterrupt:  # how it is ended
            return


def _page(call: Call, path: str, every: int, target: str, small_below: str) -> Page:
    make = partial(_made, call, path, target, small_below)
    return Page(name=call.open(path).path, make=make, clock=call.clock, every_ms=every * 1000)


def _made(call: Call, path: str, target: str, small_below: str) -> str:
    return page_of(call, path, now=call.now(), target=target, small_below=small_below)
