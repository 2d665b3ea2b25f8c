"""``Objects`` on a simulated bucket: what one process sees of it. Every call may fail, or be the last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from filesink.errors import StorageError
from filesink.ports import SerialRunner
from filesink.storage.objects.api import (
    RACE,
    UNAVAILABLE,
    Condition,
    CopyRange,
    FoundObject,
    FoundUpload,
    NewUpload,
    ObjectInfo,
)
from filesink.storage.objects.multipart import Senders
from filesink.storage.s3.options import S3Options
from filesink.storage.s3.store import S3Store
from filesink.storage.staged import UploadedPart
from property_tests.simulation.world.bucket import Bucket
from property_tests.simulation.world.clock import SimClock, SimIds
from property_tests.simulation.world.sim_fs import NO_COMPONENT
from property_tests.simulation.world.world import Process, World

if TYPE_CHECKING:
    from formats.api import Buffer

R = TypeVar("R")
_PART_BYTES = 16  # of an upload's parts: two rows
_OPTIONS = S3Options()

#: HTTP status of a fault to the code of the error that the client makes of it; others are no answer.
_CODES = {403: "PERMISSION", 409: RACE}


def open_sim_store(world: World, bucket: Bucket, ids: SimIds) -> S3Store:
    """The store as the process that runs now opens it."""
    objects = SimObjects(world, world.current, bucket)
    store = S3Store(objects, "", options=_OPTIONS, clock=SimClock(world), ids=ids)
    store.runner = SerialRunner()
    store._uploads = replace(
        store._uploads, senders=InlineSenders(1), runner=store.runner, part_size=_PART_BYTES
    )
    return store


class InlineSenders(Senders):
    """Sends each part before the next: a simulated process has no threads of the real world."""

    def submit(self, call: Callable[[], UploadedPart]) -> Future[UploadedPart]:
        """See ``Senders.submit``."""
        future: Future[UploadedPart] = Future()
        try:
            future.set_result(call())
        except StorageError as error:
            future.set_exception(error)
        return future


class SimObjects:
    """A bucket, for one process."""

    where = "s3://sim"

    def __init__(self, world: World, process: Process, bucket: Bucket) -> None:
        self._world = world
        self._process = process
        self._bucket = bucket

    def head(self, key: str, /) -> ObjectInfo | None:
        """See ``Objects.head``."""
        return self._call("head", key, self._bucket.head, key)

    def get(self, key: str, /, *, start: int = 0, end: int | None = None, etag: str = "") -> bytes:
        """See ``Objects.get``."""
        return self._call("get", key, self._bucket.get, key, start, end, etag)

    def put(self, key: str, data: Buffer, /, *, token: str, condition: Condition) -> None:
        """See ``Objects.put``."""
        self._call("put", key, self._bucket.put, key, bytes(data), token, condition, self._process)

    def delete(self, key: str, /, *, etag: str = "") -> None:
        """See ``Objects.delete``."""
        self._call("delete", key, self._bucket.delete, key, etag)

    def list_objects(self, prefix: str, /) -> tuple[list[FoundObject], list[str]]:
        """See ``Objects.list_objects``."""
        return self._call("list_objects", prefix.rstrip("/"), self._bucket.list_objects, prefix)

    def list_uploads(self, prefix: str, /) -> tuple[list[FoundUpload], list[str]]:
        """See ``Objects.list_uploads``."""
        return self._call("list_uploads", prefix.rstrip("/"), self._bucket.list_uploads, prefix)

    def create_upload(self, key: str, /, *, token: str) -> NewUpload:
        """See ``Objects.create_upload``."""
        return self._call("create_upload", key, self._bucket.create_upload, key, token, self._process)

    def upload_part(self, key: str, upload_id: str, /, *, number: int, data: Buffer) -> str:
        """See ``Objects.upload_part``."""
        return self._call("upload_part", key, self._bucket.upload_part, key, upload_id, number, bytes(data))

    def copy_part(self, key: str, upload_id: str, /, *, number: int, source: CopyRange) -> str | None:
        """See ``Objects.copy_part``."""
        return self._call("copy_part", key, self._bucket.copy_part, key, upload_id, number, source)

    def list_parts(self, key: str, upload_id: str, /) -> list[UploadedPart] | None:
        """See ``Objects.list_parts``."""
        return self._call("list_parts", key, self._bucket.list_parts, key, upload_id)

    def complete(
        self, key: str, upload_id: str, /, *, parts: Sequence[UploadedPart], condition: Condition
    ) -> None:
        """See ``Objects.complete``."""
        self._call("complete", key, self._bucket.complete, key, upload_id, tuple(parts), condition)

    def abort(self, key: str, upload_id: str, /) -> None:
        """See ``Objects.abort``."""
        self._call("abort", key, self._bucket.abort, key, upload_id)

    def _call(self, operation: str, key: str, effect: Callable[..., R], *arguments: Any) -> R:
        if key and not NO_COMPONENT.isdisjoint(key.split("/")):
            self._world.fail(f"I10: key {key!r} leaves the base")
        self._bucket.expire()
        try:
            return self._world.step(self._process, operation, key, effect, *arguments)
        except (StorageError, FileNotFoundError):
            raise  # an answer of the bucket
        except OSError as error:  # a fault, with an HTTP status for its number
            raise StorageError("simulated", code=_CODES.get(error.errno or 0, UNAVAILABLE)) from error
