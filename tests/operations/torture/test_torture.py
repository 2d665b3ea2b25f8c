"""Trials on a store: good where the promise holds, and not where somebody breaks it."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest

from filesink.naming import join, parse_part
from filesink.operations.torture.input import ROWS, TortureBatch, bucket_of, line, parsed
from filesink.operations.torture.observer import Observer
from filesink.operations.torture.torture import Torture, remove_all
from filesink.operations.torture.victims import Victim
from filesink.operations.torture.writer import Task
from filesink.operations.torture.writer import run as write
from filesink.storage.memory import MemoryFiles, MemoryStore
from filesink.storage.open import open_store
from filesink.system import SystemClock, SystemIds
from tests.cli.running import run


def trial(path: Path, seconds: int = 4) -> Torture:
    """A short one, in two processes at a time."""
    return Torture(path=str(path), seconds=seconds, clock=SystemClock(), ids=SystemIds())


@pytest.mark.slow
def test_a_store_that_keeps_its_promise(tmp_path):
    """Writers were killed, all rows are there once, and nothing of the trial is left."""
    report = trial(tmp_path).run()
    assert report.is_good, report
    assert report.kills >= report.writers
    assert report.starts == report.kills + len(report.errors) + report.writers
    assert report.rows == report.epochs * ROWS
    assert report.is_clean
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("harm", ["unlink", "append"])
def test_somebody_who_breaks_it(tmp_path, harm):
    """A visible file is removed or written to: the observer says which, and all stays as evidence."""
    done = []

    def meddle(_passed: int, _seconds: int, _kills: int) -> None:
        found = sorted(path for path in tmp_path.glob("_torture-*/bucket=*/part-*"))
        if found and not done:
            done.append(found[0])
            if harm == "unlink":
                found[0].unlink()
            else:
                found[0].write_text(f"{found[0].read_text()}{line(0, 0, 0)}\n")

    report = trial(tmp_path, 6).run(meddle)
    assert done
    assert not report.is_good
    assert any(done[0].name in sentence for sentence in report.violations)
    assert not report.is_clean
    assert Path(report.path).is_dir()


def seen(*files: tuple[str, str], done: dict[int, int] | None = None) -> list[str]:
    """What an observer says of these files."""
    made = MemoryFiles()
    for path, text in files:
        made.make(path, text.encode())
    observer = Observer(MemoryStore(made))
    observer.look(done or {})
    return observer.violations


def whole(batch: int = 0, *, but: int = -1) -> list[tuple[str, str]]:
    """The files of a batch, without one of its rows."""
    texts: dict[str, str] = {}
    for number in set(range(ROWS)) - {but}:
        bucket = bucket_of(number)
        texts[bucket] = f"{texts.get(bucket, '')}{line(1, batch, number)}\n"
    return [(f"{bucket}/part-{batch}", text) for bucket, text in texts.items()]


def test_what_an_observer_objects_to():
    """Rows that are missing, twice, torn, elsewhere or nobody's; and nothing of a whole batch."""
    assert seen(*whole(), done={1: 0}) == []
    assert seen(*whole(but=7), done={1: 0}) == ["1 rows of batch 0 of writer 1 are not visible"]
    assert seen(*whole(), ("bucket=b0/part-x", f"{line(1, 0, 0)}\n")) == [
        "row 0 of batch 0 of writer 1 is visible twice"
    ]
    assert seen(("bucket=b1/part-x", f"{line(1, 0, 0)}\n")) == [
        "row 0 of batch 0 of writer 1 is in 'bucket=b1'"
    ]
    torn = line(1, 0, 0)[:20]
    assert seen(("bucket=b0/part-x", torn)) == [
        "'bucket=b0/part-x' does not end with a whole row",
        "'bucket=b0/part-x' has a row that nobody has written",
    ]


def test_a_batch_that_was_never_done():
    """It may be visible while its writer is dead, and not in the end."""
    made = MemoryFiles()
    for path, text in whole(3):
        made.make(path, text.encode())
    observer = Observer(MemoryStore(made))
    observer.look({})
    observer.check_only({1: 3})
    assert observer.violations == []
    observer.check_only({1: 2})
    assert observer.violations == ["batch 3 of writer 1 is visible and was never done"]


@pytest.mark.parametrize(
    "text", ["", "1 2 3", line(1, 2, ROWS), line(1, 2, 3)[:-1], "a" + line(1, 2, 3), "² 1 1 . end"]
)
def test_what_is_no_row(text):
    """Only a whole one is."""
    assert parsed(text) is None
    assert parsed(line(1, 2, 3)) == (1, 2, 3)


def test_a_batch_is_the_same_at_each_call():
    """As Spark's is when it comes again."""

    def rows(batch: TortureBatch) -> list[bytes]:
        return batch.write(
            lambda _task, _attempt, batches: str([one.to_pylist() for one in batches]).encode()
        )

    one, two = (TortureBatch(writer=1, batch=2, run_id=run) for run in ("a", "b"))
    assert rows(one) == rows(two)
    assert one.fingerprint == two.fingerprint != TortureBatch(writer=1, batch=3, run_id="a").fingerprint


def test_only_the_own_directory_is_removed(tmp_path):
    """With hidden files, ledgers and directories; what is beside it stays."""
    base = tmp_path / "mine"
    for path in ("_filesink/uid-a/x", "k=1/part-0", "k=1/.hidden"):
        target = base / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("x")
    (tmp_path / "beside").write_text("theirs")
    assert remove_all(open_store(str(base), {}), str(base))
    assert [path.name for path in tmp_path.iterdir()] == ["beside"]
    assert join("", "x") == "x"


@pytest.mark.slow
def test_a_writer_that_died_before_it_tidied_up(tmp_path):
    """Its batch is complete and only repeats at the last start; what it has left goes all the same."""
    write(Task(path=str(tmp_path), options={}, writer=1, first=0, last=0))
    tag = next(parse_part(path.name).tag for path in tmp_path.glob("bucket=b0/part-*"))
    left = tmp_path / "bucket=b0" / f".part-0.inprogress.{tag}.0.{SystemIds().uuid()}"
    left.write_text("x")
    victim = Victim(writer=1, path=str(tmp_path), options={}, clock=SystemClock(), over=Event())
    assert victim.finish()
    assert victim.done >= 1
    assert not left.exists()


@pytest.mark.slow
def test_the_command(tmp_path):
    """Text, JSON and a page that fetches nothing; below a path that is a sink's or nobody's."""
    page = tmp_path / "page.html"
    ran = run("torture", tmp_path / "base", "--minutes", "0.06", "--html", page, "--json")
    assert (ran.code, ran.json["is_good"], ran.json["violations"]) == (0, True, [])
    assert "The promise held" in page.read_text()
    assert "http" not in page.read_text().replace("http-equiv", "")
    assert list((tmp_path / "base").iterdir()) == []


@pytest.mark.parametrize("arguments", [("--minutes", "0"), ("--writers", "0"), ("--minutes", "x")])
def test_a_wrong_use(tmp_path, arguments):
    """Nothing is made."""
    assert run("torture", tmp_path / "base", *arguments).code == 2
    assert not (tmp_path / "base").exists()
