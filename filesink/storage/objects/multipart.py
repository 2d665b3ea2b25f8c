"""Multipart uploads: how large parts are, and how they are sent while a file is still written.

Parts grow, so that an upload never needs more than 10,000: the first thousand have ``part_size``
bytes each, the next thousand twice that, and so on. With 8 MiB that is 8 TB; the file in which the
growth shows has 8 GB.

Memory: an open file holds what it was given since its last part, one part at most. A part that is
being sent is held too, of these there are ``max_concurrency`` in a task at most; who has one more
waits. Its memory stays in its place afterwards, and is given to who sends the next one. So ``n`` open
files of a task take at most (n + max_concurrency) parts.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import LifoQueue
from typing import TYPE_CHECKING

from filesink.storage.objects.api import LARGEST_PART, CopyRange, Objects
from filesink.storage.staged import PendingUpload, UploadedPart

if TYPE_CHECKING:
    from formats.api import Buffer

_STEP = 1000  # parts of one size


def size_of_part(number: int, first: int, largest: int = LARGEST_PART) -> int:
    """Bytes of part ``number``, from 1, where the first has ``first`` and none more than ``largest``."""
    return min(int(first << ((number - 1) // _STEP)), largest)


class CannotCopy(Exception):  # noqa: N818 - an answer, not an error
    """This store does not know UploadPartCopy. The upload may hold an empty part and is of no use."""


class Senders:
    """Threads that send the parts of one task, started with the first part and ended by ``join``.

    For each there is a place; after a part was sent its memory stays there, for a part that is written
    next: memory fresh from the system takes nearly as long as the sending.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._places: LifoQueue[bytearray] = LifoQueue()
        for _ in range(threads):
            self._places.put(bytearray())
        self._pool: ThreadPoolExecutor | None = None

    def send(self, call: Callable[[], UploadedPart]) -> Future[UploadedPart]:
        """Run ``call`` in a thread; waits as long as all of them are busy."""
        return self._start(call, self._places.get())

    def exchange(
        self, call: Callable[[], UploadedPart], data: bytearray
    ) -> tuple[Future[UploadedPart], bytearray]:
        """As ``send``, and ``data``, which ``call`` reads, is given away for memory to be written over."""
        spare = self._places.get()
        return self._start(call, data), spare

    def submit(self, call: Callable[[], UploadedPart]) -> Future[UploadedPart]:
        """Hand ``call`` to a thread; there is a place for it."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="filesink-s3")
        return self._pool.submit(call)

    def _start(self, call: Callable[[], UploadedPart], left: bytearray) -> Future[UploadedPart]:
        # Emptied by whoever gives the memory back: a future keeps its callbacks, and they keep this list.
        place = [left]
        del left
        try:
            future = self.submit(call)
        except BaseException:
            self._places.put(place.pop())
            raise
        future.add_done_callback(lambda _: self._places.put(place.pop()))
        return future

    def join(self) -> None:
        """End the threads, once what they do is done."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True)


class MultipartUpload:
    """One upload by one thread: parts are numbered as they come and sent beside one another.

    Args:
        objects: the bucket.
        key: what the upload becomes.
        token: of the object.
        senders: of the task.
    """

    def __init__(self, objects: Objects, key: str, *, token: str, senders: Senders) -> None:
        self._objects = objects
        self._key = key
        self._senders = senders
        self._sent: list[Future[UploadedPart]] = []
        self.token = token
        self.upload_id = objects.create_upload(key, token=token).upload_id

    @property
    def next_number(self) -> int:
        """The number of the next part."""
        return len(self._sent) + 1

    def send(self, data: Buffer) -> None:
        """Send one part, which must not change any more. Raises what an earlier part has met."""
        self._refuse_failed()
        self._sent.append(self._senders.send(self._uploading(data)))

    def exchange(self, data: bytearray) -> bytearray:
        """As ``send``, for memory that may be written over: of a part that was sent, or none."""
        self._refuse_failed()
        sent, spare = self._senders.exchange(self._uploading(data), data)
        self._sent.append(sent)
        return spare

    def copy(self, source: CopyRange) -> None:
        """Have the store copy one part; ``finish`` raises ``CannotCopy`` where the store cannot."""
        number = self.next_number

        def copy() -> UploadedPart:
            etag = self._objects.copy_part(self._key, self.upload_id, number=number, source=source)
            if etag is None:
                raise CannotCopy
            return UploadedPart(number=number, etag=etag, size=source.end - source.start)

        self._refuse_failed()
        self._sent.append(self._senders.send(copy))

    def finish(self) -> tuple[UploadedPart, ...]:
        """Wait for all parts; raises if one was not taken."""
        return tuple(future.result() for future in self._sent)

    def pending(self, target: str, parts: tuple[UploadedPart, ...]) -> PendingUpload:
        """What the driver needs to complete this upload as ``target``."""
        size = sum(part.size for part in parts)
        return PendingUpload(
            target=target, upload_id=self.upload_id, parts=parts, size=size, token=self.token
        )

    def abort(self) -> None:
        """Give the upload up, once no part of it is on its way any more. May be repeated."""
        for future in self._sent:
            future.cancel()
        for future in self._sent:
            if not future.cancelled():
                future.exception()
        self._objects.abort(self._key, self.upload_id)

    def _uploading(self, data: Buffer) -> Callable[[], UploadedPart]:
        number = self.next_number

        def upload() -> UploadedPart:
            etag = self._objects.upload_part(self._key, self.upload_id, number=number, data=data)
            return UploadedPart(number=number, etag=etag, size=len(data))

        return upload

    def _refuse_failed(self) -> None:
        for future in self._sent:
            if future.done() and (error := future.exception()) is not None:
                raise error
