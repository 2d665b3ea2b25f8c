"""Locations as metastores write them: whether two mean one place, and where a bucket is. Pure.

Hive writes ``file:/a``, Spark ``file:///a``, a person ``/a``; ``s3://``, ``s3a://`` and ``s3n://`` are
one store under the names of three clients. A location is no URL: it is not percent-decoded.
"""

from __future__ import annotations

import re

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//([^/]*))?(.*)", re.DOTALL)
_SAME_STORE = {"s3a": "s3", "s3n": "s3", "": "file"}
_LOCAL_HOSTS = {"", "localhost"}


def same_place(one: str, other: str) -> bool:
    """Whether two locations name the same directory, as far as their text tells."""
    return _parts(one) == _parts(other)


def bucket_location(table_location: str, base_path: str, bucket: str) -> str:
    """Where a bucket is: in the table's own spelling if the base path is the table's directory."""
    base = table_location if same_place(table_location, base_path) else base_path
    if not _SCHEME.match(base):
        base = f"file:{base}"
    return f"{base.rstrip('/')}/{bucket}" if bucket else base


def _parts(location: str) -> tuple[str, str, str]:
    found = _SCHEME.fullmatch(location)
    scheme, host, path = (found[1].lower(), found[3] or "", found[4]) if found else ("", "", location)
    scheme = _SAME_STORE.get(scheme, scheme)
    if scheme == "file" and host in _LOCAL_HOSTS:
        host = ""
    return scheme, host.lower() if scheme != "s3" else host, "/" + "/".join(filter(None, path.split("/")))
