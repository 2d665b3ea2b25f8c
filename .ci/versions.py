"""A tenth of the tests on each PySpark and Python that filesink is for, against the wheel.

    make test-versions
    make test-versions VERSIONS="--spark 4.1 --python 3.13 --jobs 0"

One environment at a time, below ``build/versions``, and none is kept. The newest release of each minor
version of PySpark is taken. ``build/versions/versions.md`` has a table, and each test whose outcome is not
that of the newest Spark with the first Python.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET  # of a report that our own pytest has written
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "build" / "versions"
SPARK = ("4.1", "4.2", "4.3")
PYTHON = ("3.11", "3.13")
#: What is copied away from the sources, so that only the wheel can be imported.
NEEDED = (
    "pyproject.toml",
    "conftest.py",
    "README.md",
    "CHANGELOG.md",
    "docs",
    "tests",
    "property_tests",
    "examples",
)
#: About a tenth of the tests: whatever touches Spark's private things, and each room once.
TESTS = (
    "tests/api",
    "tests/buckets/test_time_buckets.py",
    "tests/commit/test_epoch.py",
    "tests/commit/test_replay.py",
    "tests/commit/test_task.py",
    "tests/formats/bulk/test_parquet.py",
    "tests/ledger/test_identity.py",
    "tests/ledger/test_record.py",
    "tests/metastore/test_spark_catalog.py",
    "tests/package/test_front_door.py",
    "tests/package/test_packages.py",
    "tests/spark/batches/test_batch.py",
    "tests/spark/batches/test_buckets.py",
    "tests/spark/batches/test_save_modes.py",
    "tests/spark/connect",
    "tests/spark/data_source",
    "tests/spark/engine",
    "tests/spark/file_sink/test_compaction.py",
    "tests/spark/file_sink/test_evolving_parts.py",
    "tests/spark/file_sink/test_golden_states.py",
    "tests/spark/interchange/test_interchange.py",
    "tests/spark/interchange/test_schema.py",
    "tests/spark/reading",
    "tests/spark/sinks/test_collect_sink.py",
    "tests/spark/sinks/test_sink_doors.py",
    "tests/spark/sinks/test_user_sink.py",
    "tests/spark/stores/test_s3.py",
    "tests/spark/streams",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One environment, the outcome of each test in it (passed, skipped, failed), and why it skipped."""

    spark: str
    python: str
    outcomes: dict[str, str]
    reasons: list[str]

    def count(self, outcome: str) -> int:
        """How many tests had it."""
        return list(self.outcomes.values()).count(outcome)


def main() -> int:
    """Run all environments that can be had; the exit status is 0 if no test failed in any."""
    arguments = _arguments()
    shutil.rmtree(OUTPUT, ignore_errors=True)
    OUTPUT.mkdir(parents=True)
    wheel = _wheel()
    _copy_tests()
    pythons = {version: found for version in arguments.python if (found := _python(version))}
    for version in sorted(set(arguments.python) - set(pythons)):
        print(f"No Python {version} that runs is on PATH or below pyenv's versions: left out.", flush=True)
    runs = [
        _run(spark, python, wheel, arguments.jobs) for spark in arguments.spark for python in pythons.values()
    ]
    told = _table(runs)
    (OUTPUT / "versions.md").write_text(told)
    print(told)
    return 1 if not runs or any(run.count("failed") or not run.outcomes for run in runs) else 0


def _wheel() -> Path:
    directory = OUTPUT / "wheel"
    build = (
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        str(directory),
        str(ROOT),
    )
    _call(sys.executable, "-m", "pip", *build)
    return next(directory.glob("*.whl"))


def _copy_tests() -> None:
    for name in NEEDED:
        source, target = ROOT / name, OUTPUT / "run" / name
        target.parent.mkdir(exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)


def _python(version: str) -> str | None:
    """A Python of this minor version that runs; a shim of a version manager may be on PATH and not run."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    places = [shutil.which(f"python{version}"), *pyenv.glob(f"{version}.*/bin/python{version}")]
    for place in filter(None, places):
        if subprocess.run([place, "-c", ""], capture_output=True, check=False).returncode == 0:  # noqa: S603 - a Python
            return str(place)
    return None


def _run(spark: str, python: str, wheel: Path, jobs: int) -> Run:
    environment, report = OUTPUT / "venv", OUTPUT / "report.xml"
    report.unlink(missing_ok=True)
    shutil.rmtree(environment, ignore_errors=True)
    _call(python, "-m", "venv", str(environment))
    own = str(environment / "bin" / "python")
    _call(own, "-m", "pip", "install", "--quiet", f"{wheel}[dev]", f"pyspark[connect,pipelines]=={spark}.*")
    began = time.monotonic()
    command = (
        own,
        "-m",
        "pytest",
        "-q",
        "-n",
        str(jobs),
        "--no-loadscope-reorder",
        f"--junit-xml={report}",
        *TESTS,
    )
    subprocess.run(command, cwd=OUTPUT / "run", env=_environment(own), check=False)  # noqa: S603 - our tests
    versions = "import platform, pyspark; print(pyspark.__version__, platform.python_version())"
    found = subprocess.run([own, "-c", versions], capture_output=True, text=True, check=True)  # noqa: S603 - a Python
    told = found.stdout.split()
    shutil.rmtree(environment)
    cases = [*ET.parse(report).iter("testcase")] if report.exists() else []  # noqa: S314 - our own
    outcomes = {f"{case.get('classname')}::{case.get('name')}": _outcome(case) for case in cases}
    print(f"PySpark {told[0]}, Python {told[1]}: {time.monotonic() - began:.0f} seconds", flush=True)
    return Run(spark=told[0], python=told[1], outcomes=outcomes, reasons=_reasons(cases))


def _reasons(cases: list[ET.Element]) -> list[str]:
    """What Spark lacks, mostly; each once, and with the number of tests."""
    found = Counter(skip.get("message", "") for case in cases if (skip := case.find("skipped")) is not None)
    return [f"{reason} ({number})" for reason, number in sorted(found.items())]


def _outcome(case: ET.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "passed" if case.find("skipped") is None else "skipped"


def _table(runs: list[Run]) -> str:
    lines = ["| PySpark | Python | passed | skipped | failed | why skipped |", "|---|---|---|---|---|---|"]
    for run in runs:
        counts = " | ".join(f"{run.count(outcome):,}" for outcome in ("passed", "skipped", "failed"))
        lines.append(f"| {run.spark} | {run.python} | {counts} | {'; '.join(run.reasons)} |")
    return "\n".join([*lines, "", *_differences(runs)])


def _differences(runs: list[Run]) -> list[str]:
    """A line for each test whose outcome is another than in the newest Spark with the oldest Python."""
    newest = [run for run in runs if run.spark == runs[-1].spark][:1]
    return [
        f"* {test}: {outcome} with PySpark {run.spark} and Python {run.python}"
        for usual in newest
        for run in runs
        for test, outcome in sorted(run.outcomes.items())
        if outcome != usual.outcomes.get(test) or outcome == "failed"
    ]


def _environment(python: str) -> dict[str, str]:
    left_out = {"PYTHONPATH", "SPARK_HOME"}
    return {name: value for name, value in os.environ.items() if name not in left_out} | {
        "PYSPARK_PYTHON": python
    }


def _call(*command: str) -> None:
    """Run ``command`` away from the sources' ``PYTHONPATH``; end here if it fails."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 - pip
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--spark", nargs="+", default=SPARK, help="minor versions of PySpark")
    parser.add_argument("--python", nargs="+", default=PYTHON, help="minor versions of Python")
    parser.add_argument("--jobs", type=int, default=2, help="processes of tests; 0 runs one after the other")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
