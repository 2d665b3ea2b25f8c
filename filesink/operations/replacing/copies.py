"""New hidden files made of finished ones."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from filesink.api import EpochContext
from filesink.errors import ConcurrentDriverError, StorageError
from filesink.naming import HiddenName, join, name_of, new_part_id, parse_part, sink_tag
from filesink.parts.committables import PendingFile
from filesink.sink_directory.live_files import LiveFile
from filesink.storage.api import Output, Store

_PIECE = 1 << 20  # bytes at a time


def made_of(
    source: LiveFile, store: Store, epoch: EpochContext, *, write: Callable[[Output], int]
) -> PendingFile:
    """A file beside ``source``, named as it is but for its id, with what ``write`` puts into it.

    Args:
        source: a finished file.
        store: where it is.
        epoch: that makes the new one visible.
        write: returns how many rows it has written.
    """
    tag, name = sink_tag(epoch.sink_id), parse_part(name_of(source.path))
    prefix, suffix = ("part", "") if name is None else (name.prefix, name.suffix)
    target = join(source.bucket, f"{prefix}-{new_part_id(tag, epoch.slot, epoch.ids)}-0{suffix}")
    hidden = HiddenName(target=prefix, tag=tag, slot=epoch.slot, attempt=epoch.ids.uuid())
    output = store.create(join(source.bucket, str(hidden)), target=target)
    try:
        rows = write(output)
        staged = output.close()
    except BaseException:  # the program may be stopped; what is left has a name of ours and is swept
        with suppress(StorageError):
            output.discard()
        raise
    return PendingFile(bucket=source.bucket, target=target, staged=staged, rows=rows, size=staged.size)


def copy_of(source: LiveFile, store: Store, epoch: EpochContext) -> PendingFile:
    """A file with the same bytes.

    Raises:
        ConcurrentDriverError: it is not there any more, or has other bytes than it had.
    """

    def write(output: Output) -> int:
        try:
            with store.open_input(source.path) as stream:
                while data := stream.read(_PIECE):
                    output.write(data)
        except FileNotFoundError as error:
            raise _gone(source) from error
        if output.tell() != source.size:
            raise _gone(source)
        return source.rows or 0

    return made_of(source, store, epoch, write=write)


def _gone(source: LiveFile) -> ConcurrentDriverError:
    return ConcurrentDriverError(
        f"'{source.path}' was removed or changed while it was copied. Nothing was changed; call it again",
        code="CONCURRENT_DRIVER",
    )
