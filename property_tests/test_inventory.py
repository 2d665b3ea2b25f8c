"""Histories of an inventory by itself, and the laws of what its segments hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filesink.inventory.rows.files import live, merged, table_of, tombstones
from filesink.inventory.rows.merging import merge, without_past, without_past_files
from property_tests.inventory.history import run_seed
from property_tests.regressions.seeds import INVENTORY_SEEDS

_CHUNK = 500

versions = st.integers(1, 9)
paths = st.sampled_from(["a", "b", "c/d", "é", "z"])
#: Path, version added or None, version removed or None; never neither.
rows = st.tuples(paths, st.none() | versions, st.none() | versions).filter(
    lambda row: row[1:] != (None, None)
)
pieces = st.lists(st.lists(rows, max_size=6), max_size=4)


@pytest.mark.slow
def test_random_histories_keep_every_promise() -> None:
    """Drivers of several chains, twins, folds, readers and a store that fails, is late, or kills."""
    found = {seed: violation for seed in range(60) if (violation := run_seed(seed))}
    assert not found


@pytest.mark.parametrize("seed", INVENTORY_SEEDS)
def test_a_seed_that_found_something_stays_quiet(seed: int) -> None:
    """What was found once and fixed does not come back."""
    assert run_seed(seed) is None


@pytest.mark.nightly
@pytest.mark.parametrize("chunk", range(10))
def test_five_thousand_random_histories_keep_every_promise(chunk: int) -> None:
    """In pieces, so that a violation is told soon."""
    seeds = range(chunk * _CHUNK, (chunk + 1) * _CHUNK)
    found = {seed: violation for seed in seeds if (violation := run_seed(seed))}
    assert not found


def test_a_seed_is_the_whole_history() -> None:
    """The same integer gives the same calls, one by one."""
    first: list[str] = []
    second: list[str] = []
    run_seed(3, first.append)
    run_seed(3, second.append)
    assert first == second
    assert len(first) > 50


def table(piece: list[tuple[str, int | None, int | None]]) -> pa.Table:
    """Rows as a segment has them: sorted, one for each path."""
    files = [row for row in piece if row[1] is not None]
    stones = [(path, removed) for path, added, removed in piece if added is None and removed is not None]
    return merged(
        [
            table_of(
                path=[path for path, _, _ in files],
                added=[added for _, added, _ in files],
                removed=[removed for _, _, removed in files],
            ),
            tombstones(stones),
        ]
    )


def told(rows_: Any) -> dict[str, tuple[int | None, int | None]]:
    """Added and removed by path."""
    found = rows_.to_pylist()
    assert [row["path"].encode() for row in found] == sorted({row["path"].encode() for row in found})
    return {row["path"]: (row["added"], row["removed"]) for row in found}


def model(given_: list[list[tuple[str, int | None, int | None]]]) -> dict[str, tuple[int | None, int | None]]:
    """The earliest add and the earliest removal of each path, straight from the rule."""
    flat = [row for piece in given_ for row in piece]
    return {
        path: (
            min((added for one, added, _ in flat if one == path and added is not None), default=None),
            min((removed for one, _, removed in flat if one == path and removed is not None), default=None),
        )
        for path in {row[0] for row in flat}
    }


def in_groups(piece: pa.Table, size: int) -> Iterator[pa.Table]:
    """The row groups of a segment."""
    return (piece.slice(start, size) for start in range(0, piece.num_rows, size))


@given(pieces, st.integers(1, 3))
def test_merging_is_the_earliest_of_each(given_: list[list[Any]], size: int) -> None:
    """Whatever the pieces, their order and the size of their row groups."""
    found = list(merge([in_groups(table(piece), size) for piece in given_]))
    assert told(pa.concat_tables(found) if found else table([])) == model(given_)


@given(pieces, versions)
def test_what_is_live_is_what_was_added_and_not_removed(given_: list[list[Any]], version: int) -> None:
    """At that version, in whatever order the two have come."""
    found = list(merge([iter([table(piece)]) for piece in given_]))
    expected = {
        path
        for path, (added, removed) in model(given_).items()
        if added is not None and added <= version and (removed is None or removed > version)
    }
    assert {path for piece in found for path in live(piece, version)["path"].to_pylist()} == expected


def one_each(piece: list[Any]) -> list[Any]:
    """No path is a file in two segments: it is added by one epoch, and an epoch has one version."""
    return list({row[0]: row for row in piece}.values())


@given(st.lists(rows, max_size=8), st.lists(rows, max_size=8), versions, st.integers(0, 3))
def test_forgetting_changes_no_answer_that_may_be_asked_for(
    old: list[Any], new: list[Any], horizon: int, later: int
) -> None:
    """Of versions from the horizon on: what was merged says the same, with what stays beside it."""
    old, new = one_each(old), one_each(new)
    added = {path for path, version, _ in old if version is not None}
    new = [(path, None if path in added else version, removed) for path, version, removed in new]
    new = [row for row in new if row[1:] != (None, None)]
    before, beside = table(old), table(new)
    expected = paths_at([before, beside], horizon + later)
    oldest = without_past([before], horizon, lambda: [beside])
    assert paths_at([*oldest, beside], horizon + later) == expected
    assert paths_at([before, *without_past_files([beside], horizon)], horizon + later) == expected


def paths_at(pieces_: list[pa.Table], version: int) -> set[str]:
    """What is live."""
    found = merge([iter([piece]) for piece in pieces_])
    return {str(path) for piece in found for path in live(piece, version)["path"].to_pylist()}
