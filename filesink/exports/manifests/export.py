"""``ManifestExport``.

Rules:
1. Manifests are numbered from 0, and each is created if absent by who has read the one before: one chain.
2. ``entries`` of a manifest are files with rows that no manifest before has had. ``rewritten`` files hold
   only rows that earlier manifests have listed. Who loads the ``entries`` of each one loads every row once. A
   rollback that is not exported by itself, but with other versions, is listed among ``entries``.
3. The newest manifest has the version. A snapshot comes before it, and is true whether it comes or not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from filesink.arguments import one_of
from filesink.errors import CommitStateUnknown, ExportError
from filesink.exports.api import Exporter
from filesink.exports.listed import step, turns
from filesink.sink_directory.beside import remove_empty, store_beside
from filesink.sink_directory.directory import SinkDirectory
from filesink.storage.api import PutResult, Store

DIRECTORY: Final = "_manifests"
SNAPSHOTS: Final = f"{DIRECTORY}/snapshots"
_NAME: Final = re.compile(r"(\d{12})\.json")
_KEPT: Final = 2  # snapshots: whoever has begun to read one has time until the next but one


class ManifestExport(Exporter):
    """Keeps lists of files in ``_manifests`` of the path: what each export brought, and all there is.

    Args:
        snapshots: ``"newest"`` for a list of all live files with each export, in ``_manifests/snapshots``,
            of which two stay; ``"none"`` where that is not needed, and would be long.

    Raises:
        ConfigError: ``BAD_VALUE``.
    """

    name = "manifest"

    def __init__(self, *, snapshots: Literal["newest", "none"] = "newest") -> None:
        one_of(snapshots, ("newest", "none"), name="snapshots")
        self._with_snapshots = snapshots == "newest"

    def version(self, directory: SinkDirectory) -> int | None:
        """See ``Exporter.version``."""
        return _newest(directory)[1]

    def bring_to(self, directory: SinkDirectory, version: int) -> None:
        """See ``Exporter.bring_to``."""
        store = store_beside(directory)
        for _ in turns(directory, self.name):
            number, before = _newest(directory)
            if before is not None and before >= version:
                return
            manifest = _manifest(directory, before, version)
            if self._with_snapshots:
                self._snapshot(directory, version)
            if _put(store, f"{DIRECTORY}/{number + 1:012d}.json", manifest):
                self._forget(store)
                return

    def named(self, directory: SinkDirectory) -> set[str]:
        """See ``Exporter.named``."""
        return _named(directory)

    def drop(self, directory: SinkDirectory) -> None:
        """Remove all manifests; files stay. The newest go first, so that the rest is one of an older version.

        Raises:
            ExportError: ``FOREIGN_TARGET``, ``CHANGED_TARGET``; nothing was removed.
        """
        _newest(directory)
        store = store_beside(directory)
        for place in (SNAPSHOTS, DIRECTORY):
            for number in reversed(_numbers(store, place)):
                store.delete(f"{place}/{number:012d}.json")
            remove_empty(directory, place)

    @staticmethod
    def _snapshot(directory: SinkDirectory, version: int) -> None:
        files = directory.snapshot(version).files.to_arrow().select(["path", "size", "rows"]).to_pylist()
        value = {"entries": _entries(directory, files), **_author(directory, version)}
        _put(store_beside(directory), f"{SNAPSHOTS}/{version:012d}.json", value)

    @staticmethod
    def _forget(store: Store) -> None:
        for version in _numbers(store, SNAPSHOTS)[:-_KEPT]:
            store.delete(f"{SNAPSHOTS}/{version:012d}.json")


def _manifest(directory: SinkDirectory, before: int | None, version: int) -> dict[str, Any]:
    found = step(directory, before, version, lambda: _named(directory))
    files = found.added.to_arrow().select(["path", "size", "rows", "added"]).to_pylist()
    fresh = [file for file in files if file["added"] not in found.known]
    again = [file for file in files if file["added"] in found.known]
    return {
        "entries": _entries(directory, fresh),
        "rewritten": _entries(directory, again),
        "removed": [f"{_uri(directory)}{path}" for path in found.removed],
        "after": before or 0,
        **_author(directory, version),
    }


def _entries(directory: SinkDirectory, files: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    uri = _uri(directory)
    return [
        {
            "url": f"{uri}{file['path']}",
            "mandatory": True,
            "meta": {
                "content_length": file["size"],
                **({} if file["rows"] is None else {"record_count": file["rows"]}),
            },
        }
        for file in files
    ]


def _author(directory: SinkDirectory, version: int) -> dict[str, Any]:
    author = {"name": "filesink", "version": "1", "path_id": directory.inventory_id, "uri": _uri(directory)}
    return {"version": version, "author": author}


def _uri(directory: SinkDirectory) -> str:
    """What names of files begin with. They are as they are in the store, and not encoded."""
    path = directory.path if "://" in directory.path else str(Path(directory.path).absolute())
    return path.rstrip("/") + "/"


def _named(directory: SinkDirectory) -> set[str]:
    """The files that all manifests together leave.

    Raises:
        ExportError: ``CHANGED_TARGET``.
    """
    store, uri = store_beside(directory), _uri(directory)
    found: set[str] = set()
    for number in _numbers(store, DIRECTORY):
        value = _read(store, number)
        if "removed" not in value:
            raise _not_ours(directory, number, code="CHANGED_TARGET")
        found.difference_update(value["removed"])
        found.update(entry["url"] for kind in ("entries", "rewritten") for entry in value[kind])
    return {url.removeprefix(uri) for url in found}


def _newest(directory: SinkDirectory) -> tuple[int, int | None]:
    """Number and version of the newest manifest; -1 and ``None`` without any.

    Raises:
        ExportError: ``FOREIGN_TARGET``, ``CHANGED_TARGET``.
    """
    store = store_beside(directory)
    numbers = _numbers(store, DIRECTORY)
    if not numbers:
        return -1, None
    value = _read(store, numbers[-1])
    mine = _author(directory, 0)["author"]
    if value.get("author") == mine:
        return numbers[-1], int(value["version"])
    is_ours = any(_read(store, number).get("author") == mine for number in numbers[:-1])
    raise _not_ours(directory, numbers[-1], code="CHANGED_TARGET" if is_ours else "FOREIGN_TARGET")


def _not_ours(directory: SinkDirectory, number: int, *, code: str) -> ExportError:
    what = f"'{directory.path}/{DIRECTORY}': manifest {number} was not made by us for this path"
    why = "somebody else writes there" if code == "CHANGED_TARGET" else "it is of another one, or was moved"
    return ExportError(
        f"{what}; {why}. Nothing was overwritten. Move the directory away and export again", code=code
    )


def _read(store: Store, number: int) -> dict[str, Any]:
    try:
        value = json.loads(store.read(f"{DIRECTORY}/{number:012d}.json") or b"null")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _numbers(store: Store, place: str) -> list[int]:
    found = (_NAME.fullmatch(entry.name) for entry in store.scan(place))
    return sorted(int(one[1]) for one in found if one)


def _put(store: Store, path: str, value: Any) -> bool:
    data = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    try:
        return store.put_if_absent(path, data) is PutResult.CREATED
    except CommitStateUnknown:
        return False  # the caller looks
