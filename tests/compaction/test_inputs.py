"""What goes wrong while inputs of a merge are read: the store, or their bytes. Only bytes may be given up."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compaction import parquet
from compaction.inputs import HeldInput
from compaction.record_wise import RecordWiseFileCompactor
from filesink.errors import CompactionError, StorageError
from filesink.parts.file_format import BulkFormat
from filesink.storage.open import open_store
from formats import ParquetWriterFactory
from tests.fakes import held
from tests.storage.local.descriptors import descriptors

FORM = BulkFormat(ParquetWriterFactory(compression="snappy"))


class Store(io.BytesIO):
    """A file whose store fails from the n-th read on."""

    def __init__(self, data: bytes, reads: int) -> None:
        super().__init__(data)
        self._left = reads

    def read(self, size=-1, /):
        self._left -= 1
        if self._left < 0:
            raise StorageError("the store does not answer", code="IO")
        return super().read(size)


@dataclass(frozen=True)
class Input:
    """Implements ``InputFile``; ``reads`` go well each time it is opened."""

    data: bytes
    reads: int = 1_000_000
    rows: int = 3000
    signature: str = "s"

    @property
    def size(self) -> int:
        return len(self.data)

    def open(self):
        return Store(self.data, self.reads)


class Output(io.BytesIO):
    """What is merged into; one write fails, if there are so many."""

    def __init__(self, failing: int = -1) -> None:
        super().__init__()
        self._failing = failing
        self.writes = 0

    def write(self, data, /):
        self.writes += 1
        if self.writes - 1 == self._failing:
            raise StorageError("no room", code="NO_SPACE")
        return super().write(data)


@pytest.fixture
def data():
    """A file of one row group with text that does not repeat."""
    table = pa.table({"a": [f"{number * 7919 % 3001}-{number}" for number in range(3000)]})
    out = io.BytesIO()
    pq.write_table(table, out, compression="snappy", use_dictionary=False)
    return out.getvalue()


WAYS = {"whole": 1 << 20, "streamed": 0}  # small files are read at once, large ones bit by bit


@pytest.mark.parametrize(("way", "reads"), [("whole", 0), ("streamed", 0), ("streamed", 1)])
def test_an_error_of_the_store_is_no_damage(data, monkeypatch, way, reads):
    """Nobody is told to give rows up because a store was away."""
    monkeypatch.setattr(parquet, "_WHOLE", WAYS[way])
    with pytest.raises(StorageError) as raised:
        RecordWiseFileCompactor().rewrite([Input(data), Input(data, reads)], Output(), FORM)
    assert raised.value.code == "IO"


def test_no_error_of_the_output_is_overlooked(data):
    """Whichever row group is encoded when it comes, and though all that follows can be written."""
    form, output = BulkFormat(ParquetWriterFactory(row_group_size=1)), Output()
    RecordWiseFileCompactor().rewrite([Input(data)] * 3, output, form)
    assert pq.ParquetFile(output).num_row_groups == 3
    for number in range(output.writes):
        with pytest.raises(StorageError, match="no room"):
            RecordWiseFileCompactor().rewrite([Input(data)] * 3, Output(number), form)


def test_a_file_of_other_columns_than_its_signature_says_is_not_merged(data):
    """Its records would be nulls, or an error of a library."""
    other = io.BytesIO()
    pq.write_table(pa.table({"b": range(3000)}), other)
    form = BulkFormat(ParquetWriterFactory(row_group_size=1))
    with pytest.raises(CompactionError) as raised:
        RecordWiseFileCompactor().rewrite([Input(data), Input(other.getvalue())], Output(), form)
    assert raised.value.code == "SCHEMA"


def test_files_without_records_are_merged_as_others(data):
    """Wherever one stands, and if there are no others."""
    empty, factory = io.BytesIO(), ParquetWriterFactory()
    factory.create(empty, pa.schema([("a", pa.string())])).finish()
    none, some = Input(empty.getvalue(), rows=0), Input(data)
    for inputs in ([none, some], [some, none, some], [none, none]):
        output = Output()
        rows = RecordWiseFileCompactor().rewrite(inputs, output, BulkFormat(factory))
        assert rows == pq.read_table(output).num_rows == sum(file.rows for file in inputs)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", [0.3, 0.6])
def test_damaged_pages_are_named_as_such(data, monkeypatch, way, place):
    """A merge that cannot decode its inputs says what can be done, with no bare error of a library."""
    monkeypatch.setattr(parquet, "_WHOLE", WAYS[way])
    damaged = bytearray(data)
    start = int(len(data) * place)
    damaged[start : start + 64] = b"\xff" * 64
    with pytest.raises(CompactionError) as raised:
        RecordWiseFileCompactor().rewrite([Input(data), Input(bytes(damaged))], Output(), FORM)
    assert raised.value.code == "INPUT"


@pytest.mark.parametrize("way", WAYS)
def test_a_wrong_value_gets_no_right_checksum(monkeypatch, way):
    """A page that does not match its CRC is damage, although it can be decoded."""
    monkeypatch.setattr(parquet, "_WHOLE", WAYS[way])
    out = io.BytesIO()
    numbers = pa.table({"a": pa.array([7_777_777] * 3000, pa.int64())})
    pq.write_table(numbers, out, compression="none", use_dictionary=False, write_page_checksum=True)
    damaged = bytearray(out.getvalue())
    damaged[damaged.find((7_777_777).to_bytes(8, "little")) + 800] ^= 0x40
    with pytest.raises(CompactionError) as raised:
        RecordWiseFileCompactor().rewrite(
            [Input(out.getvalue()), Input(bytes(damaged))], Output(), BulkFormat(ParquetWriterFactory())
        )
    assert raised.value.code == "INPUT"


def test_texts_that_repeat_count_each_time_for_the_size_of_a_row_group():
    """Readers have them in memory as often as there are records."""
    file = io.BytesIO()
    pq.write_table(pa.table({"a": [f"{number % 3}" * 1_000 for number in range(3_000)]}), file)
    factory, output = ParquetWriterFactory(row_group_size="5MB"), Output()
    rows = RecordWiseFileCompactor().rewrite([Input(file.getvalue())] * 4, output, BulkFormat(factory))
    merged = pq.ParquetFile(output).metadata
    assert rows == merged.num_rows == 12_000
    assert [merged.row_group(place).num_rows for place in range(merged.num_row_groups)] == [6_000, 6_000]


def test_a_part_of_several_files_is_let_go_of_with_its_stream(tmp_path):
    """A long merge does not keep a file of each of its inputs open, wherever its reader has stopped."""
    store = open_store(str(tmp_path), {})
    part = []
    for name, content in ((".1", b"one"), (".2", b"two")):
        output = store.create(name, target=None)
        output.write(content)
        part.append(replace(held(name), staged=output.close(), size=len(content)))
    before = descriptors()
    stream = HeldInput(store=store, part=tuple(part)).open()
    assert stream.read(4) == b"onet"
    stream.close()
    assert descriptors() == before


def test_columns_that_no_schema_holds_are_not_taken_for_damage():
    """Damaged files become a file each; files of other columns are the user's to put right."""
    kinds = {"number": pa.array([1]), "list": pa.array([[1]])}
    inputs = []
    for name, column in kinds.items():
        file = io.BytesIO()
        pq.write_table(pa.table({"a": column}), file)
        inputs.append(Input(file.getvalue(), rows=1, signature=name))
    with pytest.raises(CompactionError) as raised:
        RecordWiseFileCompactor().rewrite(inputs, Output(), FORM)
    assert raised.value.code == "SCHEMA"
