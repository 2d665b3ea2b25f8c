"""What formats raise. The sink turns these into its own errors and adds where it happened.

FormatError     a schema, an option or a value does not fit the format
LimitError      a file holds more than its reader takes
"""

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


class LimitError(FormatError):
    """A file holds more than its reader takes, see ``formats.ReadLimits``; kind ``"value"``.

    Args:
        what: the part of the file that is too large.
        file: its name, or ``"the file"``.
        limit: which one it is, ``"record"`` or ``"file"``.
        size: of the limit, in bytes.
    """

    def __init__(self, what: str, *, file: str, limit: str, size: int) -> None:
        where = "" if file == "the file" else f" in '{file}'"
        super().__init__(
            f"{what}{where} is larger than {size} bytes, the limit. The file may be damaged or malicious; if "
            f"it is neither, read it with a higher limit: bounded(file, limits=ReadLimits({limit}=…))",
            kind="value",
        )
        self.what, self.file, self.limit, self.size = what, file, limit, size

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_limit, (self.what, self.file, self.limit, self.size)


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


def _rebuild_limit(what: str, file: str, limit: str, size: int) -> LimitError:
    return LimitError(what, file=file, limit=limit, size=size)
