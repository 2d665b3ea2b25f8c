"""``filesink status``."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated

import typer

from filesink import HeldPart, PathStatus, SinkState
from filesink.cli.call import Call, Exit, chains_with
from filesink.cli.command import PathArgument, UidOption
from filesink.cli.tables import show_table
from filesink.cli.text import age, count, plain, time
from filesink.exports.found import ExportState, exports_beside
from formats.sizes import size_text

_SHOWN = 20  # held parts
#: Of chains whose ids tell no name that a user has given.
_CHAINS = {
    "appends": "batch writes that append, without a uid",
    "exclusive": "batch writes that replace files, operations such as retain, and offline compaction",
}
_WHY = {
    "open": "its part goes on with the next rows, until its size, its age or the end of the input closes it",
    "waiting": "small files wait for others to be merged with",
}


def status(
    call: Call,
    path: PathArgument,
    uid: UidOption = None,
    small_below: Annotated[
        str, typer.Option("--small-below", metavar="SIZE", help="Files below this size are small.")
    ] = "32MiB",
) -> None:
    """How far PATH is: sinks, last epoch, rows, files, bytes, and what waits and why.

    Exits with 1 if something is damaged; what can be read is shown all the same.
    """
    directory = call.open(path)
    found, exports = directory.status(small_below=small_below), exports_beside(directory)
    # Of a chain that is damaged nothing is known but that.
    ids = (state.id for state in found.sinks)
    chains = None if found.damage else chains_with(uid, ids, found.path)
    sinks = [state for state in found.sinks if chains is None or state.id in chains]
    held = [part for part in found.held if chains is None or part.sink in chains]
    if call.json:
        share = round(found.small_share, 4)
        call.show({**plain(found), "sinks": sinks, "held": held, "small_share": share, "exports": exports})
    else:
        _print(call, found, sinks, held)
        _print_exports(call, exports)
    if found.damage:
        raise typer.Exit(int(Exit.FINDING))


def _print(call: Call, found: PathStatus, sinks: list[SinkState], held: list[HeldPart]) -> None:
    now = call.now()
    _print_version(call, found, now)
    call.line()
    show_table(
        call,
        ("sink", ">epoch", "decided", "state", ">open rows", ">waiting rows", ">waiting partitions"),
        (_row(state, now) for state in sinks),
    )
    _print_held(call, held, now)
    for line in _reasons(sinks, held):
        call.line(line)
    for sentence in found.damage:
        call.line(f"damaged: {sentence}", style="red")
    if found.damage:
        call.line(f"What can be read is shown above. Ask filesink fsck {found.path} for all that is wrong.")


def _print_version(call: Call, found: PathStatus, now: datetime) -> None:
    call.line(found.path, style="bold")
    if found.version is None:
        return
    call.line(f"version {found.version:,}" + (f", {age(found.visible, now)}" if found.visible else ""))
    call.line(
        f"{count(found.files, 'file')}, {count(found.rows, 'row')}, {size_text(found.bytes)}, "
        f"in {found.buckets:,} of its directories"
    )
    if found.small_files:
        call.line(
            f"smaller than {size_text(found.small_below)}: {count(found.small_files, 'file')} "
            f"({found.small_share:.0%}, {size_text(found.small_bytes)})"
        )
    if found.kept_until is not None:
        call.line(
            f"replaced, and kept for readers until {time(found.kept_until)}: "
            f"{count(found.kept_files, 'file')} ({size_text(found.kept_bytes)})"
        )


def _row(state: SinkState, now: datetime) -> tuple[str, ...]:
    return (
        state.id,
        str(state.slot) if state.slot >= 0 else "",
        age(state.decided, now),
        "complete" if state.complete else "decided, not complete",
        count(state.open_rows),
        count(state.waiting_rows),
        count(len(state.waiting_partitions)),
    )


def _print_held(call: Call, held: list[HeldPart], now: datetime) -> None:
    if not held:
        return
    call.line()
    show_table(
        call,
        ("held back in", "kind", ">files", ">rows", ">size", "since", "last row"),
        (
            (
                part.bucket or ".", part.kind, count(part.files), count(part.rows), size_text(part.bytes),
                time(part.since), age(part.changed, now),
            )
            for part in held[:_SHOWN]
        ),
    )  # fmt: skip
    if len(held) > _SHOWN:
        call.line(f"and {len(held) - _SHOWN:,} more; --json has all")


def _print_exports(call: Call, exports: list[ExportState]) -> None:
    for one in exports:
        if one.version is None:
            call.line(f"export {one.name}: {one.error}", style="red")
        else:
            how = f"{count(one.behind or 0, 'version')} behind" if one.behind else "the newest"
            call.line(f"export {one.name}: at version {one.version:,}, {how}")


def _reasons(sinks: list[SinkState], held: list[HeldPart]) -> Iterator[str]:
    for kind in sorted({part.kind for part in held}):
        yield f"{kind}: {_WHY[kind]}"
    for state in sinks:
        if state.id in _CHAINS:
            yield f"{state.id}: {_CHAINS[state.id]}"
    for state in sinks:
        if not state.complete:
            yield (
                f"{state.id}: epoch {state.slot} is decided and not complete. Its driver is at work, or has "
                "died; then its next start completes it, or filesink recover"
            )
        if state.waiting_partitions:
            number, some = len(state.waiting_partitions), ", ".join(state.waiting_partitions[:3])
            yield f"{state.id}: {count(number, 'partition')} to be announced later, such as {some}"
