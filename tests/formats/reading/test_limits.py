"""Files of strangers: each bomb ends in a typed error, or is read, within four times the limit of a record.

Peak memory is that of a process which reads one file and nothing else.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from formats import AvroWriterFactory, Encoder, FormatError, LimitError, ReadLimits, bounded
from tests.formats.programs.bombs import ALL, CHANGED

Explode = Callable[[str], list[str]]


@pytest.fixture(scope="module")
def explode(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explode]:
    """Outcome, message and peak of memory of a bomb; one program for all of them."""
    directory = tmp_path_factory.mktemp("bombs")
    command = [sys.executable, "-m", "tests.formats.programs.bombs", str(directory)]
    with (directory / "log").open("w+") as log:
        program = subprocess.Popen(  # noqa: S603 - our own
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1
        )
        assert program.stdin is not None
        assert program.stdout is not None

        def one(name: str) -> list[str]:
            print(name, file=program.stdin)
            answer = program.stdout.readline()
            assert answer, (directory / "log").read_text()[-2000:]
            return answer.rstrip("\n").split("\t")

        yield one
        program.communicate()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in CHANGED else pytest.mark.nightly) for name in ALL]
)
def test_a_bomb_takes_no_more_than_four_limits(name: str, explode: Explode) -> None:
    """Whatever a record claims, or becomes: memory stays bounded, and the error names the file."""
    outcome, message, peak = explode(name)
    bomb = ALL[name]
    assert outcome == bomb.outcome, (outcome, message)
    if outcome == "LimitError":
        assert f"'{name}'" in message
    assert int(peak) <= bomb.most, f"{int(peak) / bomb.limit:.1f} times the limit"


def test_an_error_says_which_limit_and_how_to_raise_it() -> None:
    """And crosses processes as what it is; a trusted file is read with more."""
    schema = pa.schema([("value", pa.string())])
    encoder = Encoder.simple_string_encoder()
    file = bounded(pa.BufferReader(b"x" * 3000 + b"\n"), limits=ReadLimits(record="2KiB"), name="a.txt")
    with pytest.raises(LimitError, match=r"a line in 'a\.txt' is larger than 2048 bytes.*record=") as raised:
        encoder.open_reader(file, schema=schema).read_all()
    error = pickle.loads(pickle.dumps(raised.value))  # noqa: S301 - our own
    assert (error.kind, error.file, error.limit, error.size) == ("value", "a.txt", "record", 2048)
    assert str(error) == str(raised.value)
    trusted = bounded(pa.BufferReader(b"x" * 3000 + b"\n"), limits=ReadLimits(record="4KiB"))
    assert encoder.open_reader(trusted, schema=schema).read_all().num_rows == 1


@pytest.mark.parametrize("code", [Encoder.simple_string_encoder(), Encoder.json_lines(), Encoder.csv()])
def test_a_file_has_a_limit_of_its_own(code: Encoder) -> None:
    """Of all records together, where one is asked for."""
    schema = pa.schema([("value", pa.string())])
    line = b'{"value":"abcdefgh"}\n' if code.extension == ".json" else b"abcdefgh\n"
    for count, most in ((100, "1MiB"), (100_000, "512KiB")):
        file = bounded(pa.BufferReader(line * count), limits=ReadLimits(file=most))
        if most == "1MiB":
            assert code.open_reader(file, schema=schema).read_all().num_rows == count
            continue
        with pytest.raises(LimitError, match=r"file=") as raised:
            code.open_reader(file, schema=schema).read_all()
        assert raised.value.limit == "file"


@pytest.mark.parametrize("options", [{"record": 0}, {"record": "x"}, {"file": "-1"}, {"record": None}])
def test_limits_are_sizes(options: dict) -> None:
    """Bytes, or text with a unit."""
    with pytest.raises(FormatError) as raised:
        ReadLimits(**options)
    assert raised.value.kind == "option"


def test_large_arrays_of_avro_that_fit_are_read() -> None:
    """Items are counted where bytes do not bound them well enough, and what is counted may fit."""
    batch = pa.record_batch({"a": pa.array([list(range(2000)), None, []], pa.list_(pa.int64()))})
    factory = AvroWriterFactory(compression="null")
    output = pa.BufferOutputStream()
    writer = factory.create(output, batch.schema)
    writer.write(batch)
    writer.finish()
    data = output.getvalue()
    for record, fits in (("1MiB", True), ("100KB", True), ("20KB", False)):
        file = bounded(pa.BufferReader(data), limits=ReadLimits(record=record))
        try:
            assert factory.open_reader(file).read_all().to_pylist() == batch.to_pylist()
        except LimitError:
            assert not fits
        else:
            assert fits
