"""``filesink`` is the one door for imports: what a program needs is there, of ``formats`` as well."""

from __future__ import annotations

import builtins
import subprocess
import sys

import pytest

import filesink
import formats
from filesink import errors


@pytest.mark.parametrize("name", filesink.__all__)
def test_every_public_name_can_be_imported(name: str) -> None:
    """``from filesink import <name>`` never fails, and says what it is."""
    assert getattr(filesink, name).__doc__


def test_public_names_are_sorted_and_there_once() -> None:
    """Classes, then functions."""
    assert filesink.__all__ == sorted(set(filesink.__all__), key=lambda name: (name[0].islower(), name))


def test_a_star_hides_nothing_of_pythons() -> None:
    """``from filesink import *`` leaves ``open`` what it was; ``filesink.open`` is there all the same."""
    assert not set(filesink.__all__) & set(dir(builtins))
    assert filesink.open.__doc__


@pytest.mark.parametrize("name", formats.__all__)
def test_everything_of_formats_is_there(name: str) -> None:
    """The very same thing, so that ``isinstance`` and ``except`` do not ask where it was imported from."""
    assert name in filesink.__all__
    assert getattr(filesink, name) is getattr(formats, name)


def test_every_error_is_there() -> None:
    """Whoever catches an error finds its class where the sink is."""
    kinds = {name for name, kind in vars(errors).items() if isinstance(kind, type)}
    assert kinds - set(filesink.__all__) == set()


@pytest.mark.parametrize(
    ("imported", "not_needed"),
    [("formats", ("filesink", "compaction", "pyspark")), ("filesink", ("compaction",))],
)
def test_a_package_needs_nothing_above_it(imported: str, not_needed: tuple[str, ...]) -> None:
    """Imported alone, first of all, with every name: nothing circular can come of the one door."""
    program = (
        f"import sys; from {imported} import *; print(*sorted(sys.modules.keys() & {set(not_needed)!r}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603 - our own
    assert done.stdout.strip() == ""
