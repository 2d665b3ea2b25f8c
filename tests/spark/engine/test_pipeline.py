"""Spark's Declarative Pipelines with a sink, as ``examples/pipeline`` has it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from tests.spark import inputs, outside, wheel_site

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "pipeline"
ROWS = 10

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.timeout(1800)]  # a run takes half a minute


class Pipeline:
    """The example, with its files below ``directory``."""

    def __init__(self, directory: Path) -> None:
        self.output = directory / "output"
        self.base = self.output / "flights"
        self._project = directory / "project"
        shutil.copytree(EXAMPLE, self._project)
        spec = self._project / "spark-pipeline.yml"
        spec.write_text(spec.read_text().replace("/tmp/filesink-pipeline", str(self.output)))  # noqa: S108
        places = [*wheel_site.site(directory), str(ROOT)]
        spark = Path(pyspark.__file__).parent
        self._command = [str(spark / "bin" / "spark-pipelines"), "run"]
        self._environment = {
            **os.environ,
            "SPARK_HOME": str(spark),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(places),
            "PIPELINE_OUTPUT": str(self.output),
        }

    def add(self, number: int) -> None:
        """One more file, and so one more batch."""
        inputs.add_file(self.output / "source", number, rows=ROWS)

    def start(self, *options: str, **variables: str) -> subprocess.Popen[str]:
        """A run, in a process group of its own."""
        return subprocess.Popen(  # noqa: S603 - Spark's own program
            [*self._command, *options],
            cwd=self._project,
            env={**self._environment, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *options: str, **variables: str) -> str:
        """A run to its end; what it has said."""
        process = self.start(*options, **variables)
        try:
            said, _ = process.communicate(timeout=600)
        finally:
            kill(process)
        return said

    def expect(self, files: int) -> None:
        """Every row of so many files, once, and nothing hidden."""
        assert outside.parquet_ids(self.base) == list(range(ROWS * files))
        assert outside.hidden(self.base) == []


def kill(process: subprocess.Popen[str]) -> None:
    """End a run, with all that it has started, unless it has ended."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    """Two files to be written."""
    pytest.importorskip("grpc", reason="pipelines need pip install 'pyspark[pipelines]'")
    pipeline = Pipeline(tmp_path)
    for number in range(2):
        pipeline.add(number)
    return pipeline


def test_a_second_run_goes_on_and_a_full_refresh_is_no_accident(pipeline: Pipeline) -> None:
    """It is refused before a byte changes; with the user's word it takes the place of all that was there."""
    pipeline.run()
    pipeline.expect(2)
    pipeline.add(2)
    pipeline.run()
    pipeline.expect(3)
    before = outside.everything(pipeline.base)
    assert "[NEW_QUERY_OLD_DATA]" in pipeline.run("--full-refresh-all")
    assert outside.everything(pipeline.base) == before
    pipeline.run("--full-refresh-all", ON_NEW_QUERY="replace")
    pipeline.expect(3)
    assert not before.keys() & outside.visible(pipeline.base).keys()


def test_a_run_that_is_killed(pipeline: Pipeline) -> None:
    """Another one completes it: every row is there, once."""
    for number in range(2, 12):
        pipeline.add(number)
    process = pipeline.start()
    try:
        outside.eventually(lambda: outside.visible(pipeline.base) != {}, seconds=300)
    finally:
        kill(process)
    pipeline.run()
    pipeline.expect(12)
