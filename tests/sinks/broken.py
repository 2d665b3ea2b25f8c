"""Sinks that do not keep the contract, so that one can see who finds them."""

from __future__ import annotations

from pathlib import Path

from tests.examples.toy_sink import IdCommitter, IdSink, IdWriter


class EagerWriter(IdWriter):
    """Does what it ought to report."""

    def __init__(self, context, path):
        super().__init__(context)
        self.attempt, self.path = f"{self.task}/{context.attempt}", path

    def write(self, batch, context):
        del context
        IdCommitter(self.path).commit([[self.attempt, batch["id"].to_pylist()]])


class EagerSink(IdSink):
    """Writes before it is decided; a task knows where to by the uid."""

    def create_writer(self, context):
        return EagerWriter(context, f"{self.uid}/ids.db")


class ForgetfulCommitter(IdCommitter):
    """Notes what it is about to do, and does not do again what is noted."""

    def commit(self, committables):
        for task, ids in committables:
            noted = Path(f"{self.path}.{task.replace('/', '-')}")
            if not noted.exists():
                noted.touch()
                super().commit([[task, ids]])
        return []


class ForgetfulSink(IdSink):
    """Loses what its driver had noted and not done."""

    def create_committer(self):
        return ForgetfulCommitter(f"{self.ledger.path}/ids.db")
