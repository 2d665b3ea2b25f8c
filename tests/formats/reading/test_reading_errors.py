"""What every format that reads does when the store fails, or the bytes are others: it never mixes them up."""

from __future__ import annotations

import errno
import io
import lzma
import struct
import zlib
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from formats import (
    ArrowWriterFactory,
    AvroWriterFactory,
    BulkWriterFactory,
    CompressWriterFactory,
    Encoder,
    ExcelWriterFactory,
    FormatError,
    OrcBulkWriterFactory,
    ParquetLayout,
    ParquetWriterFactory,
    SequenceFileWriterFactory,
    XmlWriterFactory,
)
from formats.avro import container as avro_container
from formats.avro.codecs import AvroCodec
from formats.compressed import decompress as expanding
from formats.read_limits import guard_of

GUARD = guard_of(io.BytesIO())

ROWS = pa.record_batch(
    {"n": pa.array(range(60), pa.int32()), "t": [f"row {number} " * (number % 5) for number in range(60)]}
)
WIDE = pa.record_batch({"l": [["a", "b"], [], None, ["c"]] * 9, "s": [{"x": 1}, None, {"x": 3}, {}] * 9})


@dataclass(frozen=True)
class Read:
    """A format, what it is given, and whether a checksum covers every value.

    Attributes:
        needs_schema: its files do not say their types.
    """

    format: BulkWriterFactory | Encoder
    rows: pa.RecordBatch = field(default_factory=lambda: ROWS)
    needs_schema: bool = False
    is_sealed: bool = False

    def file(self):
        """The bytes of a finished file."""
        output = io.BytesIO()
        if isinstance(self.format, Encoder):
            output.write(self.format.header(self.rows.schema))
            output.write(self.format.encode(self.rows))
        else:
            writer = self.format.create(output, self.rows.schema)
            writer.write(self.rows)
            writer.finish()
        return output.getvalue()

    def table(self, file):
        """What a reader finds in it."""
        return self.format.open_reader(
            file, schema=self.rows.schema if self.needs_schema else None
        ).read_all()


# Ours of zstd and lz4 have no checksum. That of snappy leaves out the kind of a chunk, which may be unknown.
CODECS = {"gzip": True, "zstd": False, "lz4": False, "bzip2": True, "xz": True, "snappy": False}
FORMATS = {
    "text": Read(Encoder.simple_string_encoder(), ROWS.select(["t"])),
    "json": Read(Encoder.json_lines(), needs_schema=True),
    "csv": Read(Encoder.csv(), needs_schema=True),
    "csv-utf16": Read(Encoder.csv(charset="UTF-16-LE"), needs_schema=True),
    "xml": Read(XmlWriterFactory(), needs_schema=True),
    "excel": Read(ExcelWriterFactory(), needs_schema=True, is_sealed=True),
    "avro": Read(AvroWriterFactory()),
    "avro-null": Read(AvroWriterFactory(compression="null"), WIDE),
    "parquet": Read(ParquetWriterFactory()),
    "parquet-wide": Read(ParquetWriterFactory(compression="snappy"), WIDE),
    "parquet-checksums": Read(ParquetWriterFactory(layout=ParquetLayout(page_checksums=True))),
    "orc": Read(OrcBulkWriterFactory()),
    "orc-snappy": Read(OrcBulkWriterFactory(compression="snappy"), WIDE),
    "arrow": Read(ArrowWriterFactory()),
    "arrow-wide": Read(ArrowWriterFactory(compression="none"), WIDE),
    **{
        f"sequence-{each}": Read(SequenceFileWriterFactory(key="n", value="t", compression=each))
        for each in ("none", "record", "block")
    },
    **{
        f"csv-in-{codec}": Read(
            CompressWriterFactory(encoder=Encoder.csv(), codec=codec), needs_schema=True, is_sealed=sealed
        )
        for codec, sealed in CODECS.items()
    },
    "avro-in-zstd": Read(CompressWriterFactory(encoder=Encoder.avro("null"), codec="zstd")),
}


@pytest.fixture(params=FORMATS.values(), ids=FORMATS.keys())
def case(request):
    """Each format that reads."""
    return request.param


class StoreError(OSError):
    """As ``filesink.errors.StorageError``: a sentence and a code, and no number of the system."""


class ClientError(Exception):
    """As a library for some store has them."""


ERRORS = [
    TimeoutError(errno.ETIMEDOUT, "timed out"),
    TimeoutError(),
    StoreError("the store did not answer", "UNAVAILABLE"),
    OSError("as the files of pyarrow have them"),
    ClientError("no connection"),
]


class Unreliable(io.BytesIO):
    """A file whose ``method`` raises ``error`` when it is called for the time that ``at`` says."""

    def __init__(self, data, method, at, error):
        super().__init__(data)
        self.calls = 0
        self._fails = (method, at)
        self._error = error

    def read(self, size=-1):
        self._call("read")
        return super().read(size)

    def seek(self, offset, whence=io.SEEK_SET):
        self._call("seek")
        return super().seek(offset, whence)

    def _call(self, method):
        if method == self._fails[0]:
            self.calls += 1
            if self.calls - 1 == self._fails[1]:
                raise self._error


@pytest.mark.parametrize(
    ("method", "error"),
    [*(("read", error) for error in ERRORS), ("seek", ERRORS[0]), ("seek", ERRORS[-1])],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_an_error_of_the_store_is_no_damage(case, method, error):
    """It comes out as it was, whenever it happens: nobody shall give up a file as the network is down."""
    data = case.file()
    whole = Unreliable(data, method, None, None)
    right = case.table(whole)
    for at in {*range(min(whole.calls, 4)), *range(whole.calls)[-2:]}:
        try:
            found = case.table(Unreliable(data, method, at, error))
        except type(error) as raised:
            assert raised is error  # noqa: PT017 - zipfile does without two of its looks
        else:
            assert (method, found) == ("seek", right)


def others(data, flips=200):
    """Copies of ``data`` in which one byte is another."""
    step = max(1, len(data) // flips)
    for place in range(0, len(data), step):
        for mask in (0xFF, 1 << place % 8):
            yield data[:place] + bytes([data[place] ^ mask]) + data[place + 1 :]


# Not ORC: what reads it believes a length in the file that is another, and ends the process. See below.
SAFE = {name: case for name, case in FORMATS.items() if not name.startswith("orc")}


@pytest.mark.filterwarnings("ignore::UserWarning")  # openpyxl's, of what is not there
@pytest.mark.parametrize("case", SAFE.values(), ids=SAFE.keys())
def test_a_flipped_byte_is_harmless_or_refused(case):
    """Nothing but our own error comes out; where a checksum covers the values, they are right."""
    data = case.file()
    right = case.table(io.BytesIO(data))
    refused = 0
    for damaged in others(data):
        try:
            found = case.table(io.BytesIO(damaged))
        except FormatError:
            refused += 1
        else:
            assert found == right or not case.is_sealed
    assert refused


@pytest.mark.parametrize("codec", ["snappy", "zlib"])
def test_a_damaged_stripe_is_refused(codec):
    """What is not ORC's frame, but inside of it, is found by decompressors, with errors of many kinds."""
    texts = [f"row {number} and more {number * number}" for number in range(5_000)]
    case = Read(OrcBulkWriterFactory(compression=codec), pa.record_batch({"t": texts}))
    data = case.file()
    middle = len(data) // 2
    with pytest.raises(FormatError) as error:
        case.table(io.BytesIO(data[:middle] + bytes(200) + data[middle + 200 :]))
    assert error.value.kind == "value"


def test_checksums_of_pages_are_looked_at():
    """A file that has them is not read as one of other values."""
    layout = ParquetLayout(page_checksums=True, dictionary="none")
    case = Read(ParquetWriterFactory(compression="none", layout=layout))
    data = case.file()
    for text in (b"row 12 row 12 ", b"row 59 row"):
        with pytest.raises(FormatError, match="damaged") as error:
            case.table(io.BytesIO(data.replace(text, text.swapcase(), 1)))
        assert error.value.kind == "value"


@pytest.mark.parametrize("offsets", [(0, 1 << 30, 2), (0, -1, 2), (0, 2, 1)], ids=str)
def test_offsets_out_of_bounds_are_refused(offsets):
    """Whoever followed them would read memory of others; the ends look right."""
    case = Read(ArrowWriterFactory(compression="none"), pa.record_batch({"t": ["a", "b", "c"]}))
    data = case.file()
    good, bad = (struct.pack("<4i", *each, 3) for each in ((0, 1, 2), offsets))
    assert data.count(good) == 1
    with pytest.raises(FormatError, match="damaged") as error:
        case.table(io.BytesIO(data.replace(good, bad)))
    assert error.value.kind == "value"


def test_a_chunk_of_snappy_does_not_become_a_beginning():
    """A beginning has its own bytes; other ones would be passed over with the records that they are."""
    case = FORMATS["csv-in-snappy"]
    data = case.file()
    start = len(expanding.SNAPPY_START)
    assert data[start] in {0, 1}
    with pytest.raises(FormatError) as error:
        case.table(io.BytesIO(data[:start] + b"\xff" + data[start + 1 :]))
    assert error.value.kind == "value"
    assert case.table(io.BytesIO(data[:start] + expanding.SNAPPY_START + data[start:])).num_rows == 60


def greedy(data):
    """``data`` of xz, which now asks for a dictionary of 1.5 GiB."""
    head = bytearray(data[12 : 12 + 4 * (data[12] + 1)])  # behind the header of the stream
    assert head[2:4] == b"\x21\x01"  # LZMA2, whose one property is the size
    head[4] = 37
    head[-4:] = zlib.crc32(head[:-4]).to_bytes(4, "little")
    return data[:12] + bytes(head) + data[12 + len(head) :]


def test_xz_cannot_ask_for_any_memory():
    """Some bytes that want a large dictionary are refused, in Avro's blocks as in compressed files."""
    data = greedy(lzma.compress(b'"1"\n'))
    assert lzma.decompress(data) == b'"1"\n'
    with pytest.raises(FormatError) as error:
        AvroCodec(name="xz").expand(data, guard=GUARD)
    assert error.value.kind == "value"
    csv = CompressWriterFactory(encoder=Encoder.csv(), codec="xz")
    with pytest.raises(FormatError) as error:
        csv.open_reader(io.BytesIO(data), schema=pa.schema([("n", pa.int64())])).read_all()
    assert error.value.kind == "value"


MARKER = bytes(range(16))


def test_an_avro_block_with_another_marker_is_damage():
    """What follows it is not what its writer has put there, however well its records look."""
    good = b"".join(avro_container.block(1, b"record", marker=MARKER))
    assert [found.data for found in avro_container.read_blocks(io.BytesIO(good), MARKER, GUARD)] == [
        b"record"
    ]
    with pytest.raises(FormatError, match="damaged or cut off"):
        list(avro_container.read_blocks(io.BytesIO(good[:-1] + b"?"), MARKER, GUARD))


def test_avro_metadata_that_says_its_size_is_read():
    """Other writers may put the length of the map's block before it, and a negative count before that."""
    pairs = b"".join(
        avro_container.zigzag(len(part)) + part for part in (b"avro.codec", b"null", b"avro.schema", b"{}")
    )
    data = b"Obj\x01\x03" + avro_container.zigzag(len(pairs)) + pairs + b"\0" + MARKER
    found = avro_container.read_header(io.BytesIO(data))
    assert found.metadata == {"avro.codec": b"null", "avro.schema": b"{}"}
    assert found.marker == MARKER
