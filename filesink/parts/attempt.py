"""The files of one attempt of a task: their names, and how each of them is begun."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filesink.api import WriterContext
from filesink.naming import HiddenName, join, new_part_id, sink_tag
from filesink.parts import file_format
from filesink.parts.bucket import Closed
from filesink.parts.committables import HeldFile
from filesink.parts.dead_letters import Rejections
from filesink.parts.file_format import BulkFormat, RowFormat
from filesink.parts.part_writer import PartWriter, SizeHint, UnwritableRecord
from filesink.parts.plan import Plan
from filesink.storage.api import Output, Store
from filesink.storage.staged import Staged

if TYPE_CHECKING:
    import pyarrow as pa


class AttemptParts:
    """Makes the files of one attempt; implements ``filesink.parts.bucket.Parts``."""

    def __init__(self, plan: Plan, store: Store, context: WriterContext) -> None:
        self._plan = plan
        self._store = store
        self._context = context
        self._tag = sink_tag(context.sink_id)
        self._attempt = context.ids.uuid()
        self._part_ids: dict[str, str] = {}
        self._hint = SizeHint()
        self._files = 0
        self._signature: tuple[pa.Schema, str] | None = None
        self.outputs: list[Output] = []
        self.rejections = Rejections(plan.on_bad_record, context.subtask_index)
        self.closed = plan.closed
        self.suffix = plan.names.suffix(file_format.code_of(plan.format).extension)
        finished = plan.names.name_with(self._attempt, 999_999, self.suffix)
        #: No name of this attempt is longer.
        self.longest_name = max(finished, str(self._hidden(999_999)), key=len)

    def longest_in(self, bucket: str) -> str:
        """The path of the longest name in ``bucket``."""
        return join(bucket, self._plan.assigner.name_for(bucket, self.longest_name))

    def open(self, bucket: str, schema: pa.Schema, *, target: str, last: HeldFile | None) -> PartWriter:
        """See ``Parts.open``."""
        name = self._plan.assigner.name_for(bucket, str(self._hidden(self._files)))
        self._files += 1
        form = self._plan.format
        # A row format may hold its file back: only a bulk file is published by this epoch for sure.
        ends_here = isinstance(form, BulkFormat) and self.closed is Closed.PENDING
        output = self._store.create(join(bucket, name), target=target if ends_here else None)
        self.outputs.append(output)
        if last is not None and isinstance(form, RowFormat):
            return form.resume(output, last.carry_over, self._hint)
        return form.start(output, schema, self._hint)

    def _hidden(self, number: int) -> HiddenName:
        return HiddenName(
            target=f"{self._plan.names.part_prefix}-{number}",
            tag=self._tag,
            slot=self._context.epoch,
            attempt=self._attempt,
        )

    def reject(self, bucket: str, record: pa.RecordBatch, *, position: int, found: UnwritableRecord) -> None:
        """See ``Parts.reject``."""
        self.rejections.add(bucket, record, position=position, found=found)

    def signature(self, schema: pa.Schema) -> str:
        """See ``Parts.signature``; called for every slice, so an equal schema is not hashed again."""
        if self._signature is None or not self._signature[0].equals(schema):
            self._signature = (schema, file_format.signature(self._plan.format, schema))
        return self._signature[1]

    def carry_over(self, writer: PartWriter) -> bytes:
        """See ``Parts.carry_over``."""
        return file_format.carry_over(writer)

    def target(self, bucket: str, counter: int) -> str:
        """See ``Parts.target``; one part id per bucket and attempt."""
        part_id = self._part_ids.get(bucket)
        if part_id is None:
            part_id = self._part_ids[bucket] = self.new_group()
        name = self._plan.names.name_with(part_id, counter, self.suffix)
        return join(bucket, self._plan.assigner.name_for(bucket, name))

    def promote(self, staged: Staged, target: str) -> Staged:
        """See ``Parts.promote``."""
        return self._store.promote(staged, target)

    def new_group(self) -> str:
        """See ``Parts.new_group``."""
        return new_part_id(self._tag, self._context.epoch, self._context.ids)
