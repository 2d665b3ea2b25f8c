"""Rows before their epoch is complete: twice only if an attempt, or a client, begins anew."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from filesink.sinks.collect.marks import Run
from tests.fakes import micro_batch
from tests.servers import S3Server
from tests.sinks.collect.site import Site, ids, rows


@pytest.fixture
def early(tmp_path: Path) -> Site:
    """A path whose sink and clients take rows early, and whose query runs."""
    site = Site(tmp_path / "collected", options={"delivery": "at_least_once"})
    site.store().prepare()
    site.marks().begin("run")
    return site


def run(site: Site, batch: int, *partitions: Iterator[pa.RecordBatch]) -> None:
    """A micro-batch whose tasks pull these."""
    site.loop().run(micro_batch(batch), replace(site.job([[rows(0)]]), partitions=partitions))


def left(site: Site) -> list[str]:
    """Files of early rows, without the names of what has ended."""
    there = (site.path / "_filesink/_collect/early").glob("*.arrow")
    return sorted(path.name for path in there if ".part-" not in path.name)


def in_turn(*steps: Sequence[int] | Callable[[], Any]) -> Iterator[pa.RecordBatch]:
    """A partition: batches with ids, and what happens when the one before is written."""
    for step in steps:
        if callable(step):
            step()
        else:
            yield rows(*step)


def test_rows_come_while_their_epoch_runs(early: Site) -> None:
    """Of each task as soon as it has written them; when the epoch is complete none of them comes again."""
    results = early.new()
    seen: list[list[int]] = []

    def look() -> None:
        seen.append(ids(results.batches()))

    run(early, 0, in_turn([1, 2], look, [3], look), in_turn([4], look))
    assert seen == [[1, 2], [3], [4]]
    assert ids(results.batches()) == []
    run(early, 1, in_turn([5]))
    assert ids(results.batches()) == [5]
    assert left(early) == []


def test_so_they_do_in_an_object_store(moto_server: S3Server) -> None:
    """Where what a task writes is not seen before it is complete."""
    site = Site(
        f"s3://{moto_server.new_bucket()}/early",
        options={"storage_options": moto_server.options, "delivery": "at_least_once"},
    )
    site.store().prepare()
    site.marks().begin("run")
    results = site.new()
    seen: list[list[int]] = []
    run(site, 0, in_turn([1, 2], lambda: seen.append(ids(results.batches())), [3]))
    assert seen == [[1, 2]]
    assert ids(results.batches()) == [3]


def test_who_does_not_ask_for_it_gets_each_row_once(early: Site) -> None:
    """From the same sink: other clients know nothing of rows that are early."""
    other = Site(early.path)
    seen: list[list[int]] = []
    run(early, 0, in_turn([1, 2], lambda: seen.append(ids(other.new())), [3]))
    assert seen == [[]]
    assert ids(other.new()) == [1, 2, 3]


def test_the_rest_comes_with_its_epoch(early: Site) -> None:
    """Though the client has stopped in the middle of a batch, among several tasks."""
    results = early.new()
    seen: list[int] = []
    run(early, 0, in_turn([1, 2, 3], lambda: seen.append(next(results)["id"]), [4]), in_turn([5, 6]))
    assert seen == [1]
    assert sorted(ids(results.batches())) == [2, 3, 4, 5, 6]
    assert results.position == early_position(early)


def early_position(site: Site) -> Any:
    """Where a client is that has taken everything that is complete."""
    client = Site(site.path).new()
    ids(client)
    return client.position


def test_a_position_is_one_of_complete_epochs(early: Site) -> None:
    """Whoever goes on from it gets early rows again, and none is lost."""
    early.stream(0, [1])
    results = early.new()
    assert ids(results.batches()) == [1]
    before = results.position
    seen: list[Any] = []

    def look() -> None:
        seen.extend([ids(results.batches()), results.position])
        results.acknowledge()

    run(early, 1, in_turn([2], look, [3]))
    assert seen == [[2], before]
    assert ids(early.new(before)) == [2, 3]


def test_an_attempt_that_fails_has_its_rows_come_again(early: Site) -> None:
    """It takes back what nobody has taken yet; the attempt after it has the rows anew."""
    results = early.new()
    seen: list[int] = []

    def fail() -> None:
        raise RuntimeError("of the source")

    with pytest.raises(RuntimeError):
        run(early, 0, in_turn([1, 2], lambda: seen.extend(ids(results.batches())), [3], fail))
    assert left(early) == []
    run(early, 0, in_turn([1, 2], [3]))
    assert seen == [1, 2]
    assert ids(results.batches()) == [1, 2, 3]


def test_what_a_dead_attempt_has_left_goes_with_the_epoch(early: Site, tmp_path: Path) -> None:
    """Until then a new client may get it; of a query that is over nobody does."""
    directory, kept = early.path / "_filesink/_collect/early", tmp_path / "kept"

    def die() -> None:
        shutil.copytree(directory, kept)
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        run(early, 0, in_turn([1, 2], die))
    shutil.copytree(kept, directory, dirs_exist_ok=True)
    assert ids(early.new()) == [1, 2]
    early.marks().end(0, Run.ENDED, "run")
    assert ids(early.new()) == []
    early.marks().begin("again")
    run(early, 0, in_turn([1, 2]))
    assert left(early) == []
    assert ids(early.new()) == [1, 2]


def test_only_streams_have_early_rows(early: Site) -> None:
    """A batch write has no place of its own before it is decided."""
    early.batch([1, 2])
    Site(early.path).stream(0, [3])
    assert not (early.path / "_filesink/_collect/early").exists()
    assert ids(early.new()) == [1, 2, 3]


def test_ends_are_told_for_some_epochs_only(early: Site) -> None:
    """So that the directory stays small."""
    for batch in range(110):
        early.stream(batch, [batch])
    assert len(list((early.path / "_filesink/_collect/early").iterdir())) == 100


@pytest.mark.parametrize("seed", range(20))
def test_no_row_is_lost_and_none_doubled_without_a_failure(early: Site, seed: int) -> None:
    """Whenever the client looks, by rows or by batches, and however much it takes."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    results, seen, number = early.new(), [], 0

    def look() -> None:
        batches = results.batches()
        for _ in range(chance.randrange(1, 4)):
            batch = next(batches, None)
            seen.extend([] if batch is None else ids([batch]))
        for _ in range(chance.randrange(5)):
            row = next(results, None)
            seen.extend([] if row is None else [row["id"]])

    for batch in range(4):
        tasks = []
        for _ in range(chance.randrange(1, 4)):
            steps: list[Any] = []
            for _ in range(chance.randrange(4)):
                size = chance.randrange(1, 5)
                steps.append(range(number, number + size))
                number += size
                steps.extend([look] * chance.randrange(2))
            tasks.append(in_turn(*steps))
        run(early, batch, *tasks)
        if chance.random() < 0.5:
            look()
    seen.extend(ids(results.batches()))
    assert sorted(seen) == [*range(number)]
