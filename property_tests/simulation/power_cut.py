"""What the observer asks after a power cut: what was complete is there, nothing is there by halves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from property_tests.simulation.nodes import Directory
from property_tests.simulation.reading import Chain, visible_files
from property_tests.simulation.replacements import EXCLUSIVE

if TYPE_CHECKING:
    from property_tests.simulation.observer import Observer


def look_after_power_cut(observer: Observer) -> None:
    """What was complete must still be there; what was not may be gone, but not by halves."""
    world = observer.world
    world.disk.changed.clear()
    observer.reread_claims()
    observer.inventory.reread()
    for sink, chain in observer.chains.items():
        _reread(observer, sink, chain)
    found = visible_files(world.disk.root)
    for name in [name for name in observer.visible if name not in found]:
        sink, record = observer.decided.get(name, ("", None))
        complete = record is None or record.slot in observer.chains[sink].complete
        if complete and not observer.replacements.is_named(name):
            world.fail(f"I1: {name} was complete and is gone after a power cut")
        observer.forget(name)
    observer.look_at_all()


def _reread(observer: Observer, sink: str, chain: Chain) -> None:
    directory = observer.world.disk.find(f"_filesink/{sink}")
    names = directory.entries if isinstance(directory, Directory) else {}
    done = {slot for slot in chain.complete if f"{slot:012d}.complete" in names or slot <= chain.mark}
    if sink == EXCLUSIVE:
        for slot in chain.complete - done:
            observer.graces.begin_anew(chain.records[slot])
    marks = [int(name[:12]) for name in names if name.endswith(".mark")]
    chain.mark = max(marks, default=-1)
    for slot in [slot for slot in chain.records if f"{slot:012d}.record" not in names]:
        record = chain.records.pop(slot)
        observer.replacements.taken_back(record)
        if sink == EXCLUSIVE:
            observer.superseded.taken_back(record)
        if slot in chain.complete and slot > chain.mark:
            observer.world.fail(f"I1: record {slot} was complete and is gone after a power cut")
        for target in record.pending:
            if slot > chain.mark:
                observer.decided.pop(target, None)
    chain.complete = done
