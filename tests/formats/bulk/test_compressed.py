"""Compressed files, against other programs' readers of each codec."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import shutil
import subprocess
import tracemalloc

import cramjam
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import CompressWriterFactory, Encoder, FormatError
from formats.compressed import decompress as expanding

CODECS = ["gzip", "zstd", "lz4", "bzip2", "xz", "snappy"]
READERS = {
    "gzip": gzip.decompress,
    "bzip2": bz2.decompress,
    "xz": lzma.decompress,
    "snappy": lambda data: bytes(cramjam.snappy.decompress(data)),
    "zstd": lambda data: pa.CompressedInputStream(io.BytesIO(data), "zstd").read(),
    "lz4": lambda data: pa.CompressedInputStream(io.BytesIO(data), "lz4").read(),
}
TEXTS = pa.schema([("t", pa.string())])


def file_of(factory, *batches, schema=None):
    """A finished file."""
    output = io.BytesIO()
    writer = factory.create(output, schema or batches[0].schema)
    for batch in batches:
        writer.write(batch)
        writer.flush()
    writer.finish()
    return output.getvalue()


def texts(*values):
    """One column."""
    return pa.record_batch({"t": pa.array(values, pa.string())})


@pytest.mark.parametrize("codec", CODECS)
@given(batches=st.lists(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"))), max_size=3))
def test_other_programs_read_all_members_as_one(codec, batches):
    """However often a file was flushed, it expands to the lines in their order, and we read the same."""
    factory = CompressWriterFactory(encoder=Encoder.simple_string_encoder(), codec=codec)
    data = file_of(factory, *(texts(*batch) for batch in batches), schema=TEXTS)
    lines = [line for batch in batches for line in batch]
    assert READERS[codec](data).decode() == "".join(f"{line}\n" for line in lines)
    assert factory.open_reader(io.BytesIO(data), schema=TEXTS).read_all().to_pydict() == {"t": lines}


@pytest.mark.parametrize(
    ("codec", "tool"), [("zstd", "zstd"), ("lz4", "lz4"), ("xz", "xz"), ("gzip", "gzip")]
)
def test_the_codec_s_own_tool_reads_it(codec, tool, tmp_path):
    """The command line agrees."""
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    factory = CompressWriterFactory(encoder=Encoder.simple_string_encoder(), codec=codec)
    path = tmp_path / f"a{factory.extension}"
    path.write_bytes(file_of(factory, texts("a", "b"), texts("c")))
    found = subprocess.run([tool, "-dc", str(path)], check=True, capture_output=True)  # noqa: S603
    assert found.stdout == b"a\nb\nc\n"


@pytest.mark.parametrize("codec", CODECS)
def test_every_part_has_one_header(codec):
    """Also one without records, and however many members there are."""
    factory = CompressWriterFactory(encoder=Encoder.csv(header=True), codec=codec)
    assert READERS[codec](file_of(factory, texts("a"), texts("b"))) == b"t\na\nb\n"
    assert READERS[codec](file_of(factory, schema=TEXTS)) == b"t\n"


@pytest.mark.parametrize("codec", CODECS)
def test_damage_is_an_error(codec):
    """A file cut inside a member never reads as a shorter one."""
    factory = CompressWriterFactory(encoder=Encoder.simple_string_encoder(), codec=codec)
    data = file_of(factory, texts("a" * 100, "b"), texts(*map(str, range(1000))))
    for keep in (0, 3, len(data) // 2, len(data) - 1):
        with pytest.raises(FormatError) as error:
            factory.open_reader(io.BytesIO(data[:keep]), schema=TEXTS).read_all()
        assert error.value.kind == "value"


@pytest.mark.parametrize("codec", CODECS)
def test_what_expands_a_lot_takes_no_more_memory_than_what_is_read(codec):
    """A few bytes of a file may stand for any number of them."""
    level = 0 if codec == "xz" else None  # its other levels have dictionaries of megabytes
    data = CompressWriterFactory(encoder=Encoder.csv(), codec=codec, level=level).compress(bytes(8 << 20))
    tracemalloc.start()
    try:
        assert expanding.expanded(io.BytesIO(data), codec).read(1 << 20) == bytes(1 << 20)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


@pytest.mark.parametrize(
    ("codec", "extension"),
    [("gzip", ".csv.gz"), ("zstd", ".csv.zst"), ("lz4", ".csv.lz4"), ("bzip2", ".csv.bz2"), ("xz", ".csv.xz"),
     ("snappy", ".csv.sz")],
)  # fmt: skip
def test_the_name_says_format_and_codec(codec, extension):
    """What a file holds is in its name."""
    assert CompressWriterFactory(encoder=Encoder.csv(), codec=codec).extension == extension


@pytest.mark.parametrize(
    "options",
    [{"codec": "lzo"}, {"codec": None}, {"codec": "gzip", "level": 10}, {"codec": "snappy", "level": 1},
     {"codec": "xz", "level": "6"}, {"codec": "zstd", "level": 0}, {"encoder": "csv"}, {"block_size": 0}],
    ids=str,
)  # fmt: skip
def test_options_a_codec_does_not_have_are_refused(options):
    """Never plain data under a wrong name, nor a level that means something else."""
    with pytest.raises(FormatError) as error:
        CompressWriterFactory(**{"encoder": Encoder.csv(), **options})
    assert error.value.kind == "option"


def test_what_the_format_refuses_is_refused():
    """Before anything is written: columns that it has no form for, and such as may not follow others."""
    factory = CompressWriterFactory(encoder=Encoder.csv())
    with pytest.raises(FormatError, match="does not fit into CSV"):
        factory.check_schema(pa.schema([("a", pa.list_(pa.string()))]))
    two = [pa.field("a", pa.string()), pa.field("b", pa.string())]
    with pytest.raises(FormatError, match="keep the order"):
        factory.check_continues(pa.schema(two), pa.schema(two[::-1]))


def test_levels_and_formats_have_signatures():
    """Files with other options are not put together."""
    made = [
        CompressWriterFactory(encoder=encoder, codec=codec, level=level)
        for encoder in (Encoder.csv(), Encoder.json_lines())
        for codec, level in (("gzip", None), ("gzip", 1), ("zstd", None))
    ]
    assert len({factory.signature() for factory in made}) == len(made)


@pytest.mark.parametrize(
    ("codec", "level", "compress"),
    [
        ("gzip", 0, lambda data: gzip.compress(data, 0, mtime=0)),
        ("gzip", None, lambda data: gzip.compress(data, 6, mtime=0)),
        ("gzip", 9, lambda data: gzip.compress(data, 9, mtime=0)),
        ("bzip2", 1, lambda data: bz2.compress(data, 1)),
        ("bzip2", None, bz2.compress),
        ("xz", 0, lambda data: lzma.compress(data, preset=0)),
        ("xz", 9, lambda data: lzma.compress(data, preset=9)),
        ("zstd", 19, lambda data: pa.Codec("zstd", compression_level=19).compress(data, asbytes=True)),
        ("lz4", 12, lambda data: pa.Codec("lz4", compression_level=12).compress(data, asbytes=True)),
    ],
)
def test_a_level_is_that_of_the_codec(codec, level, compress):
    """The lowest is not the default; without one it is the codec's own, for gzip that of the program."""
    data = " ".join(str(number * 7919 % 10007) for number in range(3000)).encode()
    factory = CompressWriterFactory(encoder=Encoder.simple_string_encoder(), codec=codec, level=level)
    assert factory.compress(data) == compress(data)


@pytest.mark.parametrize("codec", CODECS)
def test_equal_records_are_equal_bytes_at_any_time(monkeypatch, codec):
    """No file tells when it was written, so one that is written again can be compared."""
    factory = CompressWriterFactory(encoder=Encoder.simple_string_encoder(), codec=codec)
    files = set()
    for now in (1_000_000_000.0, 2_000_000_000.0):
        monkeypatch.setattr("time.time", lambda now=now: now)
        files.add(file_of(factory, texts("a", "b")))
    assert len(files) == 1
