"""``filesink serve``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from filesink.cli.call import Call
from filesink.cli.commands.report import SmallOption, TargetOption, page_of
from filesink.cli.jobs import jobs_at
from filesink.errors import ConfigError, StorageError
from filesink.page.server import Page, PageServer

if TYPE_CHECKING:
    from filesink.jobs import Jobs


def serve(
    call: Call,
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="PATH…", help="Base paths of sinks.", show_default=False)
    ] = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 for any that is free.")] = 8470,
    every: Annotated[
        int, typer.Option("--every", metavar="SECONDS", help="How old a page may get.", min=1, max=86_400)
    ] = 10,
    target: TargetOption = "128MiB",
    small_below: SmallOption = "32MiB",
    jobs: Annotated[
        str | None, typer.Option("--jobs", metavar="PATH", help="Show the jobs whose records lie there, too.")
    ] = None,
) -> None:
    """The page of ``report`` for each PATH, and one of jobs, live, on this machine alone.

    It runs until it is interrupted. It cannot change anything. Each look lists the whole path: at most
    every few seconds, and while a page is open.
    """
    shown = [*(paths or []), *([] if jobs is None else [jobs])]
    if not shown:
        raise ConfigError("say what is shown: base paths of sinks, or --jobs PATH", code="PATH_REQUIRED")
    pages = [_page(call, path, every, target, small_below) for path in paths or []]
    if jobs is not None:
        found = jobs_at(call, jobs)
        make = partial(_of_jobs, call, found, jobs)
        pages.append(Page(name=jobs, make=make, clock=call.clock, every_ms=every * 1000))
    try:
        server = PageServer(pages, port=port)
    except OSError as error:
        raise StorageError(
            f"port {port} cannot be used: {error.strerror}; name one that is free, or 0 for any", code="PORT"
        ) from error
    with server:
        if call.json:
            call.show({"url": server.url})
        else:
            call.line(f"{server.url} shows {', '.join(shown)}; Ctrl-C ends it")
        try:
            server.serve_forever()
        except KeyboardInterrupt:  # how it is ended
            return


def _of_jobs(call: Call, jobs: Jobs, path: str) -> str:
    from filesink.cli.job_page import page

    return page(jobs, path, call.now())


def _page(call: Call, path: str, every: int, target: str, small_below: str) -> Page:
    make = partial(_made, call, path, target, small_below)
    return Page(name=call.open(path).path, make=make, clock=call.clock, every_ms=every * 1000)


def _made(call: Call, path: str, target: str, small_below: str) -> str:
    return page_of(call, path, now=call.now(), target=target, small_below=small_below)
