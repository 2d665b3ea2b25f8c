"""What calls of a store answer, where there is more than one good answer; imported from ``storage.api``."""

from __future__ import annotations

from enum import Enum


class Deletion(Enum):
    """Outcome of ``Store.delete_if_unchanged``."""

    GONE = "gone"  # now, or earlier
    CHANGED = "changed"  # another file stands there, and was left alone


class Removal(Enum):
    """What ``Store.removal`` has found out."""

    ALLOWED = "allowed"
    REFUSED = "refused"  # by the credentials, or a rule of the store


class PutResult(Enum):
    """Outcome of ``Store.put_if_absent``."""

    CREATED = "created"
    EXISTS = "exists"
