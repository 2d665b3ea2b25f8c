"""Columns of files, each set once: ``<id>.schema``, whose id is a hash of what is in it."""

from __future__ import annotations

import hashlib
from typing import Final

import pyarrow as pa

from filesink.errors import StateCorruptError
from filesink.framing import frame, unframe
from filesink.inventory.names import schema_path
from filesink.inventory.putting import put
from filesink.inventory.rows.segments import ADOPT_AGAIN
from filesink.storage.api import Store

SCHEMA_VERSION: Final = 1
_KIND: Final = "inventory-schema"


def schema_id(columns: bytes) -> str:
    """The id of columns, as Arrow serialises them; ``""`` for none."""
    return hashlib.sha256(columns).hexdigest()[:16] if columns else ""


def put_schema(store: Store, columns: bytes) -> None:
    """Make sure that ``columns`` can be found by their id. Replayable."""
    put(store, schema_path(schema_id(columns)), frame(_KIND, SCHEMA_VERSION, columns))


def read_schema(store: Store, name: str) -> pa.Schema:
    """The columns with the id ``name``.

    Raises:
        StateCorruptError: they are not there, or others are.
        StateVersionError: a newer release has written them.
    """
    path = schema_path(name)
    data = store.read(path)
    if data is None:
        raise StateCorruptError(f"{path} is missing; {ADOPT_AGAIN}", code="VANISHED")
    _, columns = unframe(_KIND, SCHEMA_VERSION, data, where=path)
    if schema_id(columns) != name:
        raise StateCorruptError(f"{path} holds other columns: it was copied here", code="FOREIGN")
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(columns))
        _ = schema.names, list(map(str, schema.types))  # Arrow looks into names only when they are asked for
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise StateCorruptError(f"{path} is malformed: {type(error).__name__}", code="JSON") from error
    return schema
