"""Base paths near one where no sink has written: an error for a mistyped path says where to look.

Rules:
1. Nothing is made or removed here.
2. If something cannot be read that would only be a hint, the message does without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from difflib import get_close_matches
from itertools import islice

from filesink.errors import ConfigError, FilesinkError
from filesink.ledger.directory import ledger_ids
from filesink.naming import LEDGER_ROOT
from filesink.storage.address import StoreAddress
from filesink.storage.api import Kind

_NAMED = 5  # paths in a message
_LOOKED_AT = 100  # directories below the path
_LEVELS = 4  # directories above it


def nothing_at(address: StoreAddress, *, advice: str) -> ConfigError:
    """The error if no sink has written to the base path. It names sinks nearby, and ends with ``advice``."""
    base = address.base_path
    near = [*above(address), *_beside(address), *below(address)]
    found = f" A sink has written to {in_words(map(repr, near))}." if near else ""
    return ConfigError(
        f"no sink has written to '{base}': there is no record of one in '{base.rstrip('/')}/{LEDGER_ROOT}'. "
        f"Nothing was done.{found} {advice}",
        code="NO_SINK",
    )


def above(address: StoreAddress) -> Iterator[str]:
    """The nearest directory further up that is a base path."""
    path = address.base_path
    for _ in range(_LEVELS):
        above = parent_of(path)
        if above is None:
            return
        path = above
        if _is_base(address, path):
            yield path
            return


def _beside(address: StoreAddress) -> Iterator[str]:
    """Base paths with a name like that of this one."""
    above = parent_of(address.base_path)
    if above is None:
        return
    name = address.base_path.rpartition("/")[2]
    for like in get_close_matches(name, _directories(address, above), n=3):
        path = f"{above.rstrip('/')}/{like}"
        if like != name and _is_base(address, path):
            yield path


def below(address: StoreAddress) -> Iterator[str]:
    """Base paths one directory further down."""
    base = address.base_path.rstrip("/")
    paths = (f"{base}/{name}" for name in _directories(address, address.base_path))
    yield from islice((path for path in islice(paths, _LOOKED_AT) if _is_base(address, path)), _NAMED)


def _directories(address: StoreAddress, path: str) -> list[str]:
    with suppress(FilesinkError):  # we may not be allowed to read it: only a hint is lost
        entries = StoreAddress(base_path=path, storage_options=address.storage_options)().list("")
        return [entry.name for entry in entries if entry.kind is Kind.DIRECTORY and entry.name[0] not in "._"]
    return []


def _is_base(address: StoreAddress, path: str) -> bool:
    with suppress(FilesinkError):  # as above
        return bool(ledger_ids(StoreAddress(base_path=path, storage_options=address.storage_options)()))
    return False


def parent_of(path: str) -> str | None:
    """The directory above a base path; ``None`` for a root, and for what is no directory but a bucket."""
    scheme, separator, rest = path.rpartition("://")
    above, slash, name = rest.rpartition("/")
    if not slash or not name:
        return None
    if not separator:
        return above or "/"
    return f"{scheme}://{above}" if above else None


def in_words(names: Iterable[str]) -> str:
    """``names`` with commas and an "and"."""
    *some, last = [*names] or [""]
    return f"{', '.join(some)} and {last}" if some else last
