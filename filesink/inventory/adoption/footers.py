"""Numbers of rows of files that no record tells any more, from the files themselves, where these say it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq

from filesink.naming import name_of
from filesink.storage.api import Store


def rows_of(store: Store, paths: Sequence[str]) -> dict[str, int | None]:
    """Rows of each file; ``None`` if its footer does not say, or cannot be read."""

    def count(path: str) -> int | None:
        counter = next((one for ending, one in _COUNTERS.items() if ending in name_of(path).split(".")), None)
        if counter is None:
            return None
        try:
            with store.open_input(path) as file:
                return counter(file)
        except (pa.ArrowException, OSError):
            return None  # readers will meet this file, too; how many rows it has is not known

    return dict(zip(paths, store.runner.run(count, paths), strict=True))


def _of_parquet(file: BinaryIO) -> int:
    return pq.ParquetFile(file).metadata.num_rows


def _of_orc(file: BinaryIO) -> int:
    opened: Any = po.ORCFile(file)
    return int(opened.nrows)


_COUNTERS: dict[str, Callable[[BinaryIO], int]] = {"parquet": _of_parquet, "orc": _of_orc}
