"""What has to be right before an epoch is decided: afterwards it can only go on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from filesink.api import EpochContext, PreCommitStage, Prepared
from filesink.errors import DataError, IdentityError
from filesink.ports import Clock
from filesink.sinks.postgres.committables import Committable, EpochKey, StagedRows, Target, by_epoch
from filesink.sinks.postgres.connection import Connection, ask, transaction
from filesink.sinks.postgres.settings import PostgresServer, PostgresTable, Rehearsal
from filesink.sinks.postgres.staging import rehearse, sources
from filesink.sinks.postgres.target import epochs
from filesink.sinks.postgres.target.changing import has_ties
from filesink.sinks.postgres.target.inserting import has_twins
from filesink.sinks.postgres.target.table import read_table

R = TypeVar("R")


class CheckEpoch(PreCommitStage[None, Committable]):
    """Refuses an epoch that the target has in another form, and rows that it would not take.

    Args:
        server: where the table is.
        table: what is written to, and how.
        target: the same, as it goes on record.
        clock: waits between tries.
    """

    def __init__(self, server: PostgresServer, table: PostgresTable, target: Target, *, clock: Clock) -> None:
        self._server = server
        self._table = table
        self._target = target
        self._clock = clock
        self._is_known = False

    def begin(self, epoch: EpochContext) -> None:
        """See ``PreCommitStage.begin``; asked once, since an epoch of this driver follows its last one.

        Raises:
            IdentityError: ``POSTGRES_EPOCH``.
        """
        if self._is_known:
            return
        key = EpochKey(
            sink_id=epoch.sink_id, slot=epoch.slot, target=self._target, schema=self._table.staging
        )
        newest = self._ask("look for earlier epochs", lambda one: epochs.newest(one, key))
        if newest is not None and newest >= epoch.slot:
            raise IdentityError(
                f"{self._target} has epochs of '{epoch.sink_id}' up to {newest}, and its ledger goes on with "
                f"{epoch.slot}: the ledger is an older copy, or was begun anew, or another driver is ahead. "
                "Nothing was written. Bring the ledger back, or choose another uid",
                code="POSTGRES_EPOCH",
            )
        self._is_known = True

    def prepare(
        self, epoch: EpochContext, prepared: Prepared[None, Committable]
    ) -> Prepared[None, Committable]:
        """See ``PreCommitStage.prepare``.

        Raises:
            DataError: ``DUPLICATE_KEY``; ``POSTGRES_VALUE``, the table refuses a row.
        """
        del epoch
        for key, found in by_epoch(prepared.committables).items():
            staged = [one for one in found if isinstance(one, StagedRows)]
            if staged:
                self._ask(f"check the rows of {key}", partial(self._check, epoch=key, staged=staged))
        return prepared

    def _check(self, connection: Connection, epoch: EpochKey, staged: Sequence[StagedRows]) -> None:
        self._check_twins(connection, epoch, staged)
        if self._may_refuse(connection):
            rehearse(connection, epoch, staged)

    def _check_twins(self, connection: Connection, epoch: EpochKey, staged: Sequence[StagedRows]) -> None:
        target = epoch.target
        if not target.keys or (target.newest_by and not target.row_kind):
            return  # of equal ones any stands
        look = has_ties if target.row_kind else has_twins
        with transaction(connection):
            found = look(connection, target, sources(connection, epoch, staged))
        if found:
            what = "changes of one epoch differ and" if target.row_kind else "rows of one epoch"
            order = " and the same order" if target.row_kind and target.newest_by else ""
            raise DataError(
                f"two {what} have the same key ({', '.join(target.keys)}){order}, and nothing says "
                "which one stands. Nothing became visible. "
                "Give newest_by, the column that tells, or use dropDuplicates",
                code="DUPLICATE_KEY",
            )

    def _may_refuse(self, connection: Connection) -> bool:
        """Whether the table has more that could refuse a row than the key that rows are merged by."""
        if Rehearsal(self._table.rehearsal) is Rehearsal.NEVER:
            return False
        with transaction(connection):
            table = read_table(connection, self._target.schema, self._target.table)
        merged = 1 if self._target.keys else 0
        return table is None or table.is_guarded or table.indexes > merged

    def _ask(self, doing: str, question: Callable[[Connection], R]) -> R:
        return ask(self._server, self._clock, doing, question)
