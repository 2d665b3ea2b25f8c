"""What writers do when their output fails: one error, for whoever called, and nothing besides."""

from __future__ import annotations

import errno
import gc
import os
import sys

import pyarrow as pa
import pytest

from formats import (
    ArrowWriterFactory,
    AvroWriterFactory,
    CompressWriterFactory,
    Encoder,
    ExcelWriterFactory,
    OrcBulkWriterFactory,
    ParquetWriterFactory,
    SequenceFileWriterFactory,
    XmlWriterFactory,
)

FACTORIES = {
    "parquet": ParquetWriterFactory(compression="none"),
    "orc": OrcBulkWriterFactory(compression="none"),
    "arrow": ArrowWriterFactory(compression="none"),
    "avro": AvroWriterFactory(compression="null"),
    "sequence file": SequenceFileWriterFactory(),
    "xml": XmlWriterFactory(),
    "excel": ExcelWriterFactory(),
    **{
        f"json in {codec}": CompressWriterFactory(encoder=Encoder.json_lines(), codec=codec)
        for codec in ("gzip", "zstd", "lz4", "bzip2", "xz", "snappy")
    },
}
RECORDS = pa.record_batch({"text": pa.array([os.urandom(40).hex() for _ in range(5_000)])})


class Disk:
    """Takes ``room`` bytes for all of its files, and then no more."""

    def __init__(self, room):
        self.room = room
        self.refused = 0

    def file(self):
        return DiskFile(self)


class DiskFile:
    """One file of a ``Disk``."""

    closed = False

    def __init__(self, disk):
        self._disk = disk
        self._size = 0

    def write(self, data):
        size = memoryview(data).nbytes
        if size > self._disk.room:
            self._disk.refused += 1
            raise OSError(errno.ENOSPC, "No space left on device")
        self._disk.room -= size
        self._size += size
        return size

    def tell(self):
        return self._size

    def flush(self):
        pass


def flush_and_finish(writer):
    """Whichever of the two writes."""
    writer.flush()
    writer.finish()


@pytest.fixture
def ignored(monkeypatch):
    """What destructors raise, which Python prints with its trace."""
    found = []
    monkeypatch.setattr(sys, "unraisablehook", lambda failure: found.append(failure.exc_value))
    return found


@pytest.mark.parametrize("factory", FACTORIES.values(), ids=FACTORIES)
def test_many_writers_of_a_full_disk_raise_one_error(factory, ignored, capfd):
    """Writers that are dropped because one of them failed write nothing more, and say nothing more.

    Neither the one that failed nor those that had begun a file, whose libraries would end it.
    """
    disk = Disk(room=1 << 40)
    writers = [factory.create(disk.file(), RECORDS.schema) for _ in range(4)]
    for writer in writers:
        writer.write(RECORDS)
        writer.flush()
    disk.room = 0
    writers[0].write(RECORDS)
    with pytest.raises(OSError, match="No space left") as raised:
        flush_and_finish(writers[0])
    assert raised.value.errno == errno.ENOSPC
    del writer, writers, raised
    gc.collect()
    assert disk.refused == 1
    assert ignored == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("factory", FACTORIES.values(), ids=FACTORIES)
def test_a_writer_that_is_dropped_writes_nothing(factory, ignored):
    """However full its buffers: only ``write``, ``flush`` and ``finish`` do."""
    disk = Disk(room=1 << 40)
    file = disk.file()
    writer = factory.create(file, RECORDS.schema)
    writer.write(RECORDS)
    writer.flush()
    size = file.tell()
    del writer
    gc.collect()
    assert file.tell() == size
    assert ignored == []
