"""The second tier: has decided epochs in the target, however often it is asked."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from filesink.api import SinkCommitter
from filesink.sinks.postgres import prepared, staging
from filesink.sinks.postgres.answers import answering, meaning
from filesink.sinks.postgres.committables import Committable, EpochKey, PreparedRows, StagedRows, by_epoch
from filesink.sinks.postgres.connection import connect, transaction
from filesink.sinks.postgres.settings import PostgresServer


class PostgresCommitter(SinkCommitter[Committable]):
    """Commits epochs, each on a connection of its own.

    Args:
        server: where the rows wait.
    """

    def __init__(self, server: PostgresServer) -> None:
        self._server = server

    def commit(self, committables: Sequence[Committable]) -> list[Committable]:
        """See ``SinkCommitter.commit``.

        After a lost connection nobody knows whether the transaction was committed; the next call finds out.
        """
        self.failure = None
        left: list[Committable] = []
        for epoch, found in by_epoch(committables).items():
            try:
                self._commit(epoch, found)
            except psycopg.Error as error:
                ours = meaning(error, f"commit {epoch}")
                if ours.is_permanent:
                    raise ours from None
                self.failure = self.failure or ours
                left += found
        return left

    def abort(self, committables: Sequence[Committable]) -> None:
        """See ``SinkCommitter.abort``."""
        for epoch, found in by_epoch(committables).items():
            with (
                answering("remove the rows of an epoch that is not decided"),
                connect(self._server) as connection,
            ):
                staged, in_doubt = _sorted(found)
                if staged:
                    with transaction(connection):
                        staging.drop(connection, epoch.schema, [one.name for one in staged])
                if in_doubt:
                    prepared.roll_back(connection, [one.name for one in in_doubt])

    def _commit(self, epoch: EpochKey, found: Sequence[Committable]) -> None:
        staged, in_doubt = _sorted(found)
        with connect(self._server) as connection:
            if staged:
                staging.move(connection, epoch, staged)
            if in_doubt:
                prepared.finish(connection, epoch, in_doubt)


def _sorted(found: Sequence[Committable]) -> tuple[list[StagedRows], list[PreparedRows]]:
    staged = [one for one in found if isinstance(one, StagedRows)]
    return staged, [one for one in found if isinstance(one, PreparedRows)]
