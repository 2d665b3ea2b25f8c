"""Whose ledger an epoch belongs to, and when a stream may go on with it. Pure but for the ledger.

    a stream with a uid  uid-<uid>          one chain for every run and checkpoint
    a stream without     query-<query id>   one chain per checkpoint
    a batch that appends appends[-<uid>]    one open chain: none depends on another
    … that does not      exclusive          one chain for all that replace files, or want to be the
                                            first: a write that wins a slot has seen the one before
    offline compaction   exclusive          too, since it replaces files; what it has left for readers
                                            to finish with is known from a copy in    compaction

Files of a batch write bear the tag of an id made for it alone, ``batch-<uuid>``: so those of a write that
has lost its slot to another are still its own. Up to records of version 2 that was its chain, or
``uid-<uid>``, and one with a ``txn_id`` had ``txn-<hash>``.

Rule: never silent duplicates. A stream that cannot be told to be the one that wrote here before is
refused, and the message names the way to go on.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from itertools import islice

from filesink.errors import ConfigError, IdentityError, ReplayTooOldError
from filesink.ledger.directory import APPENDS
from filesink.ledger.head import Head
from filesink.ledger.ledger import Ledger
from filesink.ledger.record import BatchWrite, Cause, MicroBatch
from filesink.naming import sink_tag
from filesink.ports import Ids
from filesink.save_mode import SaveMode

#: The ledger of batch writes that must not run beside each other.
EXCLUSIVE = "exclusive"
#: The uid of a sink whose client acknowledges what it has taken, so that its epochs remove that; no user's.
COLLECTED = "_collected"
#: How the names of the ledgers of streams begin; those of batch writes with a uid did, too.
OF_STREAMS = ("query-", "uid-")
#: Records from this version on name every query that has written to their chain …
KNOWS_QUERIES = 3
#: … but for those that earlier releases have folded away, for which this stands.
FORGOTTEN = ""
_SHOWN = 3  # ledgers in a message
_UID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class OnNewQuery(Enum):
    """What to do when a stream arrives that has not written here before, but others have."""

    REFUSE = "refuse"
    APPEND = "append"
    REPLACE = "replace"


def check_uid(uid: str) -> str:
    """Return ``uid`` if it can name a ledger."""
    given: object = uid
    if not isinstance(given, str) or not _UID.fullmatch(given):
        raise ConfigError(
            "uid must be 1 to 100 letters, digits, '.', '_' or '-', beginning with a letter or digit; "
            f"got {repr(uid)[:40]}",
            code="BAD_VALUE",
        )
    return uid


def stream_sink_id(uid: str | None, query_id: str) -> str:
    """The ledger of a streaming query."""
    return f"uid-{uid}" if uid else f"query-{query_id}"


def append_sink_id(uid: str | None) -> str:
    """The ledger of batch writes that append."""
    return f"{APPENDS}-{uid}" if uid else APPENDS


def is_collected(sink_id: str) -> bool:
    """Whether this is a ledger of a sink whose client acknowledges."""
    return sink_id in {stream_sink_id(COLLECTED, ""), append_sink_id(COLLECTED)}


def txn_name(uid: str | None, txn_id: str) -> str:
    """Under which name a write with ``txn_id`` is found again; in earlier releases that of its ledger."""
    return "txn-" + hashlib.sha256(f"{uid or ''}\0{txn_id}".encode()).hexdigest()[:32]


def batch_write(mode: SaveMode, uid: str | None, txn_id: str, ids: Ids) -> tuple[str, BatchWrite]:
    """The ledger of a batch write, and what its record says of it. ``txn_id``: ``""`` for none."""
    cause = BatchWrite(
        txn_id=txn_id,
        mode=mode,
        remembered_in=txn_name(uid, txn_id) if txn_id else "",
        writer=f"batch-{ids.uuid()}",
    )
    return append_sink_id(uid) if mode is SaveMode.APPEND else EXCLUSIVE, cause


def superseding(cause: BatchWrite, nonce: str, ids: Ids) -> tuple[str, BatchWrite]:
    """As ``batch_write``, for a write that takes the place of the record ``nonce`` of its ``txn_id``."""
    return EXCLUSIVE, replace(cause, writer=f"batch-{ids.uuid()}", supersedes=nonce)


def check_tag(sink_id: str, ledger: Ledger) -> None:
    """Refuse to write for a new ``sink_id`` if no name would tell its files from those of another sink.

    Called before the first epoch of a chain writes anything.

    Raises:
        IdentityError: ``TAG_TAKEN``.
    """
    taken = ledger.directory.twins(sink_id)
    if taken:
        raise IdentityError(
            f"the files of '{sink_id}' would have the same tag, '{sink_tag(sink_id)}', as those of "
            f"'{taken[0]}', which has written here: each would sweep the other's hidden files. Nothing was "
            "written. Choose another uid; a batch write has a new tag at each call, so just call it again",
            code="TAG_TAKEN",
        )


def check_stream(
    batch: MicroBatch, head: Head | None, ledger: Ledger, *, on_new_query: OnNewQuery
) -> MicroBatch | None:
    """The last micro-batch of this query in the chain, or ``None`` if it is new here.

    Called before an epoch of a run writes anything.

    Raises:
        IdentityError: the query is new here, rows may be there already, and that was not allowed; or it
            has left something open under another name.
    """
    last = None if head is None else head.record.last_batch
    if last is not None and last.query_id == batch.query_id:
        return last
    earlier = None if head is None else _earlier(batch.query_id, head, ledger)
    if earlier is None:
        _check_old_names(batch, ledger, on_new_query)
    if on_new_query is OnNewQuery.APPEND:
        if earlier is None and head is not None and _may_be_forgotten(batch, head, ledger):
            raise ReplayTooOldError(
                f"query {batch.query_id} comes with batch {batch.batch_id}, but old records are folded away: "
                "it is not known whether the batch was written before. Nothing was written. Use another path "
                "or uid",
                code="REPLAY_TOO_OLD",
            )
        return earlier
    if last is None:
        _check_new_chain(batch, ledger)
    elif on_new_query is OnNewQuery.REFUSE or earlier is not None or batch.batch_id > 0:
        raise _refusal("NEW_QUERY_OLD_DATA", _known_uid(ledger, last, batch))
    return None


def _earlier(query_id: str, head: Head, ledger: Ledger) -> MicroBatch | None:
    """The newest batch of a query that others have followed."""
    known = ledger.history.last_batch_of(query_id)
    if known is None and query_id in head.record.queries:
        known = MicroBatch(query_id=query_id, batch_id=head.record.queries[query_id], fingerprint="")
    return known


def _may_be_forgotten(batch: MicroBatch, head: Head, ledger: Ledger) -> bool:
    """Whether a query that nothing is known of may have written here: only earlier releases forgot any."""
    all_known = head.record.version >= KNOWS_QUERIES and FORGOTTEN not in head.record.queries
    return ledger.history.has_folded() and (batch.batch_id > 0 or not all_known)


def queries_of(cause: Cause, head: Head | None, ledger: Ledger) -> dict[str, int]:
    """For the record of ``cause``: every other query that has written to the chain, and its newest batch."""
    if head is None:
        return {}
    last, known = head.record.last_batch, dict(head.record.queries)
    if head.record.version < KNOWS_QUERIES:
        for record in ledger.history.newest_first():
            if record.last_batch is not None:
                known.setdefault(record.last_batch.query_id, record.last_batch.batch_id)
        if ledger.history.has_folded():
            known[FORGOTTEN] = 0
    if last is not None:
        known[last.query_id] = last.batch_id
    newest = cause if isinstance(cause, MicroBatch) else last
    if newest is not None:
        known.pop(newest.query_id, None)
    return known


def check_return(batch: MicroBatch, head: Head | None, ledger: Ledger, *, on_new_query: OnNewQuery) -> None:
    """Refuse a query that comes back to a name it has had before, and had another one in between.

    Called before the first epoch of each run, since it reads the newest record of every stream's chain.

    Raises:
        IdentityError: ``UID_CHANGED``; only that other chain knows what was written under it.
    """
    last = None if head is None else head.record.last_batch
    if last is not None and last.query_id == batch.query_id and batch.batch_id > last.batch_id:
        _check_old_names(batch, ledger, on_new_query, known=last)


def _check_old_names(
    batch: MicroBatch, ledger: Ledger, on_new_query: OnNewQuery, *, known: MicroBatch | None = None
) -> None:
    """Refuse a query that comes under another name, as long as only its old chain knows its batches.

    ``known`` is the last batch of its own chain. A second sink of the same query has had that, too.
    """
    for head, last in streams_beside(ledger):
        if last.query_id != batch.query_id:
            continue
        if known is not None and (
            last.batch_id <= known.batch_id
            or ledger.beside(head.record.sink_id).history.find(known.query_id, known.batch_id) is not None
        ):
            continue
        what = (
            f"query {batch.query_id} has written here as '{head.record.sink_id}' up to batch {last.batch_id} "
            f"and now comes as '{ledger.sink_id}' with batch {batch.batch_id}"
        )
        if batch.batch_id > last.batch_id:
            # Nobody would ever publish, close or announce these: no word of the user can make that right.
            if left := _left_in(head):
                raise _uid_changed(f"{what}, but {left} of it are left there")
        elif on_new_query is not OnNewQuery.APPEND:
            # A second sink of one query looks just like this, so the user's word settles it.
            raise _uid_changed(
                f"{what}, whose rows may be there already (a second sink of the same query is allowed with "
                "on_new_query='append')"
            )


def streams_beside(ledger: Ledger) -> Iterator[tuple[Head, MicroBatch]]:
    """Other chains that a micro-batch has written to; those of batch writes may have names of this kind."""
    for name in ledger.directory.neighbours():
        head = ledger.beside(name).history.newest() if name.startswith(OF_STREAMS) else None
        last = None if head is None else head.record.last_batch
        if head is not None and last is not None:
            yield head, last


def _left_in(head: Head) -> str:
    """What only the chain of ``head`` can carry on, in words; ``""`` for nothing."""
    left = {
        "open parts": bool(head.record.states),
        "an unfinished epoch": not head.complete,
        "partitions that wait to be announced": bool(head.record.waiting.data),
    }
    return " and ".join(what for what, is_there in left.items() if is_there)


def _check_new_chain(batch: MicroBatch, ledger: Ledger) -> None:
    if batch.batch_id > 0:
        raise _refusal(
            "NO_LEDGER",
            f"query {batch.query_id} arrives with batch {batch.batch_id} but has no ledger "
            f"'{ledger.sink_id}' here{_those_there(ledger)}: earlier batches went elsewhere, the uid is "
            "another one, or the path was moved, emptied or not mounted",
        )
    if ledger.sink_id.startswith("query-"):
        other = next(streams_beside(ledger), None)
        if other is not None:
            raise _refusal(
                "NEW_QUERY_OLD_DATA",
                f"the path holds the ledger of another stream, '{other[0].record.sink_id}', and this "
                f"query ({batch.query_id}) has no uid: a new checkpoint reads its source from the start and "
                "would double the rows",
            )


def _those_there(ledger: Ledger) -> str:
    """The ledgers of other streams, since a uid may be mistyped."""
    names = [f"'{head.record.sink_id}'" for head, _ in islice(streams_beside(ledger), _SHOWN)]
    return f" (there is {' and '.join(names)})" if names else ""


def _known_uid(ledger: Ledger, last: MicroBatch, batch: MicroBatch) -> str:
    return (
        f"sink '{ledger.sink_id}' was written by query {last.query_id} up to batch {last.batch_id}; query "
        f"{batch.query_id} comes from another checkpoint and would write its source again"
    )


def _uid_changed(what: str) -> IdentityError:
    return IdentityError(
        f"{what}. Nothing was written. Start it under its old uid, or without one if it had none, once more "
        "with start(…, available_now=True); then change the uid, with on_new_query='append'",
        code="UID_CHANGED",
    )


def _refusal(code: str, what: str) -> IdentityError:
    return IdentityError(
        f"{what}. Start from the old checkpoint. Only if its rows are others than those that are there: use "
        "another uid, or another path (or ledger, of a sink that has one), or on_new_query='append'. With "
        "each of them all that the query reads is written",
        code=code,
    )
