"""What one task of the data source hands to the driver.

Spark always pickles commit messages. Ours has a single field of bytes, which our own codec decodes.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.datasource import WriterCommitMessage

from filesink.errors import StateCorruptError
from filesink.framing import check_field, frame, from_json, to_json, unframe

MESSAGE_VERSION = 1
_WHERE = "the commit message of a task"


@dataclass
class TaskMessage(WriterCommitMessage):
    """The carrier; ``data`` is a ``Report`` as bytes."""

    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A task's result and what it was written for, which commit cannot find out otherwise.

    Attributes:
        query_id: of the streaming query; ``""`` for a batch write.
        batch_id: of the micro-batch; -1 for a batch write.
        mode: the save mode of a batch write, as the task has seen it; ``""`` for a stream.
        slot: see ``filesink.commit.external_epochs.slot_for``.
        result: of ``filesink.commit.task``.
    """

    query_id: str = ""
    batch_id: int = -1
    mode: str = ""
    slot: int | None
    result: bytes

    def to_message(self) -> TaskMessage:
        """The message for Spark to carry."""
        names = ("query_id", "batch_id", "mode", "slot")
        head = {name: getattr(self, name) for name in names}
        return TaskMessage(frame("task-message", MESSAGE_VERSION, to_json(head) + b"\n" + self.result))

    @staticmethod
    def from_message(message: WriterCommitMessage) -> Report:
        """What ``to_message`` was called on; raises ``StateError`` for anything else."""
        if not isinstance(message, TaskMessage):
            raise StateCorruptError(f"{_WHERE} is a {type(message).__name__}", code="FOREIGN")
        _, payload = unframe("task-message", MESSAGE_VERSION, message.data, where=_WHERE)
        line, _, result = payload.partition(b"\n")
        try:
            found = Report(**from_json(line, where=_WHERE), result=result)
            check_field("query_id", found.query_id, str)
            for number in (found.batch_id + 1, 0 if found.slot is None else found.slot):
                check_field("number", number, int)
        except TypeError as error:
            raise StateCorruptError(f"{_WHERE} is malformed", code="JSON") from error
        return found
