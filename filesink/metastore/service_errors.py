"""What the errors of metastores say, and whether trying again can help. Pure."""

from __future__ import annotations

import re

_MOST = 300  # characters of a sentence of theirs
_SECRET = re.compile(
    r"(?i)((?:password|passwd|pwd|secret\w*|token|credential\w*|access_?key\w*)\s*[=:]\s*)[^\s,;&)\"']+|(://)[^/@\s]+@"
)
_DENIED = re.compile(
    r"(?i)AccessControl|AccessDenied|Access denied|Authorization|Unauthorized|not authorized"
    r"|Permission denied|privilege"
)
_REFUSED = re.compile(
    r"\b(?:NoSuchObject|InvalidObject|InvalidOperation|InvalidInput|InvalidPartition|AlreadyExists|UnknownDB"
    r"|UnknownTable|UnknownPartition|ConfigValSecurity|NoSuchDatabase|NoSuchTable)Exception\b"
)
_AWAY = re.compile(
    r"TTransportException|ConnectException|SocketTimeout|UnknownHost|Connection (?:refused|reset)"
    r"|Could not connect to meta store|SessionHiveMetaStoreClient"
)


#: What to do about a refusal, behind the service's own words.
TO_DO = "Correct the table, create what is missing or grant the right; then start again or call recover()"


def sentence(text: str) -> str:
    """The first line of what a service says, cut short and without secrets, for a message of ours."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "no reason given")
    plain = "".join(char if char.isprintable() else "?" for char in line)
    plain = _SECRET.sub(lambda found: f"{found[1] or found[2]}…" + ("@" if found[2] else ""), plain)
    return plain if len(plain) <= _MOST else f"{plain[:_MOST]}…"


def is_denied(text: str) -> bool:
    """Whether ``text`` is about a missing permission: asking again gives the same answer."""
    return _DENIED.search(text) is not None


def is_refused(text: str) -> bool:
    """Whether ``text`` is about something missing or unfit, by the names of Hive's exceptions."""
    return _REFUSED.search(text) is not None


def is_away(text: str) -> bool:
    """Whether it speaks of a connection to the service that could not be made or broke."""
    return _AWAY.search(text) is not None
