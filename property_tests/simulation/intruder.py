"""Somebody writes files of another layout below the base path, at peace: refused, nothing changes (I14)."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from filesink.errors import SchemaError
from filesink.file_sink.tiers import FileTiers
from filesink.naming import OutputFileConfig
from filesink.save_mode import SaveMode
from property_tests.simulation import epilogue
from property_tests.simulation.foreign import remove_hidden
from property_tests.simulation.overwriter import Overwriter, Write
from property_tests.simulation.workload import Source, plan_of

if TYPE_CHECKING:
    from property_tests.simulation.history import History

_OFTEN = 0.2
_TIDIED = 0.5  # only then nothing but what readers see says that the path is in use
_MODES = (SaveMode.APPEND, SaveMode.OVERWRITE_PARTITIONS)


def comes(history: History) -> None:
    """In some histories, to a path that readers see files in."""
    random = Random(f"intruder {history.world.operations}")
    if random.random() >= _OFTEN or not history.observer.visible:
        return
    if random.random() < _TIDIED:
        remove_hidden(history)
    shape = history.scenario.shape
    source = Source(shape)  # unknown to the observer, so that none of its rows may be seen
    source.add_batch("80", 3, random)
    names = OutputFileConfig(part_suffix=".other")
    sink = FileTiers(address=history.sink.address, plan=replace(plan_of(shape), names=names), uid="intruder")
    write = Write(txn_id="intruder", mode=random.choice(_MODES), rows=source.batches[0])
    before = epilogue.picture(history)
    process = Overwriter(history.machine, sink, source=source, write=write, keep=shape.keep_batches)
    history.until(lambda: process.ended)
    error = process.error
    history.end_process(process, workers=True)
    if not isinstance(error, SchemaError) or error.code != "OTHER_LAYOUT":
        history.world.fail(f"I14: files of another layout are let in: {error}")
    if epilogue.picture(history) != before:
        history.world.fail("I14: a write of another layout was refused and has changed something")
