"""Opens files: whether they end as they should, how many rows they have, and, if asked, all of them."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq

from filesink.errors import StorageError
from filesink.naming import name_of
from filesink.operations.fsck.files import LiveFile
from filesink.operations.fsck.records import avro, json_lines
from filesink.operations.fsck.seen import Draft
from filesink.storage.api import Store
from formats.compressed.decompress import expanded
from formats.errors import FormatError
from formats.file_extensions import OF_CODEC

_AT_A_TIME: Final = 256  # files between two words about progress
_PIECE: Final = 1 << 20  # bytes
_CODECS: Final = {ending: codec for codec, ending in OF_CODEC.items()}
_ENCRYPTED: Final = b"PARE"
#: What reading a file raises because of its bytes.
_OF_BYTES: Final = (pa.ArrowException, OSError, FormatError, EOFError, ValueError)
#: What the system says of one file, and of the store nothing.
_OF_ONE_FILE: Final = frozenset({errno.EACCES, errno.EPERM, errno.EIO})
_Counter = Callable[[BinaryIO], int | None]


def check_contents(
    files: Sequence[LiveFile], store: Store, *, deep: bool, told: Callable[[int, int], object]
) -> Iterator[Draft]:
    """What is wrong inside of ``files``.

    Args:
        files: which are there, with the right size.
        store: where.
        deep: whether to read all of each.
        told: called now and then with the number of files that were opened, and of all.
    """
    counters = _WHOLE if deep else _ENDS

    def look(file: LiveFile) -> Draft | None:
        counter = _counter(file.path, counters, deep=deep)
        return None if counter is None else _checked(file, store, counter)

    for start in range(0, len(files), _AT_A_TIME):
        some = files[start : start + _AT_A_TIME]
        yield from (draft for draft in store.runner.run(look, some) if draft is not None)
        told(start + len(some), len(files))


def is_opened(path: str, *, deep: bool) -> bool:
    """Whether ``check_contents`` opens the file."""
    return _counter(path, _WHOLE if deep else _ENDS, deep=deep) is not None


def _checked(file: LiveFile, store: Store, counter: _Counter) -> Draft | None:
    try:
        with store.open_input(file.path) as stream:
            rows = counter(stream)
    except FileNotFoundError:  # removed since it was listed
        return None
    except StorageError as error:
        if error.code not in {"PERMISSION", "IO"}:
            raise
        return _not_read(file)
    except _OF_BYTES as error:
        if isinstance(error, OSError) and error.errno in _OF_ONE_FILE:
            return _not_read(file)
        if isinstance(error, OSError) and error.errno is not None:
            raise
        return Draft("FILE_TORN", file.path, f"reading it failed with {type(error).__name__}")
    if rows is None or file.rows is None or rows == file.rows or _was_joined(file):
        return None
    return Draft("FILE_ROWS", file.path, f"it has {rows:,} rows, and its epoch has written {file.rows:,}")


def _not_read(file: LiveFile) -> Draft:
    return Draft("FILE_UNREAD", file.path, "this user may not read it, or its device fails")


def _was_joined(file: LiveFile) -> bool:
    """Whether offline compaction has joined lines that nobody has counted."""
    return not file.rows and not any(ending in name_of(file.path) for ending in _ENDS)


def _counter(path: str, counters: Mapping[str, _Counter], *, deep: bool) -> _Counter | None:
    endings = [f".{ending}" for ending in name_of(path).split(".")[1:]]
    codec = _CODECS.get(endings[-1]) if endings else None
    inner = next((counters[ending] for ending in endings if ending in counters), None)
    if codec is None:
        return inner
    if not deep:
        return None
    return lambda file: (inner or _read)(expanded(file, codec))


def _ends_parquet(file: BinaryIO) -> int | None:
    return None if _is_encrypted(file) else pq.ParquetFile(file).metadata.num_rows


def _is_encrypted(file: BinaryIO) -> bool:
    """Whether its footer is: nobody reads it without the keys."""
    found = file.read(len(_ENCRYPTED)) == _ENCRYPTED
    file.seek(0)
    return found


def _ends_orc(file: BinaryIO) -> int:
    opened: Any = po.ORCFile(file)
    return int(opened.nrows)


def _ends_arrow(file: BinaryIO) -> None:
    _open_arrow(file)


def _open_arrow(file: Any) -> pa.ipc.RecordBatchFileReader:
    return pa.ipc.open_file(file)


def _parquet(file: BinaryIO) -> int | None:
    if _is_encrypted(file):
        return None
    opened = pq.ParquetFile(file, page_checksum_verification=True)
    return sum(batch.num_rows for batch in opened.iter_batches())


def _orc(file: BinaryIO) -> int:
    opened: Any = po.ORCFile(file)
    return sum(opened.read_stripe(number).num_rows for number in range(opened.nstripes))


def _arrow(file: BinaryIO) -> int:
    opened = _open_arrow(file)
    batches = (opened.get_batch(number) for number in range(opened.num_record_batches))
    total = 0
    for batch in batches:
        batch.validate(full=True)
        total += batch.num_rows
    return total


def _read(file: BinaryIO) -> None:
    """All of it, for what a codec checks."""
    while file.read(_PIECE):
        pass


_ENDS: Final[Mapping[str, _Counter]] = {
    ".parquet": _ends_parquet, ".orc": _ends_orc, ".arrow": _ends_arrow,
}  # fmt: skip
_WHOLE: Final[Mapping[str, _Counter]] = {
    ".parquet": _parquet, ".orc": _orc, ".arrow": _arrow, ".json": json_lines, ".avro": avro, ".csv": _read,
    ".txt": _read,
}  # fmt: skip
