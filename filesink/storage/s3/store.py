"""Files on Amazon S3 and on stores that speak its protocol; see ``filesink.storage.objects.store``."""

from __future__ import annotations

from filesink.storage.objects.store import ObjectStore


class S3Store(ObjectStore):
    """The store of objects, in a bucket of S3."""

    name = "s3"
