"""``fsck`` on ten thousand files, and on a real server of S3."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from filesink.operations.fsck.check import Check
from filesink.operations.fsck.finding import FsckReport
from filesink.sink_directory.opening import site_of
from filesink.system import SystemClock
from tests.fakes import SettableClock
from tests.operations.broken_paths import live, whole
from tests.operations.damage import DAMAGES, Damage
from tests.operations.test_fsck import check
from tests.servers import S3Server
from tests.sink_directory.written import SCHEMA, Written

#: Damage to what stands below ``_filesink``.
OF_STATE = [damage for damage in DAMAGES if damage.on is whole and not str(damage).startswith(
    ("file_", "base_", "garbage", "hidden_", "tail_lost_by")
)]  # fmt: skip
#: What an object store has, too: no links, and times of its own.
OF_OBJECTS = [
    damage for damage in DAMAGES if damage.on is whole and str(damage) not in {"file_link", "hidden_old"}
]
SMALL = {"file_lost", "garbage", "segment_damaged"}
_EACH = 20  # files with each kind of damage


def filled(base: Path, files: int) -> None:
    """A path with so many files more, a hundred in each epoch, in a hundred directories."""

    def more(written: Written) -> None:
        keys = list(range(100))
        for number in range(files // 100):
            columns = {"k": keys, "value": [f"{number} {key}" for key in keys]}
            written.write(pa.RecordBatch.from_pydict(columns, schema=SCHEMA))

    whole(base, more)


def damaged_files(base: Path, random: Random) -> set[tuple[str, str]]:
    """Every kind of damage to files at once, each to several of them; returns what must be found."""
    chosen = random.sample(live(base), 6 * _EACH)
    parts = [iter(chosen[start : start + _EACH]) for start in range(0, len(chosen), _EACH)]
    expected = set()
    for path in parts[0]:
        expected.add(("FILE_LOST", path))
        path.unlink()
    for path in parts[1]:
        expected.add(("FILE_RESIZED", path))
        path.write_bytes(path.read_bytes()[: -random.randrange(1, 100)])
    for path in parts[2]:
        expected.add(("FILE_TORN", path))
        path.write_bytes(path.read_bytes()[:-8] + bytes(8))
    for path in parts[3]:
        other = base / f"k={(int(path.parent.name[2:]) + 1) % 100}" / path.name
        expected.add(("FILE_MISPLACED", path.rename(other)))
    for path in parts[4]:
        expected.add(("FILE_DOUBLED", Path(shutil.copy(path, path.with_name(f"{random.random()}.parquet")))))
    for path in parts[5]:
        mine = path.with_name(f"mine-{random.random()}.parquet")
        pq.write_table(pa.table({"value": ["x" * random.randrange(999)]}), mine)
        expected.add(("FILE_FOREIGN", mine))
    return {(code, str(path.relative_to(base))) for code, path in expected}


def found(report: FsckReport) -> set[tuple[str, str]]:
    """Code and path of each finding."""
    return {(finding.code, finding.path) for finding in report.findings}


def test_many_damages_at_once_are_told_apart(tmp_path: Path) -> None:
    """Each is found, with its own file; nothing else is, and nothing before."""
    _all_is_found(tmp_path / "base", files=200)


@pytest.mark.nightly
def test_damage_is_found_among_ten_thousand_files(tmp_path: Path) -> None:
    """The same, and every kind of damage to ledgers and inventory beside so many files."""
    base = tmp_path / "base"
    _all_is_found(base, files=10_000)
    shutil.rmtree(base)
    shutil.rmtree(tmp_path / "replaced")
    filled(base, 10_000)
    shutil.copytree(base / "_filesink", tmp_path / "state")
    for damage in OF_STATE:
        path = damage.make(base)
        codes = found(check(base, "quick"))
        assert (damage.code, str(path.relative_to(base))) in codes, (damage, codes)
        shutil.rmtree(base / "_filesink")
        shutil.copytree(tmp_path / "state", base / "_filesink")
    assert found(check(base, "quick")) == set()


def _all_is_found(base: Path, *, files: int) -> None:
    filled(base, files)
    report = check(base, "ends")
    assert (report.findings, report.files, report.opened) == ((), files + 8, files + 8)
    expected = damaged_files(base, Random(files))  # noqa: S311 - repeatable
    assert found(check(base, "ends")) == expected


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Written once, and copied for each damage."""
    base = tmp_path_factory.mktemp("original") / "base"
    whole(base)
    return base


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(damage, marks=() if str(damage) in SMALL else pytest.mark.nightly)
        for damage in OF_OBJECTS
    ],
    ids=str,
)
def test_damage_is_found_on_s3(original: Path, tmp_path: Path, moto_server: S3Server, damage: Damage) -> None:
    """By code and path, as on a disk; and nothing before."""
    shutil.copytree(original.parent, tmp_path / "copy")
    base = tmp_path / "copy" / "base"
    assert found(_on_s3(base, moto_server)) == set()
    path = damage.make(base)
    codes = found(_on_s3(base, moto_server))
    assert (damage.code, str(path.relative_to(base))) in codes
    assert {code for code, _ in codes} <= {damage.code, *damage.also}


def _on_s3(base: Path, server: S3Server) -> FsckReport:
    """What is found in a bucket with all files of ``base``."""
    bucket, client = server.new_bucket(), server.client()
    for path in base.rglob("*"):
        if path.is_file():
            client.put_object(Bucket=bucket, Key=str(path.relative_to(base)), Body=path.read_bytes())
        elif not any(path.iterdir()):  # as consoles make directories
            client.put_object(Bucket=bucket, Key=f"{path.relative_to(base)}/", Body=b"")
    store = site_of(f"s3://{bucket}", server.options).store
    clock = SettableClock(SystemClock().now_ms())
    return Check(store=store, clock=clock, progress=lambda *_: None).run(f"s3://{bucket}", "deep")
