"""What ``fsck --deep`` reads of formats without checksums, and files that nobody may read."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import BinaryIO

import pytest

import filesink
from filesink.operations.fsck.records import json_lines
from filesink.parts.file_format import BulkFormat, RowFormat
from filesink.storage.local.posix import PosixFs
from formats import AvroWriterFactory, Encoder
from tests.cli.running import run
from tests.compaction.test_finished import filled
from tests.compaction.test_live import first


def codes(base: Path, depth: str = "deep") -> list[str]:
    """What is found."""
    return [finding.code for finding in filesink.fsck(base, depth=depth).findings]  # type: ignore[arg-type]


def changed(path: Path, offset: int, data: bytes) -> None:
    """As with ``dd conv=notrunc``: size and name stay."""
    content = bytearray(path.read_bytes())
    content[offset : offset + len(data)] = data
    path.write_bytes(content)


@pytest.mark.parametrize("data", [b"Z{", b"\0\0", b"{{", b"\xff\xff"])
def test_json_is_parsed(tmp_path: Path, data: bytes) -> None:
    """A byte that makes it no JSON is found by reading all."""
    filled(tmp_path, form=RowFormat(Encoder.json_lines()), files=1)
    assert codes(tmp_path) == []
    changed(first(tmp_path), 0, data)
    assert codes(tmp_path, "ends") == []
    assert codes(tmp_path) == ["FILE_TORN"]


@pytest.mark.parametrize("offset", [0, -1])
def test_blocks_of_avro_are_walked_through(tmp_path: Path, offset: int) -> None:
    """Their marks are compared."""
    filled(tmp_path, form=BulkFormat(AvroWriterFactory()), files=1)
    assert codes(tmp_path) == []
    path = first(tmp_path)
    changed(path, offset % path.stat().st_size, b"\x55")
    assert codes(tmp_path) == ["FILE_TORN"]


class Lines:
    """A file that is read in pieces."""

    def __init__(self, data: bytes, piece: int) -> None:
        self._data = data
        self._piece = piece

    def read(self, _size: int) -> bytes:
        """Less than was asked for."""
        piece, self._data = self._data[: self._piece], self._data[self._piece :]
        return piece


@pytest.mark.parametrize("piece", [1, 2, 7, 1000])
def test_lines_that_are_cut_anywhere(piece: int) -> None:
    """And columns that change their type, which is nobody's fault."""
    data = '{"a":1}\n{"a":"ü"}\n{"b":{"c":[null,1.5]}}\n{}'.encode()
    assert json_lines(Lines(data, piece)) == 4  # type: ignore[arg-type]
    assert json_lines(Lines(data + b"\n", piece)) == 4  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="JSON"):
        json_lines(Lines(data + b"x", piece))  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO])
def test_a_file_that_nobody_may_read_hides_nothing(
    tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named, other findings are there, and the command says that it could not look."""
    filled(tmp_path, form=RowFormat(Encoder.json_lines()), files=2)
    broken = first(tmp_path)
    locked = min((tmp_path / "y").glob("part-*"))
    changed(broken, 0, b"Z")
    opened = PosixFs.open_read

    def open_read(self: PosixFs, path: str) -> BinaryIO:
        if path.endswith(locked.name):
            raise OSError(number, "no")
        return opened(self, path)

    monkeypatch.setattr(PosixFs, "open_read", open_read)
    assert codes(tmp_path) == ["FILE_TORN", "FILE_UNREAD"]
    ran = run("fsck", tmp_path, "--deep")
    assert ran.code == 3
    assert "FILE_TORN" in ran.out
    assert locked.name in ran.out
