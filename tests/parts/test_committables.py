"""What names files between processes and in the ledger: round trips, old bytes, hostile bytes."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filesink.errors import FilesinkError, InternalError, SecurityError, StateCorruptError
from filesink.framing import to_json
from filesink.parts.committables import (
    LONGEST_GRACE_MS,
    CommittableCodec,
    DiscardFile,
    HeldFile,
    HeldFileCodec,
    PendingFile,
    ReplacedFile,
    SupersededFile,
    Watermark,
)
from filesink.storage.staged import HiddenFile, HiddenObject, PendingUpload, UploadedPart

GOLDEN = Path(__file__).parents[1] / "golden"

letters = st.characters(exclude_categories=["Cs"])
names = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1, max_size=8
).filter(lambda name: name not in {".", ".."})
paths = st.lists(names, min_size=1, max_size=3).map("/".join)
numbers = st.integers(0, 2**63 - 1)
hidden_files = st.builds(HiddenFile, path=paths, size=numbers, inode=numbers, mtime_ns=numbers)
objects = st.builds(HiddenObject, path=paths, size=numbers, token=st.text(letters, max_size=5))
uploaded = st.lists(
    st.builds(UploadedPart, number=numbers, etag=st.text(letters, max_size=5), size=st.integers(0, 2**40)),
    min_size=1,
)  # the sizes of all parts together are a number of ours, too
uploads = uploaded.map(
    lambda parts: PendingUpload(
        target="a/x",
        upload_id="i/d",
        parts=tuple(sorted({part.number: part for part in parts}.values(), key=lambda part: part.number)),
        size=sum({part.number: part.size for part in parts}.values()),
        token="t",
    )
)
staged = hidden_files | objects | uploads
pending_files = st.builds(
    PendingFile, bucket=st.just("") | paths, target=paths, staged=staged, rows=numbers, size=numbers
)
held_files = st.builds(
    HeldFile,
    bucket=st.just("") | paths,
    group=st.text(letters, max_size=5),
    staged=staged,
    rows=numbers,
    size=numbers,
    created_ms=numbers,
    updated_ms=numbers,
    signature=st.text(letters, max_size=5),
    suffix=st.text(letters, max_size=5),
    carry_over=st.binary(max_size=9),
    header_size=numbers,
)
discards = st.builds(DiscardFile, path=paths)
graces = st.integers(0, LONGEST_GRACE_MS)
replaced_files = st.builds(
    ReplacedFile,
    path=paths,
    size=numbers,
    version=st.text(letters, max_size=5),
    grace_ms=st.just(0) | graces,
    since_ms=st.just(0) | graces,
) | st.builds(
    SupersededFile, path=paths, size=numbers, version=st.text(letters, max_size=5), by=paths, until_ms=numbers
)

EXAMPLES = [
    PendingFile(
        bucket="dt=2024-01-01",
        target="dt=2024-01-01/part-0123abcd-0000-4000-8000-000000000001-0.parquet",
        staged=HiddenFile(
            path="dt=2024-01-01/.part-0.inprogress.0123abcd.7.00000000-0000-4000-8000-000000000002",
            size=1234,
            inode=42,
            mtime_ns=1_700_000_000_000_000_001,
        ),
        rows=10,
        size=1234,
    ),
    HeldFile(
        bucket="",
        group="0123abcd-0000-4000-8000-000000000003",
        staged=HiddenFile(
            path=".part-1.inprogress.0123abcd.7.00000000-0000-4000-8000-000000000002",
            size=6,
            inode=43,
            mtime_ns=1_700_000_000_000_000_002,
        ),
        rows=1,
        size=6,
        created_ms=1_700_000_000_000,
        updated_ms=1_700_000_000_500,
        signature="text charset=utf-8#0011223344556677",
        suffix=".txt",
        carry_over=b"\x00\xff",
    ),
    DiscardFile(path="é/.part-2.inprogress.0123abcd.6.00000000-0000-4000-8000-000000000004"),
    PendingFile(
        bucket="",
        target="part-0123abcd-0000-8007-8000-000000000005-0.parquet",
        staged=PendingUpload(
            target="part-0123abcd-0000-8007-8000-000000000005-0.parquet",
            upload_id="VXBsb2FkIElE.~_-",
            parts=(
                UploadedPart(number=1, etag='"b54357faf0632cce46e942fa68356b38"', size=5 << 20),
                UploadedPart(number=3, etag='"0c78aef83f66abc1fa1e8477f296d394"', size=17),
            ),
            size=(5 << 20) + 17,
            token="00000000-0000-4000-8000-000000000006",
        ),
        rows=10,
        size=(5 << 20) + 17,
    ),
    HeldFile(
        bucket="b",
        group="",
        staged=HiddenObject(
            path="b/.part-0.inprogress.0123abcd.7.00000000-0000-4000-8000-000000000007",
            size=6,
            token="00000000-0000-4000-8000-000000000008",
        ),
        rows=1,
        size=6,
        created_ms=1,
        updated_ms=2,
        signature="s",
    ),
]


@given(st.lists(pending_files | held_files | discards | replaced_files, max_size=4))
def test_committables_come_back(values):
    """Whatever the names and numbers, decoding gives what was encoded."""
    codec = CommittableCodec()
    assert codec.decode(codec.version, codec.encode(values)) == values


@given(st.lists(held_files, max_size=4))
def test_states_come_back(values):
    """A writer's state survives as it was."""
    codec = HeldFileCodec()
    assert codec.decode(codec.version, codec.encode(values)) == values


def test_bytes_of_version_1_are_read():
    """The checked-in bytes of the first release give the same values for ever."""
    assert CommittableCodec().decode(1, (GOLDEN / "committables-1.json").read_bytes()) == EXAMPLES


def test_bytes_of_version_1_are_written():
    """Writing the same values gives the same bytes; else the version has to go up."""
    assert CommittableCodec().encode(EXAMPLES) == (GOLDEN / "committables-1.json").read_bytes()


def test_other_kinds_are_written_as_by_every_release():
    """A record of an earlier one may still be to be carried through; else the version has to go up."""
    values = [
        ReplacedFile(path="a/x", size=1, version="v"),
        SupersededFile(path="a/y", size=2, version="w", by="a/z", until_ms=3),
        Watermark(latest_ms=4, time_zone="UTC"),
    ]
    plain = [
        {"kind": "replaced", "path": "a/x", "size": 1, "version": "v"},
        {"kind": "superseded", "path": "a/y", "size": 2, "version": "w", "by": "a/z", "until_ms": 3},
        {"kind": "watermark", "latest_ms": 4, "time_zone": "UTC"},
    ]
    assert json.loads(CommittableCodec().encode(values)) == plain
    assert CommittableCodec().decode(1, to_json(plain)) == values


def test_what_is_kept_is_written_as_by_the_release_that_began_it():
    """The grace in the record that replaces a file, and since when in those after it."""
    values = [
        ReplacedFile(path="a/x", size=1, version="v", grace_ms=3_600_000),
        ReplacedFile(path="a/x", size=1, version="v", grace_ms=3_600_000, since_ms=1_700_000_000_000),
    ]
    data = (GOLDEN / "committables-1-kept.json").read_bytes()
    assert CommittableCodec().encode(values) == data
    assert CommittableCodec().decode(1, data) == values
    assert [value.until_ms for value in values] == [0, 1_700_003_600_000]


@pytest.mark.parametrize(
    "wrong",
    [
        {"grace_ms": -1}, {"grace_ms": LONGEST_GRACE_MS + 1}, {"grace_ms": "1"}, {"grace_ms": True},
        {"since_ms": -1}, {"since_ms": 10**30}, {"since_ms": None}, {"until_ms": 1},
    ],
)  # fmt: skip
def test_times_that_nobody_can_have_written_are_refused(wrong):
    """Else a status could not be shown, or a file would stay for ever."""
    entry = {"kind": "replaced", "path": "a/x", "size": 1, "version": "v", **wrong}
    with pytest.raises(StateCorruptError, match="for 'a/x'"):
        CommittableCodec().decode(1, to_json([entry]))


def test_states_hold_held_files_only():
    """A pending file in a writer's state is damage: it would never be published."""
    with pytest.raises(StateCorruptError, match="expected a held file"):
        HeldFileCodec().decode(1, CommittableCodec().encode(EXAMPLES[:1]))


def test_only_known_versions_are_decoded():
    """The frame checks versions; what comes through with another is a bug."""
    with pytest.raises(InternalError):
        CommittableCodec().decode(2, b"[]")


@pytest.mark.parametrize(
    "path", ["../x", "a/../../x", "/etc/passwd", "", "a//b", "a/./b", "a\0b", "a/", ".."]
)
@pytest.mark.parametrize("place", ["path", "target", "bucket", "discard"])
def test_paths_outside_the_base_are_refused(path, place):
    """No stored path can name anything but a file below the base."""
    entry = json.loads(CommittableCodec().encode(EXAMPLES))[2 if place == "discard" else 0]
    if place == "path":
        entry["staged"]["path"] = path
    else:
        entry["path" if place == "discard" else place] = path
    if place == "bucket" and not path:
        return  # the base itself is a bucket
    with pytest.raises(SecurityError) as raised:
        CommittableCodec().decode(1, to_json([entry]))
    assert raised.value.code == "ESCAPE"


def test_a_file_is_superseded_only_by_one_below_the_base():
    """What stands for it is looked for, so its path is checked as any other."""
    file = SupersededFile(path="a/x", size=1, version="1", by="../x", until_ms=0)
    with pytest.raises(SecurityError) as raised:
        CommittableCodec().decode(1, CommittableCodec().encode([file]))
    assert raised.value.code == "ESCAPE"


def mutations():
    """Every single field of every kind, missing, of another type, or negative; and one too many."""
    for index, entry in enumerate(json.loads(CommittableCodec().encode(EXAMPLES))):
        for name in entry:
            for wrong in (None, 1.5, True, [], {}, -1, "zz" if not isinstance(entry[name], str) else 7):
                yield pytest.param({**entry, name: wrong}, id=f"{index}-{name}-{wrong!r}")
            yield pytest.param({key: entry[key] for key in entry if key != name}, id=f"{index}-no-{name}")
        yield pytest.param({**entry, "more": 1}, id=f"{index}-more")
        if "staged" in entry:
            yield pytest.param({**entry, "staged": {**entry["staged"], "more": 1}}, id=f"{index}-staged-more")
        if parts := entry.get("staged", {}).get("parts"):
            for name, wrong in (("parts", parts[::-1]), ("parts", parts[:1]), ("size", 1)):
                yield pytest.param(
                    {**entry, "staged": {**entry["staged"], name: wrong}}, id=f"{index}-{name}-{wrong!r}"
                )
            for name in entry["staged"]:
                for wrong in (
                    None,
                    1.5,
                    [],
                    [{}],
                    {},
                    -1,
                    7 if isinstance(entry["staged"][name], str) else "zz",
                ):
                    staged_entry = {**entry["staged"], name: wrong}
                    yield pytest.param(
                        {**entry, "staged": staged_entry}, id=f"{index}-staged-{name}-{wrong!r}"
                    )


@pytest.mark.parametrize("entry", list(mutations()))
def test_wrong_entries_are_damage(entry):
    """A field that is missing, unknown or of another type is damage, never a crash or a guess."""
    with pytest.raises(StateCorruptError, match="malformed"):
        CommittableCodec().decode(1, to_json([entry]))


@pytest.mark.parametrize("value", [None, {}, 1, "x", [1], [None], [[]], ["pending"], [{"kind": []}]])
def test_other_shapes_are_damage(value):
    """Anything but a list of entries is damage."""
    with pytest.raises(StateCorruptError):
        CommittableCodec().decode(1, to_json(value))


@given(st.binary(max_size=40))
def test_any_bytes_give_values_or_our_error(data):
    """No bytes at all can raise anything but an error of ours."""
    with contextlib.suppress(FilesinkError):
        CommittableCodec().decode(1, data)
