"""Ways to bring filesink to workers that have it not.

    an archive of filesink and what it needs, for ``spark.archives``: as ``pip install --target`` makes it
    a zip file of filesink alone, for ``addArtifacts`` or ``--py-files``

Both are made of what is installed here, so that the demo needs no network.
"""

from __future__ import annotations

import sys
import tarfile
import venv
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import filesink

#: What a task of filesink needs besides PySpark, which comes with the worker; from ``boto3`` on for S3 alone.
NEEDED = (
    *("pyarrow", "pandas", "numpy", "fsspec", "python-dateutil", "pytz", "tzdata", "six"),
    *("boto3", "botocore", "s3transfer", "jmespath", "urllib3"),
)
_HOME = Path(str(filesink.__file__)).parents[1]
_OURS = ("filesink", "formats", "compaction")


def empty_python(directory: Path) -> Path:
    """The Python of a virtual environment without any package; PySpark comes with Spark."""
    _environment(directory)
    return directory / "bin" / "python"


def python_without_filesink(directory: Path) -> Path:
    """The same with all that filesink needs, and not filesink."""
    site = _environment(directory)
    for package in _packages():
        (site / package.name).symlink_to(package)
    return directory / "bin" / "python"


def archive(directory: Path) -> Path:
    """All of it, for a module path. Spark refuses a ``.tar`` with a link that leads out of it."""
    packed = directory / "site.tar"
    with tarfile.open(packed, "w") as opened:
        for package in (*_packages(), *(_HOME / name for name in _OURS)):
            opened.add(package, package.name, filter=_lean)
    return packed


def zip_file(directory: Path) -> Path:
    """The three packages of filesink; a wheel holds the same, and Spark adds no ``.whl``."""
    packed = directory / "filesink.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as opened:
        for name in _OURS:
            for file in sorted((_HOME / name).rglob("*")):
                if file.suffix in {".py", ".typed"}:
                    opened.write(file, file.relative_to(_HOME))
    return packed


def _environment(directory: Path) -> Path:
    """Make an empty one; its directory of packages."""
    venv.create(directory, symlinks=True, with_pip=False)
    return directory / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def _packages() -> list[Path]:
    found = []
    for name in NEEDED:
        files = distribution(name).files or ()
        tops = {file.parts[0] for file in files} - {"..", "__pycache__"}
        found += [Path(str(distribution(name).locate_file(top))) for top in sorted(tops)]
    return found


def _lean(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Without tests and caches, which are a quarter of all."""
    left_out = {"tests", "__pycache__", "include"}
    return None if left_out & set(Path(member.name).parts) else member
