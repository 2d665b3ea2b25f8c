"""The extras of the package: ``all`` is what it says, and docs/install.md names each that a user may want."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
IN_ALL = (
    "avro",
    "azure",
    "cli",
    "delta",
    "excel",
    "gcs",
    "glue",
    "hdfs",
    "hive",
    "http",
    "iceberg",
    "jobs",
    "kafka",
    "openlineage",
    "opentelemetry",
    "postgres",
    "prometheus",
    "s3",
    "snappy",
)
NOT_IN_ALL = ("hive-kerberos", "bench", "demo", "dev", "docs", "release")  # needs C headers; not for users


def bounds(*extras: str) -> dict[str, set[Version]]:
    """The lower bounds of every package that ``extras`` bring."""
    found: dict[str, set[Version]] = defaultdict(set)
    for requirement in (Requirement(text) for extra in extras for text in EXTRAS[extra]):
        (bound,) = requirement.specifier  # one, and no more: ``max`` below knows of no others
        assert bound.operator == ">="
        found[requirement.name].add(Version(bound.version))
    return found


def test_all_is_the_union_of_the_others() -> None:
    """The same packages, once each, and each in a version that all of the extras take."""
    assert bounds("all") == {name: {max(versions)} for name, versions in bounds(*IN_ALL).items()}
    assert len(EXTRAS["all"]) == len(bounds("all"))


def test_every_extra_is_in_all_or_has_a_reason() -> None:
    """Who adds one decides."""
    assert sorted(EXTRAS) == sorted(["all", *IN_ALL, *NOT_IN_ALL])


@pytest.mark.parametrize("extra", ["all", "hive-kerberos", *IN_ALL])
def test_the_page_on_installing_names_every_extra(extra: str) -> None:
    """In the table of what to install."""
    rows = [
        line for line in (ROOT / "docs" / "install.md").read_text().splitlines() if line.startswith("| `")
    ]
    assert any(f"`{extra}`" in row.split("|")[1] + row.split("|")[2] for row in rows)
