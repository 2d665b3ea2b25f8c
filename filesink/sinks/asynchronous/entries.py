"""What is sent: entries, the requests that they travel in, and their keys.

Rules:
1. The key of an entry says where it came from: ``<sink id>/<slot>/<task>/<n>``, n from 0 in its task.
   It is the same however often the entry is sent, also by the next attempt of its task, as far as that gets
   the same rows in the same order.
2. A request is never filled up again, nor joined with another, also not by the next epoch, for which each
   entry is kept with the mark of its request; it gets smaller only if the service has said that it has
   taken the rest, or nothing. So what is sent twice comes under the same key, and who has taken it once
   can tell.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from filesink.errors import StateCorruptError
from filesink.framing import check_field, from_json, to_json


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing to be sent.

    Attributes:
        origin: ``<sink id>/<slot>/<task>``.
        number: n, in that task.
        sent_with: the first number of the request that it was sent in; ``None`` if it was not sent yet.
    """

    origin: str
    number: int
    payload: bytes
    sent_with: int | None = None

    @property
    def key(self) -> str:
        """The idempotency key."""
        return f"{self.origin}/{self.number}"


@dataclass(frozen=True, slots=True)
class Request:
    """Entries of one origin that are sent together.

    Attributes:
        tries: how often it was sent before.
        number: unique in its writer, for each time that it is sent.
        sent_ms: when it was sent.
    """

    entries: tuple[Entry, ...]
    tries: int = 0
    number: int = 0
    sent_ms: int = 0

    @property
    def key(self) -> str:
        """The idempotency key: that of its entry, or of its first and last, or with a hash of all numbers."""
        first, last = self.entries[0], self.entries[-1]
        if first is last:
            return first.key
        if last.number - first.number + 1 == len(self.entries):
            return f"{first.key}-{last.number}"
        numbers = ",".join(str(entry.number) for entry in self.entries)
        return f"{first.key}-{last.number}-{hashlib.sha256(numbers.encode()).hexdigest()[:16]}"


class EntryCodec:
    """Entries as JSON, in the ledger and between processes; payloads are base64."""

    version = 1

    def encode(self, values: Sequence[Entry]) -> bytes:
        """See ``Codec``."""
        return to_json([_fields(entry) for entry in values])

    def decode(self, version: int, data: bytes) -> list[Entry]:
        """See ``Codec``."""
        del version  # there is one
        try:
            return [_entry(*fields) for fields in from_json(data, where="unsent entries")]
        except (TypeError, ValueError) as error:
            raise StateCorruptError("unsent entries are malformed", code="JSON") from error


def _fields(entry: Entry) -> list[str | int]:
    fields: list[str | int] = [entry.origin, entry.number, base64.b64encode(entry.payload).decode()]
    return fields if entry.sent_with is None else [*fields, entry.sent_with]


def _entry(origin: str, number: int, payload: str, sent_with: int | None = None) -> Entry:
    check_field("origin", origin, str)
    check_field("number", number, int)
    check_field("payload", payload, str)
    if sent_with is not None:
        check_field("sent_with", sent_with, int)
    return Entry(origin, number, base64.b64decode(payload, validate=True), sent_with)
