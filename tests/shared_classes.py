"""Classes of Spark that are kept for an environment: JVMs that find them there start in half the time."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from tests.fetched import kept

_ARCHIVE = "classes.jsa"


@cache
def share_classes() -> None:
    """Let JVMs that are started from now on use them; without them each reads its jars again.

    A JVM with another class path finds that they are not for it, and says nothing.
    """
    try:
        home = kept(f"spark-classes-{_jvm()}", _command)
    except (OSError, subprocess.SubprocessError):
        return  # it takes longer, no more
    options = f"-XX:SharedArchiveFile={home / _ARCHIVE} -Xlog:cds=off -Xlog:cds+dynamic=off"
    os.environ["JDK_JAVA_OPTIONS"] = f"{os.environ.get('JDK_JAVA_OPTIONS', '')} {options}".strip()


def _command(home: Path) -> list[str]:
    return [sys.executable, "-m", "tests.spark.programs.class_data", str(home / _ARCHIVE)]


def _jvm() -> str:
    """What tells this JVM and this Spark from others."""
    import pyspark  # takes a moment, and few tests come here

    java = shutil.which("java", path=f"{os.environ.get('JAVA_HOME', '')}/bin:{os.environ['PATH']}") or "java"
    version = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr  # noqa: S603
    known = f"{pyspark.__version__} {os.path.realpath(java)} {version}"
    return hashlib.sha256(known.encode()).hexdigest()[:16]
