"""The one spelling of a base path, and what is said about paths that cannot be one."""

from __future__ import annotations

import re
from os import PathLike, fspath
from pathlib import Path

from filesink.arguments import has_no_bytes
from filesink.errors import ConfigError

_SUPPORTED = "a local path, file:///…, s3://…, az://…, abfss://…, gs://…, hdfs://… and webhdfs://…"
_S3 = "s3://"
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")
_GOOGLES = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<rest>.*)", re.DOTALL)
# Before the first '/', or after a ':' that no port number follows, as secrets may hold a '/'.
_CONTAINER = re.compile(r"[a-z0-9$][a-z0-9-]{2,62}")
# As Spark's own connector has it; what stands before the '@' is no user.
_LAKE = re.compile(
    r"//(?P<container>[a-z0-9$][a-z0-9-]{2,62})@(?P<host>[a-z0-9]{3,24}\.(?:dfs|blob)\.[a-z0-9.-]+)(?P<path>/.*)?",
    re.DOTALL,
)
# Parameters of signed addresses; what follows a '?' would else be a part of the path.
_SIGNED = re.compile(r"[?&](?:sig|sv|signature|awsaccesskeyid|x-(?:amz|goog)-[a-z-]+)=", re.IGNORECASE)
_CREDENTIALS = re.compile(r"//(?:[^/@]*@|[^/@]*:(?![0-9]+(?:/|$))[^@]*@)")
#: Protocols of fsspec that lack something that the contract of stores needs, and what it is.
_REFUSED = {
    "ftp": "a rename there replaces what exists, or not, as the server likes",
    "sftp": "a rename there replaces what exists, or not, as the server likes",
    "http": "it cannot be written to",
    "https": "it cannot be written to",
    "smb": "its client cannot create without replacing; mount the share and use its local path",
    "dbfs": "its client cannot publish without replacing; use the mounted path, /dbfs/…",
    "viewfs": "a rename may lead from one cluster to another; use the hdfs:// path behind it",
}


def check_base_path(base_path: object) -> str:
    """The one spelling of a base path that Spark's tasks can reach: an absolute path or a URI.

    Accepted are local paths, absolute or relative to the current directory, and URIs of the supported
    stores. As in Spark, a URI is taken literally: ``%20`` stands for itself.

    Raises:
        ConfigError: ``PATH_REQUIRED``, ``CREDENTIALS``, ``SCHEME`` or ``BAD_VALUE``. The message
            does not repeat a path that may hold credentials.
    """
    path = spelling(base_path)
    if path.startswith("memory://"):
        raise ConfigError(
            "'memory:' is not supported here: tasks run in other processes, which would not see the files; "
            f"use {_SUPPORTED}",
            code="SCHEME",
        )
    return path


def spelling(base_path: object) -> str:
    """As ``check_base_path``, but ``memory:`` is accepted, too."""
    path: object = fspath(base_path) if isinstance(base_path, PathLike) else base_path
    if path is None or (isinstance(path, str) and not path.strip()):
        raise ConfigError("the base path is required and empty; pass a directory", code="PATH_REQUIRED")
    if not isinstance(path, str) or has_no_bytes(path):
        raise ConfigError(
            f"the base path must be text without NUL and lone surrogates, got {type(path).__name__}",
            code="BAD_VALUE",
        )
    found = _SCHEME.fullmatch(path)
    return _local(path) if found is None else _uri(found["scheme"].lower(), found["rest"])


def refuse_secrets(scheme: str, rest: str) -> None:
    """Raise ``ConfigError`` (``CREDENTIALS``) if what follows ``scheme://`` may hold secrets."""
    _refuse_signature(rest)
    if scheme not in {"abfs", "abfss"}:  # where a container stands before the '@'
        _refuse_credentials(f"//{rest}")


def _uri(scheme: str, rest: str) -> str:
    _refuse_signature(rest)
    lake = _LAKE.fullmatch(rest) if scheme in {"abfs", "abfss"} else None
    if lake is not None:
        return _joined("abfss", f"{lake['container']}@{lake['host']}", lake["path"] or "")
    _refuse_credentials(rest)
    match scheme:
        case "file":
            return _local(_file_path(rest))
        case "memory" | "hdfs" | "webhdfs":
            return _absolute(scheme, rest)
        case "s3" | "s3a" | "s3n":
            return _in_bucket("s3", rest, _BUCKET)
        case "gs" | "gcs":
            return _in_bucket("gs", rest, _GOOGLES)
        case "az" | "abfs" | "abfss":
            return _in_bucket("az", rest, _CONTAINER)
        case _:
            reason = f": {_REFUSED[scheme]}" if scheme in _REFUSED else ""
            raise ConfigError(
                f"unsupported scheme '{scheme}'{reason}; supported: {_SUPPORTED}", code="SCHEME"
            )


def _refuse_signature(rest: str) -> None:
    if _SIGNED.search(rest):
        raise ConfigError(
            "the path is a signed address, and paths are logged: remove the '?' and what follows, revoke the "
            "signature or token if anybody may have seen it, and pass credentials as storage options",
            code="CREDENTIALS",
        )


def _refuse_credentials(rest: str) -> None:
    if _CREDENTIALS.match(rest):
        raise ConfigError(
            "credentials in the path are not allowed, since paths are logged; "
            "pass them through the client's own configuration",
            code="CREDENTIALS",
        )


def _file_path(rest: str) -> str:
    """What follows ``file:``: ``/a``, ``///a`` or ``//localhost/a``."""
    path = rest
    if rest.startswith("//"):
        host, slash, below = rest[2:].partition("/")
        path = slash + below if host in {"", "localhost"} else ""
    if not path.startswith("/"):
        raise ConfigError(
            "a file: path must be absolute and without a host, as in 'file:///data/out'", code="BAD_VALUE"
        )
    return path


def _absolute(scheme: str, rest: str) -> str:
    """One spelling of ``//host:port/a/b``; ``hdfs:///a`` is on the configured default cluster."""
    host, _, below = rest.removeprefix("//").partition("/")
    names = [name for name in below.split("/") if name]
    if not rest.startswith("//") or any(name in {".", ".."} or ":" in name for name in names):
        raise ConfigError(
            f"a {scheme}: path must be absolute and without '.', '..' and ':', as in "
            f"'{scheme}://host/data/out'",
            code="BAD_VALUE",
        )
    return f"{scheme}://{host}/{'/'.join(names)}"


def _in_bucket(scheme: str, rest: str, bucket: re.Pattern[str]) -> str:
    """``s3://bucket/path``, of what follows the scheme; the bucket itself may be the base path."""
    name, _, path = rest.removeprefix("//").partition("/")
    if not rest.startswith("//") or not bucket.fullmatch(name):
        raise ConfigError(
            f"the path must name a bucket or container, as in '{scheme}://bucket/path'", code="BAD_VALUE"
        )
    return _joined(scheme, name, path)


def _joined(scheme: str, host: str, path: str) -> str:
    names = [name for name in path.split("/") if name]
    if {".", ".."} & set(names):
        raise ConfigError(f"a {scheme}: path must not hold '.' or '..'", code="BAD_VALUE")
    return "/".join([f"{scheme}://{host}", *names])


def _local(path: str) -> str:
    return str(Path(path).absolute())
