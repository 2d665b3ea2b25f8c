"""Savepoints, logs and figures without Spark: copies that are whole, and what came since."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event as Flag
from typing import Any

import pytest

from filesink.errors import JobError, StateCorruptError
from filesink.jobs.life.log import JobLog, lines_of
from filesink.jobs.life.savepoints import Saved, Savepoints
from filesink.jobs.life.states import State
from filesink.jobs.life.store import JobStore
from filesink.jobs.life.supervisor import RETRY
from filesink.jobs.life.watching import Figures, Watch
from filesink.jobs.model.env import Mode
from filesink.system import SystemIds
from tests.jobs.life.test_supervisor import Clock, Site, badly, store_at, until_asked, well, wrongly

ONE = Saved(sink="sink-1", checkpoint="checkpoint-0", path="/out", version=3)


@dataclass
class Place:
    """A job on a disk with the checkpoint of one stream."""

    path: Path
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        store_at(self.path).create("job", {})
        self.savepoints = Savepoints(store=store_at(self.path), job="job")
        self.file("metadata", '{"id":"old"}')

    def file(self, name: str, text: str = "v1", *, sink: str = "sink-1") -> None:
        """A file of the checkpoint."""
        found = self.path / "job" / "run" / sink / "checkpoint-0" / name
        found.parent.mkdir(parents=True, exist_ok=True)
        found.write_text(text)

    def batch(self, number: int, *, is_done: bool = True) -> None:
        """A micro-batch, as Spark notes it."""
        for name in ("offsets", "commits") if is_done else ("offsets",):
            self.file(f"{name}/{number}", f"{name} {number}")
            self.file(f"{name}/.{number}.crc", "checksum")

    def save(self, one: Saved = ONE) -> int:
        """A savepoint."""
        return self.savepoints.save([one], {}, self.clock, SystemIds())


def files(path: Path) -> dict[str, str]:
    """All that is below a directory."""
    return {str(one.relative_to(path)): one.read_text() for one in path.rglob("*") if one.is_file()}


def test_a_savepoint_is_a_copy(tmp_path: Path) -> None:
    """Whatever becomes of the checkpoint, and of Spark's checksums beside its files."""
    place = Place(tmp_path)
    place.batch(0)
    assert place.save() == 0
    (found,) = place.savepoints.list()
    assert found.streams == (replace(ONE, batch=0, copy=found.streams[0].copy),)
    place.batch(1)
    place.file("commits/0", "changed")
    kept = files(tmp_path / "job" / "saved" / found.streams[0].copy)
    assert kept == {
        "sink-1/checkpoint-0/metadata": '{"id":"old"}',
        "sink-1/checkpoint-0/offsets/0": "offsets 0",
        "sink-1/checkpoint-0/commits/0": "commits 0",
    }


def test_what_came_since(tmp_path: Path) -> None:
    """Is counted in micro-batches that have begun; none for a savepoint that nobody has gone on from."""
    place = Place(tmp_path)
    place.batch(0)
    place.save()
    found = place.savepoints.find(0)
    assert place.savepoints.newer(found, {}) == {}
    place.batch(1)
    place.batch(2, is_done=False)
    assert place.savepoints.newer(found, {}) == {"sink-1": 2}
    place.save()
    assert [one.streams[0].is_idle for one in place.savepoints.list()] == [True, False]


def test_the_way_back_is_a_new_stream(tmp_path: Path) -> None:
    """With another query id, in another directory, of which nothing has come since."""
    place = Place(tmp_path)
    place.batch(0)
    place.save()
    place.batch(1)
    found = place.savepoints.find(0)
    name = place.savepoints.bring_back(found, "sink-1", SystemIds())
    brought = files(tmp_path / "job" / "run" / name / "checkpoint-0")
    assert sorted(brought) == ["commits/0", "metadata", "offsets/0"]
    assert json.loads(brought["metadata"])["id"] not in {"", "old"}
    assert place.savepoints.newer(found, {"sink-1": name}) == {}


def test_batches_of_another_way_are_newer(tmp_path: Path) -> None:
    """Of a stream that went back and on again, a batch with the number of the savepoint is another one."""
    place = Place(tmp_path)
    place.batch(0)
    place.save()
    place.batch(1)
    place.save()
    first, second = place.savepoints.list()
    directories = {"sink-1": place.savepoints.bring_back(first, "sink-1", SystemIds())}
    assert place.savepoints.newer(second, directories) == {"sink-1": 1}
    place.file("offsets/1", "offsets 1, later", sink=directories["sink-1"])
    assert place.savepoints.newer(second, directories) == {"sink-1": 1}
    assert place.savepoints.newer(second, {}) == {}


@pytest.mark.parametrize("number", [-1, 1, 7])
def test_savepoints_that_there_are_not(tmp_path: Path, number: int) -> None:
    """Are named, with those that there are."""
    place = Place(tmp_path)
    with pytest.raises(JobError, match="it has none"):
        place.savepoints.find(0)
    place.save()
    with pytest.raises(JobError, match="there are 0 to 0") as raised:
        place.savepoints.find(number)
    assert raised.value.code == "JOB_SAVEPOINT"


def test_a_savepoint_that_died_is_none(tmp_path: Path) -> None:
    """What it had copied is in nobody's way: the next one is whole, and has what is there then."""
    place = Place(tmp_path)
    place.batch(0)

    class Dying(JobStore):
        def append(self, *_: object) -> bool:
            raise StateCorruptError("the process is gone", code="JSON")

    dying = Savepoints(store=Dying(place.savepoints.store._store, str(tmp_path)), job="job")
    with pytest.raises(StateCorruptError):
        dying.save([ONE], {}, place.clock, SystemIds())
    assert place.savepoints.list() == []
    place.batch(1)
    place.save()
    assert place.savepoints.find(0).streams[0].batch == 1


def test_a_damaged_record_is_told(tmp_path: Path) -> None:
    """And not taken for a savepoint."""
    place = Place(tmp_path)
    place.savepoints.store.append("job", "savepoints", 0, {"at_ms": 1, "streams": [{"sink": "x"}]})
    with pytest.raises(StateCorruptError):
        place.savepoints.list()


def test_a_savepoint_that_cannot_be_made_fails_the_job() -> None:
    """The pipelines have ended where their checkpoints are; the job says that there is no savepoint."""
    site = Site()

    def asking(control: Any) -> None:
        site.ask(State.DOING_SAVEPOINT)
        until_asked(control)
        control.saved = (ONE,)

    supervisor = site.supervisor({1: [asking]})

    def full(_: object) -> None:
        raise StateCorruptError("the disk is full", code="JSON")

    supervisor.save = full
    info = supervisor.run()
    assert (info.state, info.pipelines[0].state) == ("FAILED", "SAVEPOINT_DONE")
    assert "there is no savepoint: the disk is full" in info.error


@pytest.mark.parametrize("pipelines", [1, 2])
def test_a_stream_that_fails_at_its_end_has_no_savepoint(pipelines: int) -> None:
    """Its error is told, and no savepoint is made of the other pipelines alone."""
    site = Site(pipelines=pipelines)
    started = Flag()
    made: list[Any] = []

    def fails(control: Any) -> None:
        assert pipelines == 1 or started.wait(20)
        site.ask(State.DOING_SAVEPOINT)
        until_asked(control)
        raise StateCorruptError("the disk is full", code="JSON")

    def other(control: Any) -> None:
        started.set()
        until_asked(control)
        control.saved = (ONE,)

    supervisor = site.supervisor({1: [fails], 2: [other]})
    supervisor.env = supervisor.env.model_copy(update={"mode": Mode.STREAMING})
    supervisor.save = made.append
    info = supervisor.run()
    assert (info.state, info.pipelines[0].state, made) == ("FAILED", "FAILED", [])
    assert "there is no savepoint: pipeline 1 is FAILED: the disk is full" in info.error


def test_failed_pipelines_are_started_again() -> None:
    """By a request, while another one runs on; it is started once."""
    site = Site(pipelines=2)

    def asking(control: Any) -> None:
        while site.info().pipelines[1].state != "FAILED":
            control.ends.wait(0.01)
        number, _ = site.store.last("job", "requests")
        site.store.append("job", "requests", number + 1, {"state": RETRY})
        while site.info().pipelines[1].state != "FINISHED":
            control.ends.wait(0.01)

    info = site.supervisor({1: [asking], 2: [wrongly, well]}).run()
    assert [(one.state, one.starts) for one in info.pipelines] == [("FINISHED", 1), ("FINISHED", 2)]


def test_a_log_is_kept_and_bounded() -> None:
    """What filesink warns of, without what others log; old pieces go."""
    site = Site()
    log = JobLog(store=site.store, job="job", clock=site.clock)
    with log.listening():
        logging.getLogger("filesink.jobs").warning("a word")
        logging.getLogger("others").warning("hunter2")
    log.flush()
    log.flush()
    assert [text for _, text in lines_of(site.store, "job")] == ["WARNING a word"]
    for number in range(300):
        log.add(f"{number}")
        log.flush()
    found = [text for _, text in lines_of(site.store, "job")]
    assert (len(found), found[-1]) == (200, "299")


def test_a_failing_pipeline_is_in_the_log() -> None:
    """Without the values that an error may have."""
    site = Site()
    supervisor = site.supervisor({1: [badly, badly, badly]})
    supervisor.log = JobLog(store=site.store, job="job", clock=site.clock)
    with supervisor.log.listening():
        supervisor.run()
    found = [text for _, text in lines_of(site.store, "job")]
    assert len([text for text in found if "pipeline 1 failed" in text]) == 3
    assert not [text for text in found if "hunter2" in text]


@dataclass
class Query:
    """As much of a streaming query as is looked at."""

    recentProgress: list[dict[str, Any]] = field(default_factory=list)  # noqa: N815 - Spark's name
    status: dict[str, Any] = field(default_factory=lambda: {"isTriggerActive": True})
    isActive: bool = True  # noqa: N815 - Spark's name
    runId: str = "one"  # noqa: N815 - Spark's name

    def progress(self, number: int, rows: int, *metrics: dict[str, str]) -> None:
        """A micro-batch has ended; what its sources tell."""
        self.recentProgress.append(
            {
                "batchId": number,
                "numInputRows": rows,
                "processedRowsPerSecond": 5.0,
                "timestamp": f"t{number}",
                "sources": [{"metrics": one} for one in metrics],
            }
        )


def test_figures_of_a_stream() -> None:
    """Each micro-batch counts once, however often it is looked at."""
    query, watch = Query(), Watch(timeout_ms=None, clock=Clock())
    query.progress(4, 10)
    watch.looked([query])
    query.progress(5, 7)
    query.progress(5, 0)  # nothing came: Spark repeats the number
    found = watch.looked([query])
    assert (found.epochs, found.rows, found.newest) == (2, 17, "t5")
    assert Figures.of(found.plain()) == found
    assert watch.rows_of([query]) == 17
    with pytest.raises(StateCorruptError):
        Figures.of({"rows": 1, "more": 2})


def test_how_far_a_stream_is_behind() -> None:
    """As its sources said last: those of Kafka do, and others do not."""
    query, watch = Query(), Watch(timeout_ms=None, clock=Clock())
    query.progress(0, 1, {})
    assert watch.looked([query]).behind is None
    query.progress(1, 1, {"maxOffsetsBehindLatest": "7"}, {"maxOffsetsBehindLatest": "3"}, {})
    assert watch.looked([query]).behind == 10
    query.progress(1, 0, {"maxOffsetsBehindLatest": "0"})
    assert watch.looked([query]).behind == 0


def test_a_micro_batch_has_its_time() -> None:
    """Counted from when it was seen at work; one that ends in time, or none at all, is no matter."""
    clock, query = Clock(), Query()
    watch = Watch(timeout_ms=1_000, clock=clock)
    for number in range(5):
        watch.looked([query])
        clock.ms += 900
        query.progress(number, 1)
    query.status["isTriggerActive"] = False
    clock.ms += 10_000
    watch.looked([query])
    query.status["isTriggerActive"] = True
    watch.looked([query])
    clock.ms += 1_001
    with pytest.raises(JobError, match=r"micro-batch 5 takes longer than checkpoint\.timeout") as raised:
        watch.looked([query])
    assert not raised.value.is_permanent
    Watch(timeout_ms=None, clock=clock).looked([query])
