"""``filesink log`` and ``filesink show``."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Annotated

import typer

from filesink import Epoch, LiveFile, SinkDirectory, StateError
from filesink.cli.call import Call, chains_with
from filesink.cli.command import PathArgument, UidOption, whole_number
from filesink.cli.tables import show_table
from filesink.cli.text import count, file_object, plain, time
from filesink.errors import ConfigError
from formats.sizes import size_text

_COLUMNS = (">version", "visible", "what for", "sink", ">rows", ">files", ">removed", "who")


def log(
    call: Call,
    path: PathArgument,
    uid: UidOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="The newest so many; 0 for all.")] = 20,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for more, until it is interrupted.")
    ] = False,
) -> None:
    """The epochs of all sinks of PATH, in the order of their versions.

    Sink ``exclusive`` is of batch writes that replace files, of operations such as retain, and of compaction;
    ``appends`` is of batch writes that append without a uid.
    """
    whole_number(limit, name="--limit")
    directory = call.open(path)
    epochs = list(directory.epochs())
    chains = chains_with(uid, (epoch.sink for epoch in epochs), directory.path)
    found = list(deque(_of(epochs, chains), maxlen=limit or None))
    _print(call, found)
    if follow:
        with suppress(KeyboardInterrupt):  # how it is ended
            newest = epochs[-1].version if epochs else None
            more = (entry.epoch for entry in directory.follow(newest, wait="forever"))
            for epoch in _of(more, chains):
                _print(call, [epoch])


def _of(epochs: Iterable[Epoch], chains: frozenset[str] | None) -> Iterator[Epoch]:
    return (epoch for epoch in epochs if chains is None or epoch.sink in chains)


def _print(call: Call, epochs: list[Epoch]) -> None:
    if call.json:
        for epoch in epochs:
            call.show(epoch)
    else:
        show_table(call, _COLUMNS, map(_row, epochs))


def _row(epoch: Epoch) -> tuple[str, ...]:
    return (
        str(epoch.version),
        time(epoch.visible),
        _what_for(epoch),
        epoch.sink or "adoption",
        count(epoch.rows),
        count(epoch.files),
        count(epoch.removed) if epoch.removed else "",
        "@".join(part for part in (epoch.user, epoch.host) if part),
    )


def _what_for(epoch: Epoch) -> str:
    match epoch:
        case Epoch(batch_id=int(number)):
            return f"batch {number}"
        case Epoch(mode=str(mode), txn_id=str(txn_id)):
            return f"{mode}, txn {txn_id}"
        case Epoch(mode=str(mode)):
            return mode
        case _:
            return epoch.kind


def show(
    call: Call,
    path: PathArgument,
    version: Annotated[int, typer.Argument(metavar="VERSION", help="See filesink log.")],
) -> None:
    """The epoch that became visible as VERSION: what for, from where, and the files that came and went."""
    whole_number(version, name="VERSION")
    directory = call.open(path)
    epoch = _epoch(directory, version)
    added = list(directory.added(after=version - 1, until=version))
    removed = _removed(directory, version) if epoch.removed else []
    if call.json:
        gone = None if removed is None else list(map(file_object, removed))
        call.show({**plain(epoch), "added": list(map(file_object, added)), "removed_files": gone})
        return
    _print_epoch(call, epoch)
    show_table(
        call,
        (">rows", ">size", "added"),
        ((count(file.rows), size_text(file.size), file.path) for file in added),
    )
    if removed is None:
        call.line("Which files it removed is not remembered any more.")
    elif removed:
        show_table(call, (">size", "removed"), ((size_text(file.size), file.path) for file in removed))


def _epoch(directory: SinkDirectory, version: int) -> Epoch:
    newest = directory.version
    if not 1 <= version <= newest:
        raise ConfigError(
            f"'{directory.path}' has no version {version}; the newest is {newest}, and the first is 1",
            code="NO_VERSION",
        )
    found = next((one for one in directory.epochs(after=version - 1) if one.version == version), None)
    if found is None:
        raise StateError(
            f"version {version} of '{directory.path}' is not remembered any more; filesink log shows what is",
            code="HISTORY_EXPIRED",
        )
    return found


def _removed(directory: SinkDirectory, version: int) -> list[LiveFile] | None:
    """The files that were live before ``version`` and are not with it; ``None`` if nobody knows."""
    try:
        before, after = directory.snapshot(at=version - 1), directory.snapshot(at=version)
    except StateError as error:
        if error.code != "HISTORY_EXPIRED":
            raise
        return None
    kept = set(after.to_arrow()["path"].to_pylist())
    return [file for file in before.files if file.path not in kept]


def _print_epoch(call: Call, epoch: Epoch) -> None:
    call.line(f"version {epoch.version}: {_what_for(epoch)} of {epoch.sink or 'the adoption'}", style="bold")
    facts = {
        "epoch of the sink": str(epoch.slot),
        "query": epoch.query_id or "",
        "decided": time(epoch.decided),
        "visible": time(epoch.visible),
        "rows in": count(epoch.rows),
        "became visible": f"{count(epoch.files, 'file')}, {size_text(epoch.bytes)}",
        "removed": count(epoch.removed, "file") if epoch.removed else "",
        "program": epoch.application,
        "who": "@".join(part for part in (epoch.user, epoch.host) if part),
        "offsets": epoch.source,
    }
    show_table(call, ("", ""), ((name, value) for name, value in facts.items() if value))
    call.line()
