"""Erasure of rows from a path: beside writers, killed, and what has to be clean before it is certified."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import compaction
import filesink
from filesink.errors import ConcurrentDriverError, ConfigError, StateError, StorageError
from filesink.naming import upload_path
from filesink.operations.erasing.condition import parse
from filesink.operations.erasing.erase import Erase, Erasure
from filesink.operations.erasing.parquet_files import ParquetFiles
from filesink.operations.maintenance import Lost
from filesink.operations.replacing.retention import Retention
from filesink.parts.file_format import BulkFormat
from filesink.parts.stages.closed_parts import Compaction
from filesink.storage.api import Entry, Kind
from filesink.storage.faulty import Fault, Moment
from filesink.storage.open import open_store
from filesink.storage.wrapped import WrappedStore
from formats import Encoder, ParquetEncryption, ParquetWriterFactory
from tests.fakes import plan_of
from tests.fakes import records as lines
from tests.formats.bulk.test_parquet import Kms
from tests.operations.broken_paths import Killed
from tests.sink_directory.written import Written, records

pytestmark = pytest.mark.slow


def written(base: Path) -> Written:
    """Values a to d in two partitions; ``x`` in two files of five, one of which has nothing else."""
    found = Written(base)
    for k, values in ((1, "ax"), (1, "bc"), (2, "x"), (2, "d"), (3, "ab")):
        found.write(records(k, *values))
    return found


def of(found: Written, where: str = "value = 'x'") -> Erase:
    """The operation."""
    return Erase(tiers=found.world.tiers(), condition=parse(where), base_path=str(found.base))


def erase(found: Written, where: str = "value = 'x'") -> Erasure:
    """Do it."""
    return of(found, where).run(found.world.ports())


def values(base: Path) -> list[str]:
    """As readers by versions see them."""
    return sorted(filesink.open(base).snapshot().dataset().to_table()["value"].to_pylist())


def listed(base: Path) -> list[str]:
    """As readers of directories see them."""
    found = [path for path in base.rglob("*.parquet") if path.name[0] not in "._"]
    return sorted(value for path in found for value in pq.ParquetFile(path).read()["value"].to_pylist())


def test_rows_are_gone_and_all_others_stay(tmp_path: Path) -> None:
    """The plan has said which; a file without any other row is only removed; the certificate has no value."""
    base = tmp_path / "base"
    found = written(base)
    before = listed(base)
    plan = of(found).plan(found.world.clock)
    assert [(one.file.bucket, one.erased, one.file.rows) for one in plan.files] == [
        ("k=1", 1, 2),
        ("k=2", 1, 1),
    ]
    assert (plan.rows, plan.searched, plan.left) == (2, 5, [])
    assert listed(base) == before
    done = erase(found)
    assert (done.rows, len(done.before), len(done.after), done.is_clean) == (2, 2, 1, True)
    assert values(base) == listed(base) == ["a", "a", "b", "b", "c", "d"]
    assert filesink.open(base).snapshot().rows == 6
    assert filesink.fsck(base, depth="deep").findings == ()
    certificate = json.dumps(done.certificate())
    assert "'x'" not in certificate
    assert '"x"' not in certificate
    assert json.loads(certificate)["rows_removed"] == 2
    assert not any(
        b"value = 'x'" in path.read_bytes() for path in base.rglob("_filesink/**/*") if path.is_file()
    )


def test_a_second_time_there_is_nothing_to_do(tmp_path: Path) -> None:
    """And that is certified: no epoch is needed for it."""
    base = tmp_path / "base"
    found = written(base)
    erase(found)
    version = filesink.open(base).version
    again = erase(found)
    assert (again.rows, again.before, again.is_clean, again.version) == (0, [], True, version)


@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("value = 'x' AND k = 2", ["a", "a", "b", "b", "c", "d", "x"]),
        ("k = 1", ["a", "b", "d", "x"]),
        ("value IN ('a', 'b', 'c', 'd', 'x')", []),
        ("value IS NULL", ["a", "a", "b", "b", "c", "d", "x", "x"]),
        ("value > 'b'", ["a", "a", "b", "b"]),
    ],
)
def test_conditions_may_be_about_columns_of_directories(tmp_path: Path, where: str, left: list[str]) -> None:
    """These are in no file; the certificate says of which the names go on to be known."""
    base = tmp_path / "base"
    done = erase(written(base), where)
    assert values(base) == listed(base) == left
    assert done.certificate()["columns_of_directories"] == (["k"] if "k =" in where else [])


def test_what_files_are_like_stays(tmp_path: Path) -> None:
    """Order of rows, codec, types, and the key-value pairs of the footer."""
    base = tmp_path / "base"
    form = ParquetWriterFactory(compression="zstd", metadata={"owner": "us"})
    found = Written(base, format=BulkFormat(form), partitions=())
    found.write(records(1, *[f"v{number:05}" for number in range(5000)], "x", "z"))
    (old,) = base.glob("*.parquet")
    was = pq.ParquetFile(old)
    erase(found)
    (new,) = base.glob("*.parquet")
    file = pq.ParquetFile(new)
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    assert file.schema_arrow.equals(was.schema_arrow, check_metadata=True)
    assert (file.metadata.metadata or {}).get(b"owner") == b"us"
    assert file.read()["value"].to_pylist() == [f"v{number:05}" for number in range(5000)] + ["z"]


def test_a_column_that_older_files_lack_is_null_in_them(tmp_path: Path) -> None:
    """They are not written anew, unless null is what is asked for."""
    base = tmp_path / "base"
    found = Written(base, partitions=())
    found.write(records(1, "a"))
    wider = pa.RecordBatch.from_pydict({"k": pa.array([1], pa.int32()), "value": ["b"], "new": ["x"]})
    found.write(wider)
    assert of(found, "new = 'x'").plan(found.world.clock).rows == 1
    erase(found, "new IS NULL")
    assert values(base) == ["b"]


def test_a_column_stays_known(tmp_path: Path) -> None:
    """Also when the last live file that had it is written anew, or gone: it can be asked for once more."""
    base = tmp_path / "base"
    found = Written(base)
    found.write(records(1, "a"))
    wider = {"k": pa.array([2, 2], pa.int32()), "value": ["b", "c"], "new": ["x", "y"]}
    found.write(pa.RecordBatch.from_pydict(wider))
    assert erase(found, "new = 'x'").is_clean
    table = filesink.open(base).snapshot().dataset().to_table()
    assert sorted(table["new"].to_pylist(), key=str) == [None, "y"]
    assert (erase(found, "new = 'y'").rows, values(base)) == (1, ["a"])
    assert erase(found, "new = 'y'").is_clean


@pytest.mark.parametrize(
    ("where", "left"), [("value <> 5", [5.0, 5.0]), ("value > 4", [None]), ("value <= 5", [None])]
)
def test_statistics_do_not_know_what_is_not_a_number(
    tmp_path: Path, where: str, left: list[float | None]
) -> None:
    """All that they show is 5. A value that is none differs from it, and is neither more nor less."""
    base = tmp_path / "base"
    found = Written(base, partitions=())
    column = pa.array([5.0, float("nan"), 5.0])
    found.write(pa.RecordBatch.from_pydict({"k": pa.array([1, 2, 3], pa.int32()), "value": column}))
    done = erase(found, where)
    assert done.is_clean
    kept = filesink.open(base).snapshot().dataset().to_table()["value"].to_pylist()
    assert [None if math.isnan(value) else value for value in kept] == left
    assert done.rows == 3 - len(left)


@pytest.mark.parametrize(
    ("where", "code"), [("other = 1", "NO_COLUMN"), ("value = 1", "CONDITION"), ("value ~ 'x'", "CONDITION")]
)
def test_wrong_conditions_change_nothing(tmp_path: Path, where: str, code: str) -> None:
    """They are refused with a code, by the plan as well."""
    base = tmp_path / "base"
    found = written(base)
    for call in (lambda: of(found, where).plan(found.world.clock), lambda: erase(found, where)):
        with pytest.raises(ConfigError) as caught:
            call()
        assert caught.value.code == code
    assert len(values(base)) == 8


def test_files_of_other_formats_are_refused(tmp_path: Path) -> None:
    """One of them is named."""
    base = tmp_path / "base"
    found = Written(base, partitions=())
    found.world.plan = plan_of(Encoder.json_lines())
    found.write(lines("x", bucket="b"))
    with pytest.raises(ConfigError) as caught:
        erase(found)
    assert caught.value.code == "ERASE_FORMAT"


def test_a_damaged_file_stops_it(tmp_path: Path) -> None:
    """Nobody knows what is in it: it is neither kept nor dropped silently."""
    base = tmp_path / "base"
    found = written(base)
    next(iter(sorted(base.rglob("k=3/*.parquet")))).write_bytes(b"PAR1 no more")
    with pytest.raises(StateError) as caught:
        erase(found)
    assert caught.value.code == "UNREADABLE"


def dead_letter(base: Path, _found: Written) -> None:
    """A record that could not be written."""
    (base / "_dead_letters").mkdir()
    pq.write_table(pa.table({"value": ["x"], "_error": ["why"]}), base / "_dead_letters" / "part.parquet")


def hidden(_base: Path, found: Written) -> None:
    """A driver has died before its epoch was decided."""
    killed = Fault(moment=Moment.BEFORE, error=Killed())
    found.world.fault = lambda operation, path: (
        killed if operation == "put_if_absent" and path.endswith(".record") else None
    )
    with pytest.raises(Killed):
        found.write(records(1, "x"))
    found.world.fault = lambda _operation, _path: None


def test_logs_of_exports_are_no_strangers(tmp_path: Path) -> None:
    """They have names and numbers alone; a log with values, of another program, is told of."""
    base = tmp_path / "base"
    found = written(base)
    exporters = (filesink.DeltaExport(), filesink.ManifestExport(), filesink.SparkMetadataExport())
    for exporter in exporters:
        filesink.export(base, exporter)
    done = erase(found)
    assert done.left == []
    assert done.certificate()["clean"]
    beside = base / "_manifests" / "customers.csv"
    beside.write_text("x\n")
    assert [(one.kind, one.path) for one in erase(found).left] == [("stranger", "_manifests/customers.csv")]
    beside.unlink()
    other = base / "_delta_log" / f"{99:020d}.json"
    other.write_text('{"add":{"stats":"{\\"minValues\\":{\\"value\\":\\"x\\"}}"}}')
    assert [(one.kind, one.path) for one in erase(found).left] == [("log", f"_delta_log/{99:020d}.json")]


@pytest.mark.parametrize(
    "name", [f"{99:020d}.checkpoint.parquet", f"{99:020d}.checkpoint.0000000001.0000000002.parquet"]
)
@pytest.mark.parametrize("statistics", [None, '{"numRecords":2}', '{"minValues":{"value":"x"}}'])
def test_checkpoints_of_delta_are_read_for_values(tmp_path: Path, name: str, statistics: str | None) -> None:
    """Another writer of the table may have put statistics into a checkpoint, where they are compressed."""
    base = tmp_path / "base"
    found = written(base)
    log = base / "_delta_log"
    log.mkdir()
    actions = pa.array(
        [{"path": "a", "stats": statistics}], pa.struct([("path", "string"), ("stats", "string")])
    )
    pq.write_table(pa.table({"add": actions}), log / name, compression="zstd")
    has_values = statistics is not None and "minValues" in statistics
    assert [(one.kind, one.path) for one in erase(found).left] == (
        [("log", f"_delta_log/{name}")] if has_values else []
    )


@pytest.mark.parametrize(
    "actions",
    [
        pa.array([{"stats": '{"minValues":{}}'}], pa.struct([("stats", pa.large_string())])),
        pa.array([{"stats": b"{}"}], pa.struct([("stats", pa.binary())])),
        pa.array(["no struct"]),
    ],
    ids=lambda actions: str(actions.type),
)
def test_a_checkpoint_that_nobody_would_write_is_not_clean(tmp_path: Path, actions: pa.Array) -> None:
    """What is not known to be without values may have some; and an erasure that is done does not break."""
    base = tmp_path / "base"
    found = written(base)
    (base / "_delta_log").mkdir()
    path = f"_delta_log/{1:020d}.checkpoint.parquet"
    pq.write_table(pa.table({"add": actions}), base / path)
    assert [(one.kind, one.path) for one in erase(found).left] == [("log", path)]


def test_a_checkpoint_with_columns_for_statistics_has_values(tmp_path: Path) -> None:
    """As ``delta.checkpoint.writeStatsAsStruct`` makes them; and one that nobody can read is not clean."""
    base = tmp_path / "base"
    found = written(base)
    log = base / "_delta_log"
    log.mkdir()
    parsed = pa.array([{"stats_parsed": {"minValues": {"value": "x"}}}])
    pq.write_table(pa.table({"add": parsed}), log / f"{1:020d}.checkpoint.parquet")
    (log / f"{2:020d}.checkpoint.parquet").write_bytes(b"PAR1 and no more")
    paths = [f"_delta_log/{number:020d}.checkpoint.parquet" for number in (1, 2)]
    assert [(one.kind, one.path) for one in erase(found).left] == [("log", path) for path in paths]


def test_columns_that_differ_in_case_alone_are_one(tmp_path: Path) -> None:
    """As for every reader of tables: another sink of the path may have written the name in other letters."""
    store = open_store(tmp_path, {})
    for name in ("value", "VALUE"):
        pq.write_table(pa.table({name: ["x", "y"]}), tmp_path / f"{name}.parquet")
    schema = pa.schema([("value", pa.string()), ("VALUE", pa.string())])
    files = ParquetFiles(store=store, condition=parse("value = 'x'"), schema=schema)
    assert [files.matching(f"{name}.parquet", "") for name in ("value", "VALUE")] == [1, 1]
    output = store.create("kept.parquet", target=None)
    assert files.rewrite("VALUE.parquet", "", output) == 1
    output.close()
    assert pq.ParquetFile(tmp_path / "kept.parquet").read().to_pydict() == {"VALUE": ["y"]}


def stranger(base: Path, _found: Written) -> None:
    """Somebody has put a file there."""
    pq.write_table(pa.table({"value": ["x"]}), base / "k=1" / "mine.parquet")


def busy(_base: Path, found: Written) -> None:
    """An epoch is decided and not complete."""
    killed = Fault(moment=Moment.BEFORE, error=Killed())
    found.world.fault = lambda operation, path: (
        killed if operation == "put_if_absent" and path.endswith(".complete") else None
    )
    with pytest.raises(Killed):
        found.write(records(1, "x"))
    found.world.fault = lambda _operation, _path: None


def waiting(_base: Path, found: Written) -> None:
    """A small file waits for its compaction."""
    strategy = compaction.FileCompactStrategy(size_threshold="1MiB")
    compactor = compaction.FileCompactor.record_wise_file_compactor()
    found.world.compaction = Compaction(strategy=strategy, compactor=compactor)
    found.write(records(1, "x"))


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (dead_letter, "dead letter"),
        (hidden, "hidden"),
        (stranger, "stranger"),
        (busy, "live"),
        (waiting, "held"),
    ],
)
def test_no_certificate_before_all_is_clean(tmp_path: Path, make: Any, kind: str) -> None:
    """Each place where the row still is is named, with what to do; what is live is erased all the same."""
    base = tmp_path / "base"
    found = written(base)
    make(base, found)
    done = erase(found)
    assert [one.kind for one in done.left] == [kind]
    assert done.left[0].rows == 1
    with pytest.raises(StateError, match="1 things are not clean yet") as caught:
        done.certificate()
    assert caught.value.code == "NOT_CLEAN"
    assert kind in str(caught.value)
    assert values(base).count("x") == (1 if kind == "live" else 0)


@pytest.mark.parametrize(
    ("path", "rows"),
    [
        ("k=1/.mine.parquet", 1),
        ("k=1/_mine.parquet", 1),
        ("_old/mine.parquet", 1),
        (".trash/deeper/mine.parquet.bak", 1),
        ("k=1/mine.csv", None),
        ("_metadata", None),
        ("k=1/link", None),
    ],
)
def test_what_readers_skip_is_no_secret(tmp_path: Path, path: str, rows: int | None) -> None:
    """Nor is it clean: some readers do not skip it. What nobody can look into may have such a row."""
    base = tmp_path / "base"
    found = written(base)
    file = base / path
    file.parent.mkdir(parents=True, exist_ok=True)
    if path.endswith("link"):
        file.symlink_to(tmp_path)
    elif rows is None:
        file.write_bytes(b"x")
    else:
        pq.write_table(pa.table({"value": ["x"]}), file)
    assert [(one.kind, one.path, one.rows) for one in erase(found).left] == [("stranger", path, rows)]
    file.unlink()
    file.with_name("_SUCCESS").touch()
    assert erase(found).is_clean


class Uploading(WrappedStore):
    """Lists an upload that is not complete, as object stores do."""

    def list(self, directory: str) -> list[Entry]:
        """See ``Store.list``."""
        name = upload_path("part-f0f0f0f0-0000-8000-8000-000000000000-0.parquet", "abc")
        more = [Entry(name=name, size=0, mtime_ms=1, kind=Kind.FILE)] if directory == "k=1" else []
        return [*super().list(directory), *more]


def test_an_upload_may_have_such_rows(tmp_path: Path) -> None:
    """Nobody can read it, and a driver may still complete it."""
    base = tmp_path / "base"
    found = written(base)
    found.world.open_store = lambda: Uploading(open_store(str(base), {}))
    assert [(one.kind, one.rows) for one in erase(found).left] == [("hidden", None)]


def test_rows_of_another_base_path_are_its_own(tmp_path: Path) -> None:
    """They are erased by a call for that path."""
    base = tmp_path / "base"
    found = written(base)
    written(base / "k=1" / "inside")
    assert erase(found).is_clean


def test_rows_that_waited_are_erased_when_they_are_visible(tmp_path: Path) -> None:
    """As the advice says: finish, and once more."""
    base = tmp_path / "base"
    found = written(base)
    waiting(base, found)
    assert not erase(found).is_clean
    found.world.driver().finish()
    done = erase(found)
    assert (done.rows, done.is_clean) == (1, True)
    assert "x" not in listed(base)


def test_merged_inputs_that_stay_for_readers_go_too(tmp_path: Path) -> None:
    """They have the row as well, and are not live."""
    base = tmp_path / "base"
    found = written(base)
    compaction.compact(base, ParquetWriterFactory(), reader_grace="1 h")
    assert listed(base).count("x") == 4
    done = erase(found)
    assert done.is_clean
    assert values(base) == ["a", "a", "b", "b", "c", "d"]
    assert "x" not in listed(base)
    assert "x" not in [
        value for path in compaction.files(base) for value in pq.read_table(path)["value"].to_pylist()
    ]


def test_a_file_that_cannot_be_removed_is_left(tmp_path: Path) -> None:
    """One of another user's: the next call removes it, and then certifies."""
    base = tmp_path / "base"
    found = written(base)
    refused = StorageError("not yours", code="PERMISSION")
    found.world.fault = lambda operation, _path: (
        Fault(moment=Moment.BEFORE, error=refused) if operation == "delete_if_unchanged" else None
    )
    done = erase(found)
    assert {one.kind for one in done.left} == {"replaced"}
    assert "x" not in values(base)
    found.world.fault = lambda _operation, _path: None
    assert erase(found).is_clean
    assert "x" not in listed(base)


def test_what_a_stream_publishes_meanwhile_is_told(tmp_path: Path) -> None:
    """It stays, and the second call finds it."""
    base = tmp_path / "base"
    found = written(base)

    def fault(operation: str, path: str) -> None:
        if (
            operation == "put_if_absent"
            and path.startswith("_filesink/exclusive/")
            and path.endswith(".record")
        ):
            found.world.fault = lambda _operation, _path: None
            found.write(records(1, "x", "late"))

    found.world.fault = fault
    done = erase(found)
    assert [(one.kind, one.rows) for one in done.left] == [("live", 1)]
    assert erase(found).is_clean
    assert "late" in values(base)
    assert "x" not in listed(base)


def test_of_two_at_a_time_one_is_told(tmp_path: Path) -> None:
    """No row is lost, none comes back, and nothing hidden is left of the one that came second."""
    base = tmp_path / "base"
    found = written(base)

    def fault(operation: str, path: str) -> None:
        if (
            operation == "put_if_absent"
            and path.startswith("_filesink/exclusive/")
            and path.endswith(".record")
        ):
            found.world.fault = lambda _operation, _path: None
            erase(found, "value = 'a'")

    found.world.fault = fault
    with pytest.raises(ConcurrentDriverError):
        erase(found)
    assert values(base) == listed(base) == ["b", "b", "c", "d", "x", "x"]
    assert list(base.rglob("k=*/.*")) == []


@pytest.mark.parametrize("moment", list(Moment))
def test_killed_and_called_again(tmp_path: Path, moment: Moment) -> None:
    """After the first, the fourteenth … operation on the store: then all other rows are there, and once."""
    steps = 0
    for step in range(0, 10_000, 13):
        base = tmp_path / f"{step}"
        found = written(base)
        seen = 0

        def fault(_operation: str, _path: str, *, step: int = step) -> Fault | None:
            nonlocal seen
            seen += 1
            return Fault(moment=moment, error=Killed()) if seen > step else None

        found.world.fault = fault
        try:
            erase(found)
            is_done = True
        except Killed:
            is_done = False
        found.world.fault = lambda _operation, _path: None
        found.world.uid = None
        found.world.maintenance().recover(Lost.RAISE, None)
        assert values(base) in (["a", "a", "b", "b", "c", "d"], ["a", "a", "b", "b", "c", "d", "x", "x"])
        erase(found)
        found.world.maintenance().sweep(0)
        assert erase(found).is_clean
        assert values(base) == listed(base) == ["a", "a", "b", "b", "c", "d"]
        steps += 1
        if is_done:
            break
    assert steps > 5


def test_encrypted_files_need_their_keys(tmp_path: Path) -> None:
    """Without, nobody knows what is in them; with them they are written anew, encrypted."""
    base = tmp_path / "base"
    form = ParquetWriterFactory(encryption=ParquetEncryption(open_kms=Kms, footer_key="foot"))
    found = Written(base, format=BulkFormat(form))
    found.write(records(1, "x", "a"))
    with pytest.raises(StateError) as caught:
        erase(found)
    assert caught.value.code == "UNREADABLE"
    done = filesink.erase(base, "value = 'x'", form=form)
    assert (done.rows, done.is_clean) == (1, True)
    (path,) = base.rglob("*.parquet")
    assert path.read_bytes()[:4] == b"PARE"
    assert filesink.erase(base, "value = 'x'", form=form).rows == 0
    with pytest.raises(ConfigError, match="form"):
        filesink.erase(base, "value = 'x'", form="zstd")  # type: ignore[arg-type]


@pytest.mark.parametrize("times", [1, 6])
def test_a_file_that_another_operation_removes_meanwhile(tmp_path: Path, times: int) -> None:
    """While it is searched, or written anew: the loser says so, and has changed nothing."""
    found = written(tmp_path / "base")
    left = [times]

    def fault(operation: str, _path: str) -> Fault | None:
        if operation == "open_input":
            left[0] -= 1
            if not left[0]:
                found.world.fault = lambda _operation, _path: None
                filesink.retain(found.base, Retention(max_bytes=1))
        return None

    found.world.fault = fault
    with pytest.raises(ConcurrentDriverError, match=r"'k=./part-.*' while it was searched"):
        erase(found)
    assert values(found.base) == []
    assert erase(found).is_clean


def test_a_file_that_another_operation_is_removing(tmp_path: Path) -> None:
    """Its epoch is decided, the file is gone, and the inventory does not say so yet."""
    found = written(tmp_path / "base")

    def killed(operation: str, path: str) -> Fault | None:
        is_version = operation == "put_if_absent" and path.endswith(".entry")
        return Fault(moment=Moment.BEFORE, error=Killed()) if is_version else None

    found.world.fault = killed
    with pytest.raises(Killed):
        erase(found)
    found.world.fault = lambda _operation, _path: None
    with pytest.raises(ConcurrentDriverError, match="call recover before"):
        of(found).plan(found.world.clock)
    assert erase(found).is_clean


def test_a_file_that_is_lost(tmp_path: Path) -> None:
    """Its whole path is named, and nothing is changed: that is damage, and no other operation."""
    found = written(tmp_path / "base")
    lost = min(found.base.rglob("*.parquet"))
    lost.unlink()
    for call in (lambda: of(found).plan(found.world.clock), lambda: erase(found)):
        with pytest.raises(StateError, match=f"'{lost.relative_to(found.base)}' is lost") as raised:
            call()
        assert raised.value.code == "FILE_LOST"


def test_a_copy_is_left_and_nobody_is_told_to_wait(tmp_path: Path) -> None:
    """No epoch removes it: the advice is to move it away, and then the row is gone."""
    base = tmp_path / "base"
    found = written(base)
    path = next(path for path in base.rglob("part-*") if "x" in pq.read_table(path)["value"].to_pylist())
    copied = Path(shutil.copy(path, path.with_name(path.name.replace("-0.parquet", "-7.parquet"))))
    (left,) = erase(found).left
    assert (left.kind, left.path) == ("returned", str(copied.relative_to(base)))
    assert "ove it away" in left.advice
    copied.unlink()
    assert erase(found).is_clean
