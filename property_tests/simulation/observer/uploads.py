"""What the observer knows of multipart uploads, which are no files: whose they are, and who gave them up."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from property_tests.simulation.observer.reading import Chain, Record
from property_tests.simulation.world.bucket import Bucket, Upload
from property_tests.simulation.world.world import Process, World

_OF_PART = re.compile(
    r"-[0-9a-f]{8}-(?P<high>[0-9a-f]{4})-8(?P<low>[0-9a-f]{3})-[0-9a-f]{4}-[0-9a-f]{12}-[0-9]+"
)
_OF_HELD = re.compile(r"\.inprogress\.[0-9a-f]{8}\.(?P<slot>[0-9]+)\.")
_FOREIGN = ("part-of-somebody-else.txt", "part-ffffffff-0000-8000-8000-000000000000-0.txt")
_NEVER_OLD_MS = 10**13  # see ``foreign``


class UploadWatch:
    """Watches the uploads of one bucket, and begins two that are not ours.

    Args:
        world: whose invariants they are.
        bucket: where they are.
        chains: the ledgers, as the observer reads them.
    """

    def __init__(self, world: World, bucket: Bucket, chains: Mapping[str, Chain]) -> None:
        self.bucket = bucket
        self.is_void: Callable[[Record], bool] = lambda _record: False
        self._world = world
        self._chains = chains
        for key in _FOREIGN:
            made = bucket.create_upload(key, "theirs", None)
            bucket.uploads[made.upload_id].begun_ms = _NEVER_OLD_MS

    def check_aborted(self, process: Process) -> None:
        """I1 and I5 for what ``process`` has just given up."""
        aborted, self.bucket.aborted = self.bucket.aborted, []
        decided = max((chain.newest_slot() for chain in self._chains.values()), default=-1)
        for upload in aborted:
            if any(self._is_needed(chain, upload) for chain in self._chains.values()):
                self._world.fail(f"I1: the upload of {upload.key} was aborted and is decided")
            foreign = isinstance(upload.owner, Process) and upload.owner.driver is not process.driver
            if foreign and _slot_of(upload) > decided:
                self._world.fail(f"I5: the upload of {upload.key} may still be decided by another driver")

    def _is_needed(self, chain: Chain, upload: Upload) -> bool:
        """Whether the newest record names it, and is not void because another write has its txn_id."""
        newest = chain.newest()
        return newest is not None and not self.is_void(newest) and _names(chain, upload)

    def check_no_garbage(self, driver: Process, slot: int) -> None:
        """I6 for a driver that nothing has happened to."""
        for upload in self.bucket.uploads.values():
            owner = upload.owner
            if isinstance(owner, Process) and owner.driver is driver and _slot_of(upload) <= slot:
                self._world.fail(f"I6: the upload of {upload.key} is left after slot {slot}")

    def check_end(self, *, days_passed: bool) -> None:
        """I5 and I6 when all is done; probes may stay for a day."""
        uploads = list(self.bucket.uploads.values())
        for upload in uploads:
            grace = "/.probe." in upload.key and not days_passed
            if upload.owner is not None and not grace:
                self._world.fail(f"I6: the upload of {upload.key} is left at the end")
        if [upload.key for upload in uploads if upload.owner is None] != list(_FOREIGN):
            self._world.fail("I5: an upload that is not ours is gone")


def _names(chain: Chain, upload: Upload) -> bool:
    newest = chain.newest()
    entry = None if newest is None else newest.pending.get(upload.key)
    return entry is not None and bool(entry["staged"].get("upload_id") == upload.upload_id)


def _slot_of(upload: Upload) -> int:
    """The slot that an upload of ours was made for, as its key tells; -1 for those of others."""
    found = _OF_PART.search(upload.key)
    if found is not None:
        return int(found["high"] + found["low"], 16)
    held = _OF_HELD.search(upload.key)
    return -1 if held is None else int(held["slot"])
