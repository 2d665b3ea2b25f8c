"""A stranger's ``formats`` or ``compaction`` is told in one sentence, wherever it comes from.

Each test starts a Python of its own in a directory with a decoy, which comes first on its path.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import filesink

HOME = Path(str(filesink.__file__)).parents[1]
DECOYS = ["formats.py", "formats/__init__.py", "compaction.py", "compaction/__init__.py"]
TELL = """
try:
    import filesink
except ImportError as error:
    print(type(error).__name__, isinstance(error, ValueError), error)
else:
    print("imported")
"""


def run(directory: Path, *program: str, home: Path = HOME) -> str:
    """What a program prints that runs in ``directory``; its path ends with ``home``, where packages are."""
    environment = {**os.environ, "PYTHONPATH": str(home)}
    environment.pop("PYTHONSAFEPATH", None)
    command = [sys.executable, *program]
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=True)  # noqa: S603 - our own
    return done.stdout.strip()


def decoy(directory: Path, path: str) -> Path:
    """A file of somebody else's that says when it is run."""
    file = directory / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("print('the decoy was run')\n")
    return file


@pytest.mark.parametrize("path", DECOYS)
def test_a_decoy_is_named_and_not_run(tmp_path: Path, path: str) -> None:
    """The sentence has the file that was found and the one that is ours, and begins with the code."""
    file = decoy(tmp_path, path)
    said = run(tmp_path, "-c", TELL)
    name = Path(path).parts[0].removesuffix(".py")
    assert said.startswith(f"ShadowedError True [SHADOWED] 'import {name}' finds '{file}', not ")
    assert f"'{HOME / name / '__init__.py'}'" in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("module", ["filesink.errors", "filesink.storage.api", "compaction"])
def test_every_import_of_ours_says_it(tmp_path: Path, module: str) -> None:
    """Whichever module a program, or a task of Spark, begins with."""
    decoy(tmp_path, "formats.py")
    assert run(tmp_path, "-c", TELL.replace("filesink", module)).startswith("ShadowedError")


def test_a_program_that_is_called_like_a_package_runs_once(tmp_path: Path) -> None:
    """It is told to rename itself, instead of being imported by what it imports."""
    program = tmp_path / "formats.py"
    program.write_text(f"print('runs')\n{TELL}")
    assert [line.split()[0] for line in run(tmp_path, str(program)).splitlines()] == ["runs", "ShadowedError"]


@pytest.mark.parametrize(
    "first", ["import formats", "import sys, types; sys.modules['formats'] = types.ModuleType('formats')"]
)
def test_what_was_imported_before_counts(tmp_path: Path, first: str) -> None:
    """Python does not search for a module that it has, nor do we."""
    decoy(tmp_path, "formats.py")
    assert "ShadowedError" in run(tmp_path, "-c", f"{first}\n{TELL}")


def test_a_directory_of_data_is_no_package(tmp_path: Path) -> None:
    """Without ``__init__.py``, Python prefers ours, wherever it is on the path."""
    decoy(tmp_path, "formats/a.csv")
    decoy(tmp_path, "compaction/b.csv")
    assert run(tmp_path, "-c", TELL) == "imported"


def test_a_link_to_ours_is_ours(tmp_path: Path) -> None:
    """The path may name one directory in two ways."""
    (tmp_path / "link").symlink_to(HOME, target_is_directory=True)
    first = f"import sys; sys.path.insert(0, {str(tmp_path / 'link')!r}); import formats; del sys.path[0]"
    assert run(tmp_path, "-c", f"{first}\n{TELL}") == "imported"


def test_packages_in_a_zip_file(tmp_path: Path) -> None:
    """As ``--py-files`` brings them: a decoy is told; who left ``compaction`` out may have another."""
    archive = tmp_path / "packages.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        for file in (*HOME.glob("filesink/**/*.py"), *HOME.glob("formats/**/*.py")):
            opened.write(file, file.relative_to(HOME))
    decoy(tmp_path / "here", "compaction.py")
    assert run(tmp_path / "here", "-c", TELL, home=archive) == "imported"
    decoy(tmp_path / "here", "formats.py")
    said = run(tmp_path / "here", "-c", TELL, home=archive)
    assert f"not what filesink was installed with, '{archive / 'formats' / '__init__.py'}'" in said
