"""What the observer asks when hidden files are removed: does anybody still need them (I1, I5)?"""

from __future__ import annotations

import re

from property_tests.simulation.observer.reading import Chain, Record, staged_path, tag_of
from property_tests.simulation.observer.view import View
from property_tests.simulation.world.nodes import Inode
from property_tests.simulation.world.world import Process

HIDDEN = re.compile(r"(?:.*/)?\..+\.inprogress\.(?P<tag>[0-9a-f]{8})\.(?P<slot>[0-9]+)\.[^/]+")
_PUT = re.compile(r"_filesink/(?P<sink>[^/]+)/\.(?P<name>(?P<slot>[0-9]+)\.(record|complete))\.put\..*")


class HiddenWatch:
    """Belongs to one observer."""

    def __init__(self, view: View) -> None:
        self._view = view

    def removed(self, process: Process, path: str, inode: Inode) -> None:
        """A process has removed a hidden file."""
        hidden = HIDDEN.fullmatch(path)
        if hidden is None:
            self._removed_before_put(process, path, inode)
            return
        for chain in self._view.chains.values():
            self._check_needed(chain, path, inode)
        owner = inode.owner
        own = (chain for sink, chain in self._view.chains.items() if tag_of(sink) == hidden["tag"])
        decided = max((chain.newest_slot() for chain in own), default=None)
        foreign = isinstance(owner, Process) and owner.driver is not process.driver
        if decided is None:  # of a batch write: nobody but its own driver can decide it
            decided = self._batch_slot(hidden["tag"])
            foreign = foreign and isinstance(owner, Process) and not owner.driver.dead
        if foreign and int(hidden["slot"]) > decided:
            self._view.world.fail(f"I5: {path} belongs to an epoch that another driver may still decide")

    def _removed_before_put(self, process: Process, path: str, inode: Inode) -> None:
        """Of what another one is about to put, only what has come too late may go."""
        owner, put = inode.owner, _PUT.fullmatch(path)
        if put is None or not isinstance(owner, Process) or owner.driver is process.driver:
            return
        chain = self._view.chains.get(put["sink"])
        is_folded = chain is not None and int(put["slot"]) <= chain.mark
        is_there = self._view.world.disk.find(f"_filesink/{put['sink']}/{put['name']}") is not None
        if not (owner.driver.dead or is_folded or is_there):
            self._view.world.fail(f"I5: {path} was removed, which another driver is about to put")

    def _batch_slot(self, tag: str) -> int:
        """Where the files of a batch write belong if that is decided, -1 before."""
        records = (record for chain in self._view.chains.values() for record in chain.records.values())
        return 0 if any(tag_of(record.cause.get("writer", "")) == tag for record in records) else -1

    def _check_needed(self, chain: Chain, path: str, inode: Inode) -> None:
        for record in chain.at_work():
            if not self._view.is_void(record):
                self._check_needed_by(record, path, inode)

    def _check_needed_by(self, newest: Record, path: str, inode: Inode) -> None:
        if path in newest.held:
            self._view.world.fail(f"I5: {path} was removed and the last record holds it")
        for target, entry in newest.pending.items():
            kept = self._view.world.disk.find_synced(target) is inode or target in self._view.replaced.files
            ours = entry["staged"].get("inode", inode.number) == inode.number  # else a late twin's
            if staged_path(entry) == path and ours and not kept:
                self._view.world.fail(f"I1: {path} was removed and its other name, {target}, is not durable")
        if path in newest.discards:
            for target in newest.pending:
                if self._view.world.disk.find(target) is None and target not in self._view.replaced.files:
                    self._view.world.fail(f"I5: {path} was removed before {target} was published")
