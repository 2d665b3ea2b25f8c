"""Sources read from servers of FTP and SFTP, as fsspec knows them."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from filesink.errors import StorageError
from filesink.source.directories import root_of
from filesink.source.enumerators import RecursiveFileEnumerator
from tests.servers import KEY, SECRET, ftp, sftp


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "server"), [("ftp", ftp), ("sftp", sftp)])
def test_files_are_found_and_read(
    tmp_path: Path, scheme: str, server: Callable[[Path, Path], AbstractContextManager[int]]
) -> None:
    """With size and time, from anywhere within; a wrong password is one sentence."""
    (tmp_path / "a b" / "k=v").mkdir(parents=True)
    (tmp_path / "a b" / "k=v" / "x y.txt").write_bytes(b"hello\nworld\n")
    with server(tmp_path, tmp_path) as port:
        base = f"{scheme}://127.0.0.1:{port}/a b"
        root = root_of(base, {"username": KEY, "password": SECRET})
        found = list(RecursiveFileEnumerator().enumerate_files((root,)))
        assert [(one.path, one.size, one.mtime_ms > 0) for one in found] == [
            (f"{base}/k=v/x y.txt", 12, True)
        ]
        with root.open().open_input("k=v/x y.txt") as file:
            assert (file.seek(0, io.SEEK_END), file.seek(6), file.read()) == (12, 6, b"world\n")
        with pytest.raises(StorageError, match="cannot be opened"):
            root_of(base, {"username": KEY, "password": "wrong"}).open()
