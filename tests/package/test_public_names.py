"""Public names are imported when somebody asks for them, and are what type checkers take them for."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

import filesink
from filesink.packages import HOMES


def _typed() -> dict[str, str]:
    """The imports that only type checkers read: name to module."""
    body = ast.parse(Path(filesink.__file__).read_text()).body
    (typing_only,) = (node for node in body if isinstance(node, ast.If))
    return {
        alias.asname or alias.name: node.module or ""
        for node in typing_only.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_both_lists_are_the_same() -> None:
    """``open`` is public, and hides Python's own from nobody who imports everything."""
    assert _typed() == HOMES
    assert {*filesink.__all__, "open"} == HOMES.keys()


def test_every_name_is_what_its_module_has() -> None:
    """At the first call and at the second."""
    for name, home in HOMES.items():
        assert getattr(filesink, name) is getattr(import_module(home), name)
        assert getattr(filesink, name) is vars(filesink)[name]
    assert HOMES.keys() <= set(dir(filesink))


def test_no_room_has_the_name_of_something_public() -> None:
    """Importing the room would put it in its place."""
    assert not HOMES.keys() & {module.name for module in iter_modules(filesink.__path__)}


def test_a_name_that_is_none() -> None:
    """As of any module."""
    with pytest.raises(AttributeError, match="module 'filesink' has no attribute 'FileSnik'"):
        _ = filesink.FileSnik


def test_rooms_are_there_without_an_import_of_their_own() -> None:
    """``filesink.errors.DataError``, as Spark's texts name it."""
    program = "import filesink; print(filesink.errors is not None, hasattr(filesink, 'x'))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.split() == ["True", "False"]


def test_what_a_worker_imports() -> None:
    """What a task needs brings neither exports nor operations nor other sinks along."""
    program = (
        "import sys, filesink.spark.input.job, filesink.file_sink.tiers\n"
        "print(*sorted({name.split('.')[1] for name in sys.modules if name.startswith('filesink.')}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    rooms = set(done.stdout.split())
    assert "commit" in rooms
    assert not rooms & {"exports", "operations", "sinks", "data_source", "cli", "jobs", "source", "sink"}
