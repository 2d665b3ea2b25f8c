"""Somebody writes files of another layout below the base path, at peace: refused, nothing changes (I14)."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from filesink.errors import SchemaError
from filesink.file_sink.tiers import FileTiers
from filesink.naming import OutputFileConfig
from filesink.save_mode import SaveMode
from property_tests.simulation.others.overwriter import Overwriter, Write
from property_tests.simulation.picture import picture
from property_tests.simulation.stage import Stage
from property_tests.simulation.workload import Source, plan_of
from property_tests.simulation.world.listing import is_hidden

_OFTEN = 0.2
_TIDIED = 0.5  # only then nothing but what readers see says that the path is in use
_MODES = (SaveMode.APPEND, SaveMode.OVERWRITE_PARTITIONS)


def comes(stage: Stage) -> None:
    """In some histories, to a path that readers see files in."""
    random = Random(f"intruder {stage.world.operations}")
    if random.random() >= _OFTEN or not stage.observer.visible:
        return
    if random.random() < _TIDIED:
        _remove_hidden(stage)
    shape = stage.scenario.shape
    source = Source(shape)  # unknown to the observer, so that none of its rows may be seen
    source.add_batch("80", 3, random)
    names = OutputFileConfig(part_suffix=".other")
    sink = FileTiers(address=stage.sink.address, plan=replace(plan_of(shape), names=names), uid="intruder")
    write = Write(txn_id="intruder", mode=random.choice(_MODES), rows=source.batches[0])
    before = picture(stage)
    process = Overwriter(stage.machine, sink, source=source, write=write, keep=shape.keep_batches)
    stage.until(lambda: process.ended)
    error = process.error
    stage.end_process(process, workers=True)
    if not isinstance(error, SchemaError) or error.code != "OTHER_LAYOUT":
        stage.world.fail(f"I14: files of another layout are let in: {error}")
    if picture(stage) != before:
        stage.world.fail("I14: a write of another layout was refused and has changed something")


def _remove_hidden(stage: Stage) -> None:
    """Their owner takes away those that readers do not see."""
    disk = stage.world.disk
    for name in filter(is_hidden, stage.foreign):
        disk.unlink(name)
        del stage.observer.foreign[name]
    disk.fsync_directory("")
    disk.changed.clear()
    stage.foreign = tuple(name for name in stage.foreign if not is_hidden(name))
