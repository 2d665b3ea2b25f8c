"""What exports of tables ask of a version: which files came and went, which columns and partitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import repeat

import pyarrow as pa
import pyarrow.types as pt

from filesink.buckets.partition_paths import partition_values
from filesink.errors import ExportError, StateError
from filesink.sink_directory.directory import SinkDirectory
from filesink.sink_directory.live_files import LiveFiles
from formats import columns
from formats.arrow import pc

_REWRITES = frozenset({"offline-compaction"})  # kinds of epochs that replace files by others with their rows
_TURNS = 5  # each after all repeats of a call that gets no answer
_ERASE, _ROLLBACK = "erase", "rollback"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What leads a target from the version it is at to another.

    Attributes:
        added: files that it has to be told of.
        removed: paths of files that it has to forget, and the version that removed each.
        rewrites: versions that added and removed nothing but the same rows in other files.
        known: versions whose added files hold only rows that the target has had before, as ``rewrites``.
        adopts: whether somebody has looked up the files of the path anew in between.
    """

    added: LiveFiles
    removed: dict[str, int] = field(default_factory=dict)
    rewrites: frozenset[int] = frozenset()
    known: frozenset[int] = frozenset()
    adopts: bool = False


def step(directory: SinkDirectory, before: int | None, version: int, known: Callable[[], set[str]]) -> Step:
    """From ``before``, ``None`` for an empty target, to ``version``.

    Args:
        directory: the path.
        before: the version that the target is at.
        version: the one it is to have.
        known: the paths that the target has now; asked for if the inventory has forgotten ``before``.
    """
    if before is None:
        return Step(added=directory.snapshot(version).files, adopts=True)
    try:
        changes = directory.changes(before, version)
        is_plain = not changes.removed.num_rows and _are_told(changes.added)
        found = [] if is_plain else directory.epochs(before)
        epochs = [epoch for epoch in found if epoch.version <= version]
    except StateError as error:
        if error.code != "HISTORY_EXPIRED":
            raise
        return _compared(directory, version, known())
    removed = dict(zip(*changes.removed.to_pydict().values(), strict=True))
    gone = Counter(removed.values())
    # If one of its inputs came after ``before``, the target never had it, and the rows are new to it.
    whole = [one for one in epochs if gone[one.version] == one.removed]
    rewrites = {one.version for one in whole if one.kind in _REWRITES}
    erasures = {one.version for one in whole if one.kind == _ERASE}
    # What a rollback brings back was in some version before it; of which files, nobody has noted.
    rollbacks = {one.version for one in epochs if one.kind == _ROLLBACK and one.version == before + 1}
    return Step(
        added=changes.added,
        removed=removed,
        rewrites=frozenset(rewrites),
        known=frozenset(rewrites | erasures | rollbacks),
        adopts=any(one.kind == "adopted" for one in epochs),
    )


def _are_told(files: LiveFiles) -> bool:
    """Whether an epoch has told the columns of all ``files``: then nobody has adopted or rewritten any."""
    return bool(pc.all(pc.not_equal(files.to_arrow()["schema"].cast(pa.string()), ""), min_count=0).as_py())


def _compared(directory: SinkDirectory, version: int, there: set[str]) -> Step:
    """From a target with the files ``there``, whose version nobody remembers."""
    live = directory.snapshot(version).files.to_arrow()
    is_new = pc.invert(pc.is_in(live["path"], value_set=pa.array(there, pa.string())))
    gone = there.difference(live["path"].to_pylist())
    return Step(added=LiveFiles(live.filter(is_new)), removed=dict.fromkeys(gone, version), adopts=True)


def columns_of(directory: SinkDirectory, version: int) -> pa.Schema:
    """The columns that all records have together, as tables declare them; none if nobody has noted any.

    All may be null, since older files may lack some. The zone of an instant says only how it is shown, and
    logs of tables have none: it is UTC.

    Raises:
        SchemaError: ``TWO_SCHEMAS``, one name has two types.
    """
    try:
        found = directory.snapshot(version).columns(on_other_schema="union")
    except StateError as error:
        if error.code != "NO_SCHEMA":
            raise
        return pa.schema([])
    return pa.schema([columns.nullable(field, _in_utc).remove_metadata() for field in found])


def _in_utc(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp(kind.unit, "UTC") if pt.is_timestamp(kind) and kind.tz is not None else kind


def partitions_of(directory: SinkDirectory, files: LiveFiles, name: str) -> tuple[str, ...] | None:
    """The partition columns of ``files``, in the order of the directories; ``None`` if there are no files.

    Raises:
        ExportError: ``NOT_EXPORTABLE``, directories have different ones, or files are not Parquet.
    """
    table = files.to_arrow()
    is_parquet = pc.ends_with(table["path"], ".parquet")
    if not pc.all(is_parquet, min_count=0).as_py():
        other = table["path"].filter(pc.invert(is_parquet))[0].as_py()
        raise not_exportable(directory, name, f"'{other}' is not Parquet")
    found = {tuple(key for key, _ in partition_values(bucket)) for bucket in buckets_of(files)}
    if len(found) > 1:
        one, other = sorted(found)[:2]
        what = f"some directories have partition columns {list(one)}, and others {list(other)}"
        raise not_exportable(directory, name, what)
    return found.pop() if found else None


def buckets_of(files: LiveFiles) -> Iterable[str]:
    """The directories of ``files``, once each."""
    return map(str, pc.unique(files.to_arrow()["bucket"].cast(pa.string())).to_pylist())


def turns(directory: SinkDirectory, name: str) -> Iterator[None]:
    """Chances to add the next entry of a target, each after a new look at it. A return ends them.

    Raises:
        ExportError: ``NO_PROGRESS``, all of them were in vain.
    """
    yield from repeat(None, _TURNS)
    raise ExportError(
        f"export {name} of '{directory.path}' has tried {_TURNS} times to add an entry: other drivers are "
        "faster, or answers of the store get lost. Nothing is half done. The next epoch tries "
        "again, and so does filesink export",
        code="NO_PROGRESS",
    )


def no_such_columns(directory: SinkDirectory, name: str, error: Exception) -> ExportError:
    """The library of the target has no type for a column. Below its first line may be a native backtrace."""
    reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return not_exportable(directory, name, f"{name.capitalize()} has no such columns ({reason})")


def not_exportable(directory: SinkDirectory, name: str, why: str) -> ExportError:
    """The target cannot hold what the path has."""
    return ExportError(
        f"export {name} cannot hold '{directory.path}': {why}. Read the path by listing it, or write what "
        "differs to a path of its own",
        code="NOT_EXPORTABLE",
    )
