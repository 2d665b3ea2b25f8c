"""What a task makes of its splits: records with the columns that are wanted, or an error naming a file."""

from __future__ import annotations

import gzip
import io
import os
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from filesink.errors import SchemaError, SourceError
from filesink.source.directories import root_of
from filesink.source.enumerators import RecursiveFileEnumerator, Splitting
from filesink.source.files import FileSplit, SourceFile
from filesink.source.reading.codes import code_for
from filesink.source.reading.last_line import with_last_line, with_last_line_of_stream
from filesink.source.reading.plan import BadRecords, Missing, Reading, ReadPlan, Union
from filesink.source.reading.splits import read
from filesink.source.source_plan import SourcePlan
from filesink.source.splits import FileSplitAssignerProvider, SingleSplitAssigner, SizeSplitAssigner
from formats import Encoder, ParquetWriterFactory
from formats.text.line_format import TextLineFormat

ID = pa.schema([("id", pa.int64())])
ROWS = pa.schema([("id", pa.int64()), ("name", pa.string())])


def plan_of(path: Path | str, *paths: Path | str, **chosen: Any) -> SourcePlan:
    """A plan that reads ``path``, with parts of ``Reading`` or of the plan itself."""
    reading = {name: chosen.pop(name) for name in list(chosen) if name in Reading.__dataclass_fields__}
    roots = tuple(root_of(str(one), {}) for one in (path, *paths))
    return SourcePlan(roots=roots, reading=Reading(**reading), **chosen)


def rows(plan: SourcePlan, schema: pa.Schema | None = None) -> list[dict[str, Any]]:
    """All records of a plan, as its tasks read them."""
    read_plan, tasks = plan.batch(schema or plan.schema())
    batches = [batch for splits in tasks for batch in read(read_plan, splits)]
    assert all(batch.schema.equals(read_plan.schema) for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()]


def values(plan: SourcePlan, schema: pa.Schema, column: str = "id") -> list[Any]:
    """One column of all records."""
    return [row[column] for row in rows(plan, schema)]


def write_parquet(path: Path, **columns: Sequence[Any]) -> None:
    """A file of these columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def test_formats_by_their_names(tmp_path: Path) -> None:
    """A format is known by the ending of a file, whatever codec follows."""
    (tmp_path / "a.json").write_text('{"id": 1}\n')
    (tmp_path / "b.jsonl").write_text('{"id": 2}\n')
    (tmp_path / "c.json.gz").write_bytes(gzip.compress(b'{"id": 3}\n'))
    assert sorted(values(plan_of(tmp_path), ID)) == [1, 2, 3]
    write_parquet(tmp_path / "p" / "x.snappy.parquet", id=[4])
    assert values(plan_of(tmp_path / "p"), ID) == [4]


@pytest.mark.parametrize("last", ["\n", "", "\r\n"])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize(
    ("name", "code", "text"),
    [
        ("a.csv", Encoder.csv(), "1\n2"),
        ("a.csv", Encoder.csv(header=True), "id\n1\n2"),
        ("a.json", Encoder.json_lines(), '{"id": 1}\n{"id": 2}'),
    ],
)
def test_a_last_line_may_lack_its_end(
    tmp_path: Path, name: str, code: Any, text: str, last: str, packed: Any
) -> None:
    """As files of others do: it is read like the lines before it, compressed or not."""
    data = (text + last).encode()
    path = tmp_path / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(data) if packed else data)
    assert values(plan_of(tmp_path, code=code), ID) == [1, 2]


def test_lines_of_text(tmp_path: Path) -> None:
    """However they end, and whatever is in them; a file without bytes has none."""
    (tmp_path / "a.txt").write_bytes("x\r\ny\n\nñ".encode())
    (tmp_path / "empty.txt").write_bytes(b"")
    (tmp_path / "no-ending").write_bytes(b"z\n")
    plan = plan_of(tmp_path, code=TextLineFormat())
    assert sorted(row["value"] for row in rows(plan)) == ["", "x", "y", "z", "ñ"]


def test_split_files_have_all_records_once(tmp_path: Path) -> None:
    """Cut into ranges of some bytes, a file gives the rows that it gives as a whole, in their order."""
    text = "".join(f'{number},"a\n{number}"\r\n' for number in range(200))
    (tmp_path / "a.csv").write_text(text, newline="")
    chosen = {"code": Encoder.csv(), "assigner": SingleSplitAssigner(100)}
    _, tasks = plan_of(tmp_path, **chosen).batch(ROWS)
    assert len(tasks) > 20
    assert rows(plan_of(tmp_path, **chosen), ROWS) == rows(plan_of(tmp_path, code=Encoder.csv()), ROWS)
    assert values(plan_of(tmp_path, **chosen), ROWS) == list(range(200))


@pytest.mark.parametrize("splitting", Splitting)
def test_compressed_files_are_never_split(tmp_path: Path, splitting: Splitting) -> None:
    """Nor is any file if the enumerator says so: one split, however large the file is."""
    data = b"".join(f"{random.random()}\n".encode() for _ in range(2_000))  # noqa: S311 - no secret
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(data))
    (tmp_path / "b.csv").write_bytes(data)
    plan = plan_of(
        tmp_path,
        code=Encoder.csv(),
        enumerator=RecursiveFileEnumerator(splitting=splitting),
        assigner=SingleSplitAssigner(1_000),
    )
    _, tasks = plan.batch(pa.schema([("id", pa.float64())]))
    splits = [split for task in tasks for split in task]
    assert len([split for split in splits if split.file.path.endswith(".gz")]) == 1
    assert (len(splits) == 2) is (splitting is Splitting.NEVER)


def test_columns_of_directories(tmp_path: Path) -> None:
    """Values of ``k=v`` are columns, of the type that is wanted, escaped ones and nulls as well."""
    write_parquet(tmp_path / "day=2026-01-02" / "n=7" / "k=a%2Fb" / "x.parquet", id=[1])
    write_parquet(tmp_path / "day=2026-01-03" / "n=8" / "k=__HIVE_DEFAULT_PARTITION__" / "x.parquet", id=[2])
    plan = plan_of(tmp_path)
    assert plan.schema().names == ["id", "day", "n", "k"]
    wanted = pa.schema([("k", pa.string()), ("id", pa.int64()), ("n", pa.int16()), ("day", pa.date32())])
    found = sorted(rows(plan, wanted), key=lambda row: row["id"])
    assert [(row["k"], row["n"], str(row["day"])) for row in found] == [
        ("a/b", 7, "2026-01-02"),
        (None, 8, "2026-01-03"),
    ]


def test_a_directory_with_a_value_of_another_type(tmp_path: Path) -> None:
    """It is named, with the column and what to do."""
    write_parquet(tmp_path / "n=x" / "a.parquet", id=[1])
    with pytest.raises(SchemaError, match=r"column 'n' is int64.*read it as a string") as error:
        rows(plan_of(tmp_path), pa.schema([("id", pa.int64()), ("n", pa.int64())]))
    assert error.value.code == "FILE_SCHEMA"


def test_where_records_come_from(tmp_path: Path) -> None:
    """``_file`` is the path, ``_bucket`` the directory, and ``_version`` null for files that were listed."""
    write_parquet(tmp_path / "b" / "a.parquet", id=[1])
    plan = plan_of(tmp_path, metadata=("_file", "_bucket", "_version"))
    expected = {"id": 1, "_file": f"{tmp_path}/b/a.parquet", "_bucket": "b", "_version": None}
    assert rows(plan) == [expected]


def test_a_column_that_has_the_name_of_one_of_ours(tmp_path: Path) -> None:
    """It is not hidden by ours: whoever asks for both is told."""
    write_parquet(tmp_path / "a.parquet", id=[1], _file=["x"])
    assert rows(plan_of(tmp_path), pa.schema([("id", pa.int64())])) == [{"id": 1}]
    with pytest.raises(SchemaError) as error:
        plan_of(tmp_path, metadata=("_file",)).schema()
    assert error.value.code == "SCHEMA_CONFLICT"


# --- schemas


def test_the_schema_is_that_of_the_newest_file(tmp_path: Path) -> None:
    """Files that lack a column have nulls in it."""
    write_parquet(tmp_path / "1.parquet", id=[1])
    write_parquet(tmp_path / "2.parquet", id=[2], name=["x"])
    old = (tmp_path / "1.parquet").stat().st_mtime - 100
    os.utime(tmp_path / "1.parquet", (old, old))
    found = sorted(rows(plan_of(tmp_path)), key=lambda row: row["id"])
    assert found == [{"id": 1, "name": None}, {"id": 2, "name": "x"}]


def test_a_union_has_the_columns_of_all(tmp_path: Path) -> None:
    """By name, and each with the wider of two types; types that nothing holds together are told."""
    write_parquet(tmp_path / "1.parquet", id=pa.array([1], pa.int32()))
    write_parquet(tmp_path / "2.parquet", id=pa.array([2], pa.int64()), name=["x"])
    plan = plan_of(tmp_path, union=Union.ALL)
    assert plan.schema().equals(pa.schema([("id", pa.int64()), ("name", pa.string())]))
    assert sorted(values(plan, plan.schema())) == [1, 2]
    write_parquet(tmp_path / "3.parquet", id=["three"])
    with pytest.raises(SchemaError, match="column 'id'") as error:
        plan.schema()
    assert error.value.code == "SCHEMA_CONFLICT"


def test_a_file_that_does_not_fit_the_schema(tmp_path: Path) -> None:
    """It is named."""
    write_parquet(tmp_path / "odd.parquet", id=["text"])
    with pytest.raises(SchemaError, match=r"odd\.parquet.*'id'") as error:
        rows(plan_of(tmp_path), ID)
    assert error.value.code == "FILE_SCHEMA"


@pytest.mark.parametrize("name", ["a.csv", "a.json"])
def test_files_that_do_not_say_their_columns(tmp_path: Path, name: str) -> None:
    """Whoever gives no schema is told to."""
    (tmp_path / name).write_text("1\n")
    with pytest.raises(SchemaError, match=r"give a schema") as error:
        plan_of(tmp_path).schema()
    assert error.value.code == "SCHEMA_REQUIRED"


# --- bad input


@pytest.mark.parametrize(
    ("files", "code", "named"),
    [
        ([], "NO_FILES", "nothing to read at"),
        (["_hidden.csv"], "NO_FILES", "hidden"),
        (["a.docx"], "NO_READER", r"a\.docx"),
        (["no-ending"], "NO_READER", "no-ending"),
        (["a.csv.zip"], "NO_READER", "zip"),
        (["a.csv", "b.parquet"], "MIXED_FORMATS", "csv"),
        (["a.csv", "b.xlsx"], "NO_READER", "xlsx"),
    ],
)
def test_bad_directories(tmp_path: Path, files: list[str], code: str, named: str) -> None:
    """What is wrong with them is said before anything is read."""
    for name in files:
        (tmp_path / name).write_bytes(b"x")
    with pytest.raises(SourceError, match=named) as error:
        plan_of(tmp_path).batch(ID)
    assert error.value.code == code


def test_a_missing_path_is_named(tmp_path: Path) -> None:
    """With all others that were given."""
    with pytest.raises(SourceError, match=f"{tmp_path}/a, {tmp_path}/b"):
        plan_of(tmp_path / "a", tmp_path / "b").batch(ID)


def test_a_file_that_vanished(tmp_path: Path) -> None:
    """It is named, or passed over by those who want that, with the rows of all others."""
    for name in "ab":
        write_parquet(tmp_path / f"{name}.parquet", id=[1])
    plan, tasks = plan_of(tmp_path).batch(ID)
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(SourceError, match=r"a\.parquet' was there") as error:
        list(read(plan, tasks[0]))
    assert error.value.code == "FILE_GONE"
    tolerant = replace(plan, reading=Reading(missing=Missing.IGNORE))
    assert sum(batch.num_rows for batch in read(tolerant, tasks[0])) == 1


@pytest.mark.parametrize("text", ["1\n2\n", ""])
def test_a_file_that_changed_since_it_was_found(tmp_path: Path, text: str) -> None:
    """One that grows, or is cut, gives other rows each time it is read: it is told, not read."""
    (tmp_path / "a.csv").write_text("1\n")
    plan, tasks = plan_of(tmp_path, code=Encoder.csv()).batch(ID)
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(SourceError, match="others still write it") as error:
        list(read(plan, tasks[0]))
    assert error.value.code == "FILE_CHANGED"


@pytest.mark.parametrize("name", ["a.parquet", "a.orc", "a.avro", "a.arrow"])
def test_a_damaged_file_is_named(tmp_path: Path, name: str) -> None:
    """Whatever its format."""
    (tmp_path / name).write_bytes(b"Obj\x01 no such file")
    with pytest.raises(SourceError, match=name) as error:
        rows(plan_of(tmp_path), ID)
    assert error.value.code == "DAMAGED"


# --- records that cannot be read


CSV = Encoder.csv()
JSON = Encoder.json_lines()


@pytest.mark.parametrize(
    ("name", "code", "text", "bad"),
    [
        ("a.csv", CSV, '1,a\nx,b\n3,"c\nd"\n4,"e"f\n5,g\n', ["x,b"]),
        ("a.csv", Encoder.csv(header=True), "id,name\n1,a\nx,b\n3,c\n", ["x,b"]),
        ("a.json", JSON, '{"id": 1}\n{"id": \n{"id": "x"}\n{"id": 4}', ['{"id": ', '{"id": "x"}']),
        ("a.json", JSON, "no\n" * 3, ["no"] * 3),
        ("a.csv", CSV, "1,a\n2\n3,c\n4,d,e\n", ["2", "4,d,e"]),
    ],
)
@pytest.mark.parametrize("size", ["1MiB", 7], ids=["whole", "split"])
def test_bad_records_are_told_apart(
    tmp_path: Path, name: str, code: Any, text: str, bad: list[str], size: Any
) -> None:
    """All three ways: the read fails and names the file, or goes on without them, or with their text."""
    (tmp_path / name).write_text(text)
    chosen = {"code": code, "assigner": SingleSplitAssigner(size)}
    with pytest.raises(SourceError, match=name) as error:
        rows(plan_of(tmp_path, **chosen), ROWS)
    assert error.value.code == "DAMAGED"
    dropped = rows(plan_of(tmp_path, bad_records=BadRecords.DROPMALFORMED, **chosen), ROWS)
    kept = pa.schema([*ROWS, ("_rescued", pa.string())])
    permissive = rows(plan_of(tmp_path, bad_records=BadRecords.PERMISSIVE, **chosen), kept)
    assert [row["_rescued"] for row in permissive if row["_rescued"] is not None] == bad
    good = [row for row in permissive if row["_rescued"] is None]
    assert [{"id": row["id"], "name": row["name"]} for row in good] == dropped
    assert all(row["id"] is None for row in permissive if row["_rescued"] is not None)


def test_one_bad_record_among_many(tmp_path: Path) -> None:
    """It is found over the size of a piece, and costs none of its neighbours."""
    lines = [f'{{"id": {number}, "name": "{"x" * 50}"}}' for number in range(60_000)]
    lines[31_415] = "oops"
    (tmp_path / "a.json").write_text("\n".join(lines))
    plan = plan_of(tmp_path, code=JSON, bad_records=BadRecords.PERMISSIVE)
    found = rows(plan, pa.schema([("id", pa.int64()), ("_rescued", pa.string())]))
    assert [row["id"] for row in found] == [None if n == 31_415 else n for n in range(60_000)]
    assert found[31_415]["_rescued"] == "oops"


def test_text_that_is_none_of_its_charset(tmp_path: Path) -> None:
    """A line of other bytes is rescued with what can be shown of it."""
    (tmp_path / "a.txt").write_bytes(b"good\nb\xffd\nfine\n")
    plan = plan_of(tmp_path, code=TextLineFormat(), bad_records=BadRecords.PERMISSIVE)
    found = rows(plan, pa.schema([("value", pa.string()), ("_rescued", pa.string())]))
    assert [(row["value"], row["_rescued"]) for row in found] == [
        ("good", None),
        (None, "b\ufffdd"),
        ("fine", None),
    ]


def test_a_damaged_file_of_another_format_is_given_up_from_there(tmp_path: Path) -> None:
    """Files beside it are read; a row says that there was more."""
    write_parquet(tmp_path / "a.parquet", id=[1])
    (tmp_path / "b.parquet").write_bytes(b"no such file")
    plan = plan_of(tmp_path, bad_records=BadRecords.PERMISSIVE)
    found = rows(plan, pa.schema([("id", pa.int64()), ("_rescued", pa.string())]))
    assert sorted(row["id"] or 0 for row in found) == [0, 1]
    assert [row["_rescued"][:30] for row in found if row["id"] is None] == ["the rest of the file cannot be"]
    assert len(rows(plan_of(tmp_path, bad_records=BadRecords.DROPMALFORMED), ID)) == 1


# --- tasks


def splits_of(*sizes: int) -> list[FileSplit]:
    """Splits of files of these sizes."""
    return [FileSplit(SourceFile(f"/f{number}", size, 0)) for number, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "tasks"),
    [
        ([], []),
        ([100], [1]),
        ([100, 100], [1, 1]),
        ([40, 40, 40], [2, 1]),
        ([1] * 30, [10, 10, 10]),
        ([500, 1, 1], [1, 2]),
    ],
)
def test_tasks_of_about_equal_size(sizes: list[int], tasks: list[int]) -> None:
    """In their order, small files together, each counted with what it costs to open."""
    found = SizeSplitAssigner(task_size=100, file_cost=9).assign(splits_of(*sizes))
    assert [len(task) for task in found] == tasks
    assert [split for task in found for split in task] == splits_of(*sizes)


def test_the_assigners_of_pyflink() -> None:
    """Both are there; the simple one makes a task of each split."""
    simple = FileSplitAssignerProvider.simple_split_assigner()
    assert len(simple.assign(splits_of(1, 1, 1))) == 3
    assert len(FileSplitAssignerProvider.locality_aware_split_assigner().assign(splits_of(1, 1, 1))) == 1


@pytest.mark.parametrize("data", [b"", b"a", b"a\n", b"a\nb"])
@pytest.mark.parametrize("size", [1, 2, 100, -1])
def test_a_line_feed_is_added_once(data: bytes, size: int) -> None:
    """Whoever reads in pieces, at once, or from the middle finds what ends with a line feed."""
    expected = data if not data or data.endswith(b"\n") else data + b"\n"
    for file in (with_last_line(io.BytesIO(data), JSON), with_last_line_of_stream(io.BytesIO(data), JSON)):
        for _ in range(2):
            file.seek(0)
            pieces = []
            while piece := file.read(size):
                pieces.append(piece)
            assert b"".join(pieces) == expected
    file = with_last_line(io.BytesIO(data), JSON)
    assert file.seek(0, io.SEEK_END) == len(expected)
    for place in range(len(expected)):
        file.seek(place)
        assert file.read() == expected[place:]


def test_formats_are_those_of_the_package() -> None:
    """The format of a name is the one that writes such names."""
    assert isinstance(code_for(["a.parquet"]), ParquetWriterFactory)
    assert isinstance(ReadPlan, type)
