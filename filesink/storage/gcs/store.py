"""Files on Google Cloud Storage: hidden objects take the place of multipart uploads; see ``client``."""

from __future__ import annotations

import logging

from filesink.errors import StorageError
from filesink.ports import Clock, Ids
from filesink.storage.api import Removal
from filesink.storage.bucket_ids import Refusal
from filesink.storage.gcs.client import GcsObjects
from filesink.storage.gcs.options import GcsOptions
from filesink.storage.gcs.parts import LONGER_BY
from filesink.storage.objects.api import LONGEST_KEY
from filesink.storage.objects.probe import NOT_ALLOWED
from filesink.storage.objects.store import ObjectStore
from filesink.storage.staged import PendingUpload, Staged

log = logging.getLogger("filesink")


class GcsStore(ObjectStore):
    """The store of objects, on a bucket of Google Cloud Storage."""

    name = "gcs"

    def __init__(
        self, objects: GcsObjects, prefix: str, *, options: GcsOptions, clock: Clock, ids: Ids
    ) -> None:
        super().__init__(objects, prefix, options=options, clock=clock, ids=ids)
        self._gcs = objects

    def prepare(self) -> None:
        """See ``Store.prepare``."""
        super().prepare()
        if self.removal() is Removal.REFUSED:
            log.warning(
                "'%s': nothing can be removed there, so the parts of each file stay beside it and everything "
                "is stored twice. Give these credentials storage.objects.delete, or take a bucket that does "
                "not retain objects",
                self._bucket.where(""),
            )

    def refusal(self, path: str) -> Refusal | None:
        """See ``Store.refusal``; the names of parts are longer than that of the file."""
        key = self._bucket.key(path)
        if len(key.encode()) > LONGEST_KEY - LONGER_BY:
            why = f"makes keys of more than {LONGEST_KEY} bytes, with what is added to those of parts"
            return Refusal(code="TOO_LONG", why=why)
        return super().refusal(path)

    def release(self, staged: Staged) -> None:
        """See ``Store.release``. Where nothing may be removed the file is published all the same."""
        if not isinstance(staged, PendingUpload):
            return
        try:
            self._gcs.release(self._bucket.key(staged.target), staged.upload_id, staged.parts)
        except StorageError as error:
            if error.code not in NOT_ALLOWED:
                raise
