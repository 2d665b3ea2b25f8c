"""``filesink ls``, ``filesink files`` and ``filesink du``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated

import typer

from filesink import LiveFile, SinkDirectory
from filesink.cli.call import Call, chains_with
from filesink.cli.command import PathArgument, UidOption, whole_number
from filesink.cli.tables import show_table
from filesink.cli.text import clean, count, file_object
from filesink.errors import ConfigError
from formats.sizes import size_text

AtOption = Annotated[
    int | None, typer.Option("--at", metavar="VERSION", help="An older version; the newest by default.")
]
_Bucket = Annotated[
    str | None, typer.Argument(metavar="[BUCKET]", help="A directory below PATH, such as day=2026-01-31.")
]


def ls(
    call: Call, path: PathArgument, bucket: _Bucket = None, uid: UidOption = None, at: AtOption = None
) -> None:
    """The live files of PATH, by directory."""
    directory = call.open(path)
    found = _live(directory, bucket, uid, at)
    if call.json:
        for file in found:
            call.show(file_object(file))
        return
    for name, files in groupby(found, key=lambda file: file.bucket):
        call.line(f"{name or '.'}/", style="bold")
        show_table(
            call,
            (">size", ">rows", ">since", "file"),
            (
                (size_text(file.size), count(file.rows), str(file.added), file.path.rpartition("/")[2])
                for file in files
            ),
        )


def files(
    call: Call, path: PathArgument, bucket: _Bucket = None, uid: UidOption = None, at: AtOption = None
) -> None:
    """The paths of live files, one in each line, for other programs."""
    directory = call.open(path)
    for file in _live(directory, bucket, uid, at):
        whole = f"{directory.path.rstrip('/')}/{file.path}"
        if call.json:
            call.show({"path": whole})
        else:
            call.whole(clean(whole))


def _live(
    directory: SinkDirectory, bucket: str | None, uid: str | None, at: int | None
) -> Iterator[LiveFile]:
    snapshot = directory.snapshot() if at is None else directory.snapshot(at=whole_number(at, name="--at"))
    sinks = () if uid is None else snapshot.to_arrow()["sink"].unique().to_pylist()
    chains = chains_with(uid, map(str, sinks), directory.path)
    below = None if bucket is None else bucket.strip("/")
    found = (file for file in snapshot.files if below is None or _is_below(file.bucket, below))
    first = next(found, None)
    if first is None and below:
        raise ConfigError(
            f"version {snapshot.version} of '{directory.path}' has no files in '{below}'; filesink du lists "
            "the directories that have some",
            code="NO_DIRECTORY",
        )
    some = [] if first is None else [first]
    return (file for part in (some, found) for file in part if chains is None or file.sink in chains)


def _is_below(bucket: str, directory: str) -> bool:
    return not directory or bucket == directory or bucket.startswith(f"{directory}/")


@dataclass(slots=True)
class _Sum:
    """What is in one directory."""

    files: int = 0
    rows: int | None = 0
    bytes: int = 0

    def add(self, file: LiveFile) -> None:
        self.files += 1
        self.bytes += file.size
        self.rows = None if self.rows is None or file.rows is None else self.rows + file.rows


def du(
    call: Call,
    path: PathArgument,
    depth: Annotated[int, typer.Option("--depth", "-d", help="Levels of directories.")] = 1,
    at: AtOption = None,
) -> None:
    """How much the live files of each directory are, the largest first, and what is held back."""
    whole_number(depth, name="--depth")
    directory = call.open(path)
    sums = _sums(_live(directory, None, None, at), depth)
    if call.json:
        for name, one in sums.items():
            call.show({"directory": name, "files": one.files, "rows": one.rows, "bytes": one.bytes})
        return
    _print_sums(call, sums)
    held = sum(part.bytes for part in directory.status().held)
    if held:
        call.line(f"held back, and not visible yet: {size_text(held)}; see filesink status")


def _print_sums(call: Call, sums: dict[str, _Sum]) -> None:
    total = _Sum()
    for one in sums.values():
        total.files, total.bytes = total.files + one.files, total.bytes + one.bytes
        total.rows = None if total.rows is None or one.rows is None else total.rows + one.rows
    rows = [(name or ".", one) for name, one in sums.items()] + [("all", total)]
    show_table(
        call,
        (">size", ">files", ">rows", ">mean size", "directory"),
        (
            (
                size_text(one.bytes), count(one.files), count(one.rows),
                size_text(one.bytes // one.files) if one.files else "", name,
            )
            for name, one in rows
        ),
    )  # fmt: skip


def _sums(found: Iterable[LiveFile], depth: int) -> dict[str, _Sum]:
    sums: dict[str, _Sum] = {}
    for file in found:
        name = "/".join(file.bucket.split("/")[:depth])
        sums.setdefault(name, _Sum()).add(file)
    return dict(sorted(sums.items(), key=lambda item: -item[1].bytes))
