"""A real HDFS in one JVM: Hadoop's mini cluster, fetched by Maven and run beside PySpark's own jars."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fetched import fetched

_PROGRAM = Path(__file__).parent / "programs" / "MiniHdfs.java"
_FETCH = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"


@dataclass(frozen=True, slots=True)
class MiniHdfs:
    """Where a cluster that runs is found, on this machine."""

    rpc_port: int
    web_port: int


@contextmanager
def mini_hdfs(directory: Path) -> Iterator[MiniHdfs]:
    """A cluster with its data in ``directory``; skips the test where it cannot be had."""
    for tool in ("mvn", "java", "javac"):
        if shutil.which(tool) is None:
            pytest.skip(f"a mini cluster needs {tool}, which is not installed")
    names = ("hadoop-client-api-*", "hadoop-client-runtime-*", "slf4j-api-*", "jcl-over-slf4j-*")
    jars = [next(_spark_jars().glob(name)) for name in names]
    version = jars[0].stem.rpartition("-")[2]
    class_path = ":".join(str(jar) for jar in [_fetched(version), *jars])
    with (directory / "log").open("w") as log:
        process = subprocess.Popen(  # noqa: S603 - a fixed program
            ["java", "-Xmx512m", "-cp", class_path, str(_PROGRAM), str(directory / "data")],  # noqa: S607
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        ports = next((line for line in process.stdout if line.startswith("ports ")), None)
        if ports is None:
            pytest.fail(f"the mini cluster did not start: {(directory / 'log').read_text()[-2000:]}")
        _, rpc, web = ports.split()
        yield MiniHdfs(int(rpc), int(web))
    finally:
        process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(120)
        process.kill()
        process.wait()
        process.stdout.close()


def _spark_jars() -> Path:
    import pyspark  # takes a moment, and few tests come here

    return Path(pyspark.__file__).parent / "jars"


def _fetched(version: str) -> Path:
    """The mini cluster's jar, of the same version as PySpark's Hadoop."""
    name = f"hadoop-client-minicluster-{version}"
    artifact = f"org.apache.hadoop:hadoop-client-minicluster:{version}"
    command = ["mvn", "-q", "-B", _FETCH, f"-Dartifact={artifact}"]
    return fetched(name, lambda home: [*command, f"-DoutputDirectory={home}"]) / f"{name}.jar"
