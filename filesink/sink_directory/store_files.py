"""The files of a snapshot as a file system of Arrow: to read, and nothing else.

A file that is not there any more was removed since: the error says so, and which version to read instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.fs as pf

from filesink.errors import StorageError
from filesink.naming import join
from filesink.storage.api import Store


class StoreFiles(pf.FileSystemHandler):
    """Opens files of one store.

    Args:
        store: where they are.
        local: the base path if it is a directory of this machine, which Arrow reads by itself; else ``None``.
        gone: the error for a path that is not there.
    """

    def __init__(self, store: Store, local: str | None, gone: Callable[[str], StorageError]) -> None:
        self._store = store
        self._local = local
        self._gone = gone

    def get_type_name(self) -> str:
        """See ``pyarrow.fs.FileSystemHandler``; as all methods here."""
        return "filesink"

    def normalize_path(self, path: str) -> str:
        """Paths are relative to the base path, and have one spelling."""
        return path

    def get_file_info(self, paths: str | list[str]) -> list[pf.FileInfo]:
        """All are files, of a size that opening them tells."""
        asked = [paths] if isinstance(paths, str) else paths
        return [pf.FileInfo(path, pf.FileType.File) for path in asked]

    def get_file_info_selector(self, selector: pf.FileSelector) -> list[pf.FileInfo]:
        """Nothing is listed: a snapshot knows its files."""
        del selector
        return []

    def open_input_file(self, path: str) -> pa.NativeFile:
        """For reading at any place."""
        try:
            if self._local is not None:
                return pa.OSFile(join(self._local, path), mode="r")
            file: Any = self._store.open_input(path)
            return pa.PythonFile(file, mode="r")
        except FileNotFoundError as error:
            raise self._gone(path) from error

    def open_input_stream(self, path: str) -> pa.NativeFile:
        """For reading from the start."""
        return self.open_input_file(path)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def create_dir(self, path: str, recursive: bool) -> NoReturn:  # noqa: FBT001 - as Arrow calls it
        """Refused."""
        del recursive
        _refuse(path)

    def delete_dir(self, path: str) -> NoReturn:
        """Refused."""
        _refuse(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> NoReturn:  # noqa: FBT001, FBT002 - as Arrow calls it
        """Refused."""
        del missing_dir_ok
        _refuse(path)

    def delete_root_dir_contents(self) -> NoReturn:
        """Refused."""
        _refuse("")

    def delete_file(self, path: str) -> NoReturn:
        """Refused."""
        _refuse(path)

    def move(self, src: str, dest: str) -> NoReturn:
        """Refused."""
        del dest
        _refuse(src)

    def copy_file(self, src: str, dest: str) -> NoReturn:
        """Refused."""
        del dest
        _refuse(src)

    def open_output_stream(self, path: str, metadata: object) -> NoReturn:
        """Refused."""
        del metadata
        _refuse(path)

    def open_append_stream(self, path: str, metadata: object) -> NoReturn:
        """Refused."""
        del metadata
        _refuse(path)


def _refuse(path: str) -> NoReturn:
    raise StorageError(f"'{path}': a snapshot can only be read; write with a sink", code="READ_ONLY")
