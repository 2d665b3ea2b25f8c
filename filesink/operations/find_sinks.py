"""Which sinks have written below a base path, so that a mistyped path or uid is an error and no success.

Rules:
1. Nothing is made, removed or decided here.
2. A sink whose first epoch has crashed counts too: its ledger is there, or a hidden file with its tag.
3. If something cannot be read that would only be a hint, the message does without it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from filesink.errors import ConfigError
from filesink.ledger.identity import EXCLUSIVE, stream_sink_id, txn_name
from filesink.ledger.ledger import Ledger
from filesink.ledger.nearby import above, below, in_words, nothing_at
from filesink.ledger.sweep import hidden_files
from filesink.naming import LEDGER_ROOT, sink_tag
from filesink.sink_directory.opening import ledgers_at
from filesink.storage.address import StoreAddress
from filesink.storage.api import Store

_OF_UIDS = ("uid-", "appends-")  # how the names of ledgers begin that tell a uid
_NAMED = 5  # uids in a message

log = logging.getLogger("filesink")


def check_written(address: StoreAddress, uid: str | None) -> None:
    """Refuse a path where no sink has ever begun, and a ``uid`` under which none has.

    Raises:
        ConfigError: ``NO_SINK``; the message names the sinks that are there, or near.
    """
    store = address()
    ids = ledgers_at(address, store)
    if not ids:
        _check_begun(address, store)
    elif uid is not None and not _has_written(store, ids, uid):
        if EXCLUSIVE not in ids:
            raise _no_such_uid(address, ids, uid, "no sink with uid")
        log.warning(
            "'%s': no sink with uid '%s' has appended or streamed here, so only overwrites are recovered or "
            "swept; those that have written: %s",
            address.base_path,
            uid,
            _there(ids, uid),
        )


def check_streamed(address: StoreAddress, uid: str) -> None:
    """Refuse a ``uid`` under which nothing can be open, where others have written.

    Raises:
        ConfigError: ``NO_SINK``, as from ``check_written``.
    """
    store = address()
    ids = ledgers_at(address, store)
    if not ids:
        _check_begun(address, store)
    elif stream_sink_id(uid, "") not in ids:
        raise _no_such_uid(address, ids, uid, "there is nothing to finish: no stream with uid")


def _check_begun(address: StoreAddress, store: Store) -> None:
    """Raise unless a sink has begun here. If it decided nothing, there still may be files to sweep."""
    if any(entry.name == LEDGER_ROOT for entry in store.list("")):
        return
    # Files of a sink further up prove nothing about this path; too far up, listing them would take for ever.
    is_elsewhere = any(True for found in (above(address), below(address)) for _ in found)
    if is_elsewhere or next(iter(hidden_files(store)), None) is None:
        raise nothing_at(address, advice="Pass the base path of the sink")


def _has_written(store: Store, ids: Sequence[str], uid: str) -> bool:
    if uid in _uids(ids) or any(_is_write_of(store, sink_id, uid) for sink_id in ids):
        return True
    if EXCLUSIVE in ids:
        return False  # not known: its records do not say which uid they are of
    tag = sink_tag(stream_sink_id(uid, ""))
    return any(file.tag == tag for file in hidden_files(store))


def _is_write_of(store: Store, sink_id: str, uid: str) -> bool:
    """Whether a ledger is that of a named write of ``uid``."""
    if not sink_id.startswith("txn-"):
        return False
    head = Ledger(store, sink_id).history.newest()
    txn_id = getattr(head.record.cause, "txn_id", "") if head is not None else ""
    return bool(txn_id) and txn_name(uid, txn_id) == sink_id


def _no_such_uid(address: StoreAddress, ids: Sequence[str], uid: str, what: str) -> ConfigError:
    return ConfigError(
        f"{what} '{uid}' has written to '{address.base_path}'; those that have: {_there(ids, uid)}. Nothing "
        "was done. Pass the uid that it was written with, or the base path where it has written",
        code="NO_SINK",
    )


def _there(ids: Iterable[str], uid: str) -> str:
    """The sinks in words, those with a name like ``uid`` first."""
    uids = sorted(
        _uids(ids), key=lambda name: (-SequenceMatcher(None, name.lower(), uid.lower()).ratio(), name)
    )
    named = [f"uid '{name}'" for name in uids[:_NAMED]]
    if len(uids) > _NAMED:
        named.append(f"{len(uids) - _NAMED:,} more uids")
    streams = sum(sink_id.startswith("query-") for sink_id in ids)
    batches = sum(sink_id.startswith(("txn-", "batch-")) or sink_id == "appends" for sink_id in ids)
    also = {
        "streams without a uid": streams,
        "batch writes with a txn_id or without a uid": batches,
        "overwrites": int(EXCLUSIVE in ids),
    }
    return in_words([*named, *(what for what, count in also.items() if count)]) or "none"


def _uids(ids: Iterable[str]) -> set[str]:
    return {sink_id.removeprefix(kind) for sink_id in ids for kind in _OF_UIDS if sink_id.startswith(kind)}
