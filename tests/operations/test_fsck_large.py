"""``fsck`` on many files, damaged at random: on a disk, and on a real server of S3."""

from __future__ import annotations

from pathlib import Path

import pytest

from property_tests.random_damage import Bucket, Disk, filled, look, trial
from tests.operations.broken_paths import whole
from tests.operations.damage import DAMAGES
from tests.servers import S3Server

_KINDS = 45  # an object store has a few less than a disk


@pytest.mark.parametrize(
    ("files", "seed"),
    [(200, 0), *(pytest.param(10_000, seed, marks=pytest.mark.nightly) for seed in range(3))],
)
def test_damage_is_found_on_a_disk(tmp_path: Path, files: int, seed: int) -> None:
    """Each kind by itself and many at once, each with its own file; nothing else, and nothing before."""
    base = tmp_path / "base"
    filled(base, files)
    assert len(trial(Disk(base=base), seed)) > _KINDS


@pytest.mark.nightly
@pytest.mark.parametrize("files", [200, 10_000])
def test_damage_is_found_on_s3(tmp_path: Path, moto_server: S3Server, files: int) -> None:
    """The same, among so many objects."""
    base = tmp_path / "base"
    filled(base, files)
    assert len(trial(Bucket(base=base, server=moto_server), files)) > _KINDS


@pytest.mark.parametrize("code", ["FILE_LOST", "GARBAGE", "SEGMENT_DAMAGED"])
def test_a_bucket_is_looked_at_as_a_disk(tmp_path: Path, moto_server: S3Server, code: str) -> None:
    """Nothing is found before, and what was damaged is found after."""
    base = tmp_path / "base"
    whole(base)
    place = Bucket(base=base, server=moto_server)
    assert look(place, "deep").findings == ()
    path = next(one for one in DAMAGES if one.code == code).make(base)
    assert [(one.code, one.path) for one in look(place, "deep").findings] == [
        (code, str(path.relative_to(base)))
    ]
