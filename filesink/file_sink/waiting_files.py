"""Files that an earlier run has left waiting for compaction."""

from __future__ import annotations

from filesink.api import OF_STAGES
from filesink.file_sink.tiers import FileTiers
from filesink.parts.stages.closed_parts import Waiting, compaction_off


def check_nothing_waits(sink: FileTiers, sink_id: str) -> None:
    """Refuse what the first epoch of a stream would refuse, before the stream is started.

    Raises:
        StateError: ``COMPACTION_OFF``; files wait in the chain ``sink_id`` that this sink would leave hidden.
    """
    if sink.compaction is Waiting.REFUSED:
        head = sink.open_ledger(sink_id).history.newest()
        if head is not None and head.record.states.get(OF_STAGES):
            raise compaction_off()
