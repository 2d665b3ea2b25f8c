"""What an answer of HTTP means for the entries that were sent. Pure.

Rules: success is said by 2xx alone. What may pass by itself is tried again: overload, timeouts, and errors of
the server. 400, 413 and 422 speak of the entries. All else speaks of the address or of who sends, so that no
entry will ever be taken; nothing is left out because of it.
"""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from http import HTTPStatus

from filesink.sinks.asynchronous import Again, Answer, Delivered, Refused, Unusable
from filesink.sinks.http.service import HttpAnswer

_OF_ENTRIES = frozenset({400, 413, 422})
_MAY_PASS = frozenset({408, 425, 429})
_NEVER = frozenset({501, 505, 511})  # not implemented, no such version of HTTP, a login page of the network
_LONGEST_PAUSE_S = 600  # however long the service says


def judged(answer: HttpAnswer) -> Answer:
    """The outcome, by the status."""
    status, why = answer.status, _told(answer.status)
    if 200 <= status < 300:
        return Delivered()
    if status in _OF_ENTRIES:
        return Refused(why=why)
    if status in _MAY_PASS or (500 <= status < 600 and status not in _NEVER):
        return Again(why=why, after_ms=int(1000 * _pause_s(answer)))
    return Unusable(why=why)


def _told(status: int) -> str:
    try:
        return f"HTTP {status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"HTTP {status}"


def _pause_s(answer: HttpAnswer) -> float:
    """Seconds of ``Retry-After``: a number, or a date, which is compared with that of the answer itself."""
    value = answer.headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return min(int(value[:9]), _LONGEST_PAUSE_S)
    try:
        until, now = parsedate_to_datetime(value), parsedate_to_datetime(answer.headers.get("date", ""))
        seconds = (until - now).total_seconds()
    except (TypeError, ValueError):  # no date, or one with and one without a zone
        return 0
    return min(max(seconds, 0), _LONGEST_PAUSE_S)
