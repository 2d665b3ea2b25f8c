"""What every format that reads promises of splits: each record in one of them, wherever the file is cut."""

from __future__ import annotations

import io
import pickle
from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import BulkWriterFactory, FormatError, OrcBulkWriterFactory, ReadLimits, bounded, reading
from formats.api import Split
from formats.per_row import PerRowEncoder
from formats.splitting import Units, between
from tests.formats.conftest import PLAIN_FORMS, ROW_FORMATS, Repr
from tests.formats.forms import TEXTS

UNREAD = [case.encoder for name, case in ROW_FORMATS.items() if name not in PLAIN_FORMS]


#: A change tries some targets and places of a file, a night every one.
TRIED = pytest.mark.parametrize("tried", [25, pytest.param(1_000, marks=pytest.mark.nightly)])


def some(places, tried):
    """So many of them, the first two and the last two among them."""
    return (
        places
        if len(places) <= tried
        else [*places[:2], *places[2 : -2 : len(places) // tried], *places[-2:]]
    )


def targets(size, tried):
    """Those of a small file; of a larger one small ones, and some others."""
    return some([*range(1, min(size, 1000) + 2), *range(1000, size + 2, 97)], tried)


def memory(form):
    """Reads splits of a file, each of them once."""
    known = {}

    def read(splits):
        for split in splits:
            if split not in known:
                known[split] = form.read([split])
        return [record for split in splits for record in known[split]]

    return read


@TRIED
def test_splits_are_the_file(plain_form, tried):
    """For every target: next to one another, from the first byte to the last."""
    size = len(plain_form.data)
    for target in targets(size, tried):
        splits = plain_form.splits(target)
        assert [split.start for split in splits] == [0, *(split.end for split in splits[:-1])]
        assert splits[-1].end == size
        assert len(splits) <= -(-size // target)


@TRIED
def test_every_record_is_in_one_split_for_every_target(plain_form, tried):
    """What was written is read, in its order, from one byte a split to all of the file in one."""
    read = memory(plain_form)
    for target in targets(len(plain_form.data), tried):
        assert read(plain_form.splits(target)) == plain_form.written


@TRIED
def test_every_record_is_in_one_split_wherever_the_file_is_cut(plain_form, tried):
    """At every byte, whoever has cut it, where the format allows that."""
    if not plain_form.is_cut_anywhere:
        pytest.skip("what is in quotes is known from the beginning of the file only")
    size = len(plain_form.data)
    for place in some(range(1, size, 1 + size // 700), tried):
        assert plain_form.read(between([place], size)) == plain_form.written


@pytest.mark.parametrize("form", PLAIN_FORMS.values(), ids=PLAIN_FORMS.keys())
@given(data=st.data())
def test_any_cuts_will_do(form, data):
    """Any number of them: of all places, or of those where the format itself would cut."""
    size = len(form.data)
    finest = [split.end for split in form.splits(1)]
    allowed = st.integers(1, size) if form.is_cut_anywhere else st.sampled_from(finest)
    assert form.read(between(data.draw(st.sets(allowed, max_size=8)), size)) == form.written


def test_every_type_is_read_from_splits(wide_form):
    """The same values as from the file, with line breaks, quotes and nested ones among them."""
    read = memory(wide_form)
    size = len(wide_form.data)
    for target in {size // 50, size // 9, size // 4, size // 3, size // 2, size - 1, size}:
        assert read(wide_form.splits(target)) == wide_form.whole


def test_splits_have_the_schema_of_the_file(plain_form):
    """Those without records, too; and a schema that is asked for."""
    file = io.BytesIO(plain_form.data)
    splits = plain_form.format.splits(file, target=1)
    whole = plain_form.format.open_reader(file, schema=plain_form.schema).schema
    name = plain_form.rows.schema.names[-1] if plain_form.rows.num_columns > 1 else None
    for split in (splits[0], splits[len(splits) // 2], splits[-1]):
        assert plain_form.format.open_split(file, split, schema=plain_form.schema).schema == whole
        if name:
            wanted = pa.schema([plain_form.rows.schema.field(name)])
            assert plain_form.format.open_split(file, split, schema=wanted).schema == wanted


@TRIED
def test_a_file_of_no_records_has_splits_of_none(plain_form, tried):
    """A header and a footer, or not a byte."""
    empty = plain_form.of(plain_form.rows.slice(0, 0))
    for target in targets(len(empty.data), tried):
        splits = empty.splits(target)
        assert len(splits) >= 1
        assert target > 1 or empty.read(splits) == []
    assert empty.read([splits[0]]) == []


def test_a_record_may_be_longer_than_many_splits(plain_form):
    """It is in the one in which it begins, and the others have none."""
    if "text" not in plain_form.rows.schema.names:
        pytest.skip("no column of text")
    place = plain_form.rows.schema.names.index("text")
    texts = pa.array(["short", "x" * 3_000, "é" * 2_000, *TEXTS[:5]])
    long = plain_form.of(plain_form.rows.set_column(place, "text", texts))
    for target in (1_000, 333, 50):
        assert long.read(long.splits(target)) == long.written


def read_apart(form, data, target):
    """What is found in other bytes, or what our error says: no other comes out."""
    file = bounded(io.BytesIO(data), limits=ReadLimits(), name="their.file")
    try:
        return form.read(form.format.splits(file, target=target), file)
    except FormatError as error:
        # A header that names another codec or type is a file that we do not read, and no damage.
        return error.message if error.kind == "value" else "'their.file' is another one"


def read_whole(form, data):
    """The same by the reader of the file."""
    try:
        return form.of_bytes(data)
    except FormatError as error:
        return error.kind


def test_what_is_cut_off_is_an_error_of_a_split(plain_form):
    """Never fewer records than there were, silently; and the file is named."""
    shorter = [plain_form.data[:-1], plain_form.data[:-2]]
    cut = next((data for data in shorter if read_whole(plain_form, data) == "value"), None)
    if cut is None:
        pytest.skip("a file may end anywhere")
    for target in (1, 50, len(cut)):
        assert "'their.file'" in read_apart(plain_form, cut, target)


def test_what_was_cut_off_after_planning_is_an_error_of_the_last_split(plain_form):
    """A split is read of the bytes that it was planned for, or not at all."""
    *_, last = plain_form.splits(20)
    with pytest.raises(FormatError, match="it was changed") as error:
        plain_form.read([last], io.BytesIO(plain_form.data[:-1]))
    assert error.value.kind == "value"


@pytest.mark.filterwarnings("ignore::UserWarning")  # openpyxl's, of what is not there
@TRIED
def test_what_is_damaged_for_the_reader_of_the_file_is_for_one_of_a_split(plain_form, tried):
    """With one bit of another value; and what the whole has, splits have, or an error."""
    if isinstance(plain_form.format, OrcBulkWriterFactory):
        pytest.skip("liborc may end the process")
    data = plain_form.data
    for place in some(range(0, len(data), 1 + len(data) // 60), tried):
        damaged = data[:place] + bytes([data[place] ^ (1 << place % 8)]) + data[place + 1 :]
        whole = read_whole(plain_form, damaged)
        for target in (20, len(data) // 3):
            found = read_apart(plain_form, damaged, target)
            if isinstance(found, str):
                assert "'their.file'" in found
            else:
                assert found == whole or not plain_form.is_cut_anywhere


class Lost(io.BytesIO):
    """A file of a store that fails when it has been asked often enough."""

    def __init__(self, data, error, answers):
        super().__init__(data)
        self.error = error
        self.answers = answers

    def read(self, size=-1):
        self.answers -= 1
        if self.answers < 0:
            raise self.error
        return super().read(size)


@pytest.mark.parametrize("error", [TimeoutError(), OSError("as pyarrow has them")], ids=["timeout", "plain"])
def test_an_error_of_the_store_is_no_damage(plain_form, error):
    """Not while planning, and not while reading: it comes out as it was."""
    for answers in range(4):
        file = Lost(plain_form.data, error, answers)
        try:
            found = plain_form.read(plain_form.format.splits(file, target=len(plain_form.data) // 2), file)
        except OSError as raised:
            assert raised is error  # noqa: PT017 - a format may have had all it needs
        else:
            assert found == plain_form.written


def limited(form):
    """The file with a limit that its records exceed."""
    return bounded(io.BytesIO(form.data), limits=ReadLimits(record=8), name="their.file")


def test_limits_hold_for_splits(plain_form):
    """Where the reader of the file refuses a record, so does that of a split, and names the file."""
    with suppress(FormatError):
        plain_form.format.open_reader(limited(plain_form), schema=plain_form.schema).read_all()
        return
    with pytest.raises(FormatError, match="their") as error:
        plain_form.read(plain_form.splits(30), limited(plain_form))
    assert error.value.kind == "value"


def test_batches_of_a_split_are_small(plain_form, monkeypatch):
    """As those of a file."""
    rows = pa.concat_batches([plain_form.rows] * 40)
    large = plain_form.of(rows)
    monkeypatch.setattr(reading, "BATCH_ROWS", 100)
    file = io.BytesIO(large.data)
    splits = large.format.splits(file, target=len(large.data) // 2)
    sizes = [
        batch.num_rows
        for split in splits
        for batch in large.format.open_split(file, split, schema=large.schema)
    ]
    assert max(sizes) <= 100
    assert sum(sizes) == rows.num_rows


def test_the_file_stays_with_its_owner(plain_form):
    """Who plans, and who drops a reader half-way, closes nothing and may go on with the same file."""
    file = io.BytesIO(plain_form.data)
    splits = plain_form.format.splits(file, target=len(plain_form.data) // 3)
    reader = plain_form.format.open_split(file, splits[0], schema=plain_form.schema)
    next(iter(reader), None)
    del reader
    assert not file.closed
    assert plain_form.read(splits, file) == plain_form.written


@pytest.mark.parametrize("encoder", UNREAD, ids=lambda encoder: type(encoder).__name__)
def test_a_format_that_is_not_read_has_no_readable_split(encoder):
    """And says so as its reader does."""
    with pytest.raises(FormatError) as error:
        encoder.open_split(io.BytesIO(b"x\n"), Split(0, 2), schema=pa.schema([("int", pa.binary())]))
    assert error.value.kind == "option"


class Own(BulkWriterFactory):
    """A user's format that knows nothing of splits, and expects a file at its beginning."""

    def create(self, output, schema):
        raise NotImplementedError

    def open_reader(self, file, *, schema=None):
        del schema
        batch = pa.record_batch({"line": file.read().decode().splitlines()})
        return pa.RecordBatchReader.from_batches(batch.schema, [batch])


def test_a_format_of_a_user_is_one_split():
    """Its reader is called for it, and ranges of somebody else's have all records in the first one."""
    file = io.BytesIO(b"a\nb\nc\n")
    assert Own().splits(file, target=1) == [Split(0, 6)]
    assert Own().open_split(file, Split(0, 6)).read_all()["line"].to_pylist() == ["a", "b", "c"]
    found = [Own().open_split(file, split).read_all().num_rows for split in between([1, 4], 6)]
    assert found == [3, 0, 0]
    assert PerRowEncoder(Repr()).splits(file, target=2) == [Split(0, 6)]


@pytest.mark.parametrize("target", [0, -1, 1.5, "", None, True])
def test_a_target_is_a_size(plain_form, target):
    """Of one byte or more."""
    with pytest.raises(FormatError, match="target") as error:
        plain_form.splits(target)
    assert error.value.kind == "option"


@pytest.mark.parametrize("given", [(-1, 2), (2, 2), (3, 2), (0.5, 2), (0, "2"), (False, 2), (None, 2)])
def test_a_split_is_a_range(given):
    """Of one byte or more, but for the split of an empty file."""
    with pytest.raises(FormatError, match="range") as error:
        Split(*given)
    assert error.value.kind == "option"


def test_a_split_crosses_processes():
    """As what it is."""
    assert pickle.loads(pickle.dumps(Split(0, 7))) == Split(0, 7)  # noqa: S301 - our own
    assert len({Split(0, 0), Split(0, 0)}) == 1


@pytest.mark.parametrize(
    "offsets", [[], [4], [4, 50, 60], [60, 50, 4], [4, -1, 10**18], [0, 0, 0], [10**18, 5]], ids=str
)
@given(cuts=st.sets(st.integers(1, 99), max_size=5))
def test_units_are_in_one_split_whatever_a_footer_says(offsets, cuts):
    """In their order, even where it says that they begin behind the file, or one before the other."""
    units = Units.at(offsets, size=100)
    everywhere = [[split.start, split.end] for split in between(cuts, 100)]
    assert [number for start, end in everywhere for number in units.of(Split(start, end))] == list(
        range(len(offsets))
    )
    assert all(len(units.of(split)) for split in units.splits(1)) or not offsets
