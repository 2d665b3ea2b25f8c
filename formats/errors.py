"""What formats raise. The sink turns these into its own errors and adds where it happened."""

from __future__ import annotations

_LONGEST = 300  # characters of somebody else's message within ours
_OURS = ("formats.", "filesink.", "compaction.")


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


def told(error: BaseException, *, by: object = None) -> str:
    """What went wrong in a user's code, for a message of ours: kind and words, in one line.

    Args:
        error: what the code has raised.
        by: whose code; of our own classes it is the kind alone, since their causes may hold values.
    """
    kind = type(error).__name__
    words = " ".join(str(error).encode(errors="backslashreplace").decode().split())[:_LONGEST]
    return kind if not words or type(by).__module__.startswith(_OURS) else f"{kind}: {words}"
