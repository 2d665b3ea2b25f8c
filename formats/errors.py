"""What formats raise. The sink turns these into its own errors and adds where it happened."""

from __future__ import annotations


class FormatError(ValueError):
    """A schema, an option or a value does not fit the format.

    Args:
        message: what does not fit and what to do; names columns and types, never values.
        kind: ``"schema"``, ``"option"`` or ``"value"``.
    """

    def __init__(self, message: str, *, kind: str = "schema") -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.message, self.kind)


def _rebuild(message: str, kind: str) -> FormatError:
    return FormatError(message, kind=kind)
