"""A sink as small as can be: the ids of records, each once, in a table of SQLite."""

import sqlite3
from contextlib import closing

from filesink import LedgerSink
from filesink.api import JsonCodec, SinkCommitter, SinkWriter


class IdWriter(SinkWriter):
    def __init__(self, context):
        self.task, self.ids = f"{context.sink_id}/{context.epoch}/{context.subtask_index}", []

    def write(self, batch, context):
        self.ids += batch["id"].to_pylist()

    def prepare_commit(self, epoch):
        return [[self.task, self.ids]]  # says what is to be done, and does nothing


class IdCommitter(SinkCommitter):
    def __init__(self, path):
        self.path = path

    def commit(self, committables):
        with closing(sqlite3.connect(self.path)) as database, database:
            database.execute("CREATE TABLE IF NOT EXISTS ids (task, n, id, PRIMARY KEY (task, n))")
            rows = [(task, n, number) for task, ids in committables for n, number in enumerate(ids)]
            database.executemany("INSERT OR IGNORE INTO ids VALUES (?, ?, ?)", rows)
        return []  # nothing to try again


class IdSink(LedgerSink):
    committable_codec = JsonCodec()

    def create_writer(self, context):
        return IdWriter(context)

    def create_committer(self):
        return IdCommitter(f"{self.ledger.path}/ids.db")
