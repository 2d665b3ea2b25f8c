"""A user's row-at-a-time encoder as an ``Encoder``. The slow path: every record becomes a dict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from formats.api import BaseEncoder, RowEncoder
from formats.errors import FormatError, told

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from formats.api import Buffer


class PerRowEncoder(BaseEncoder):
    """Calls ``row_encoder`` for every record.

    Args:
        row_encoder: the user's; pickled with this encoder.
    """

    def __init__(self, row_encoder: RowEncoder) -> None:
        if not isinstance(row_encoder, RowEncoder):
            raise FormatError("a row encoder must extend formats.RowEncoder", kind="option")
        self._row_encoder = row_encoder
        self.extension = row_encoder.extension

    def encode(self, batch: pa.RecordBatch) -> Buffer:
        """See ``Encoder.encode``.

        Raises:
            FormatError: kind ``"value"``; the user's encoder raised (its error is the cause) or
                returned something else than bytes.
        """
        return b"".join(map(self._one, _rows(batch)))

    def signature(self) -> str:
        """See ``Encoder.signature``; the user's, which names the user's options."""
        return f"per row {self._row_encoder.signature()}"

    def check_continues(self, old: pa.Schema, new: pa.Schema) -> None:
        """See ``Encoder.check_continues``: only the user knows what columns become."""
        del old, new

    def _one(self, row: Mapping[str, Any]) -> bytes:
        name = type(self._row_encoder).__qualname__
        try:
            encoded = self._row_encoder.encode(row)
        except Exception as error:  # a user's code may raise anything; all of it is raised on
            raise FormatError(f"{name}.encode raised {told(error)}", kind="value") from error
        if not isinstance(encoded, bytes):
            raise FormatError(
                f"{name}.encode returned {type(encoded).__name__}, not bytes",
                kind="value",
            )
        return encoded


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    try:
        rows: list[dict[str, Any]] = batch.to_pylist()
    except (ValueError, OverflowError, KeyError) as error:
        raise FormatError(
            "a value has no Python form, such as a date after 9999: cast it", kind="value"
        ) from error
    return rows
