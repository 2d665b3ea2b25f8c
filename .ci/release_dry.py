"""Everything of a release but its publication: what is built is looked at, installed and used.

    make release-dry

Leaves ``build/release``: ``dist/`` with wheel and sdist, ``sbom.json`` and ``licences.json`` of what an
installation brings. Each step prints one line; the first that fails ends it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "build" / "release"
DIST = OUTPUT / "dist"
HERE = ROOT / ".ci"
#: The first parts of the paths in the sdist; all else would be junk, or is in the repository only.
IN_SDIST = {
    *("CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "SECURITY.md", "pyproject.toml", ".gitignore"),
    *("compaction", "filesink", "formats"),
}
#: What may be installed beside us. Others are looked at by a person first.
PERMISSIVE = re.compile(
    r"apache|bsd|mit\b|mit license|isc|psf|python software foundation|zpl|unlicense", re.IGNORECASE
)


def main() -> int:
    """Run all steps; the exit status is 0 if a release could go out."""
    shutil.rmtree(OUTPUT, ignore_errors=True)
    DIST.mkdir(parents=True)
    run(sys.executable, "-m", "build", "--outdir", str(DIST), str(ROOT))
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    run(sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sdist))
    look_into(sdist)
    for number, archive in enumerate((wheel, sdist)):
        python = installed(archive, OUTPUT / f"venv-{number}")
        run(python, str(HERE / "smoke.py"), cwd=OUTPUT)
        if archive == wheel:
            types(python)
            list_packages(python)
    print(f"{wheel.name} and {sdist.name} could go out.")
    return 0


def look_into(sdist: Path) -> None:
    """Refuse an sdist with anything but sources and the pages of its root."""
    with tarfile.open(sdist) as opened:
        paths = [Path(*Path(name).parts[1:]) for name in opened.getnames()]
    junk = sorted({str(path) for path in paths if path.parts and path.parts[0] not in IN_SDIST})
    caches = [str(path) for path in paths if "__pycache__" in path.parts or path.suffix == ".pyc"]
    if junk or caches:
        sys.exit(f"{sdist.name} holds what does not belong there: {', '.join((junk + caches)[:10])}")
    print(f"{sdist.name}: {len(paths)} paths, all of them belong there")


def installed(archive: Path, directory: Path) -> str:
    """The Python of a new environment that has nothing but ``archive`` and what it asks for."""
    venv.create(directory, with_pip=True)
    python = str(directory / "bin" / "python")
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(archive))
    run(python, "-m", "pip", "check", "--disable-pip-version-check")
    return python


def types(python: str) -> None:
    """Check the API as a user writes it against the types in the wheel, by both checkers."""
    project = OUTPUT / "consumer"
    project.mkdir()
    shutil.copy(ROOT / "tests" / "typing" / "api.py", project / "consumer.py")
    # Arrow brings no types of its own; a user without its stubs tells mypy so.
    (project / "mypy.ini").write_text(
        "[mypy]\nstrict = True\n[mypy-pyarrow.*]\nignore_missing_imports = True\n"
    )
    (project / "pyrightconfig.json").write_text(
        '{"include": ["consumer.py"], "typeCheckingMode": "standard"}\n'
    )
    run(sys.executable, "-m", "mypy", "--python-executable", python, "consumer.py", cwd=project)
    run(sys.executable, "-m", "pyright", "--pythonpath", python, cwd=project)


def list_packages(python: str) -> None:
    """Write the SBOM and the licences of what is installed; refuse a licence that is not permissive."""
    run(
        sys.executable,
        "-m",
        "cyclonedx_py",
        "environment",
        python,
        "--output-file",
        str(OUTPUT / "sbom.json"),
    )
    licences = OUTPUT / "licences.json"
    form = ("--format", "json", "--from", "mixed", "--output-file", str(licences))
    run(sys.executable, "-m", "piplicenses", "--python", python, *form)
    found = {each["Name"]: each["License"] for each in json.loads(licences.read_text())}
    other = {name: licence for name, licence in found.items() if not PERMISSIVE.search(licence)}
    if other:
        sys.exit(f"Licences that somebody has to look at: {other}")
    print(f"{len(found)} packages, all with permissive licences")


def run(*command: str, cwd: Path = ROOT) -> None:
    """Run ``command`` away from the sources' ``PYTHONPATH``; end here if it fails."""
    environment = {
        name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYSPARK_PYTHON"}
    }
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 - tools of ours
    shown = " ".join(part.replace(f"{ROOT}/", "") for part in command).removeprefix(sys.executable)
    print(f"{'ok    ' if done.returncode == 0 else 'FAILED'} {shown}", flush=True)
    if done.returncode:
        sys.exit(f"{done.stdout}\n{done.stderr}")


if __name__ == "__main__":
    sys.exit(main())
