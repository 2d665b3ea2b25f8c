"""A real Hive metastore, started from the jars that PySpark ships, with its database in memory."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

_STARTS_WITHIN = 300  # seconds, on a busy machine
_SITE = """<configuration>
<property><name>hive.async.log.enabled</name><value>false</value></property>
<property><name>javax.jdo.option.ConnectionURL</name><value>jdbc:derby:memory:metastore;create=true</value></property>
<property><name>datanucleus.schema.autoCreateAll</name><value>true</value></property>
<property><name>hive.metastore.schema.verification</name><value>false</value></property>
<property><name>hive.metastore.warehouse.dir</name><value>{warehouse}</value></property>
</configuration>
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class HiveServer:
    """Where it listens, and the directory that is its warehouse."""

    port: int
    warehouse: Path

    @property
    def uri(self) -> str:
        """For ``HiveMetastore`` and for ``hive.metastore.uris``."""
        return f"thrift://127.0.0.1:{self.port}"


def why_not() -> str:
    """Why no server can be started here; ``""`` if one can."""
    return "" if shutil.which(_java()) else "no Java on PATH and no JAVA_HOME"


@contextmanager
def hive_server(directory: Path, *, heap: str = "512m") -> Iterator[HiveServer]:
    """A server of one's own for as long as the block runs; its database is in ``heap``."""
    port = _free_port()
    server = HiveServer(port=port, warehouse=directory / "warehouse")
    server.warehouse.mkdir()
    (directory / "hive-site.xml").write_text(_SITE.format(warehouse=server.warehouse))
    jars = Path(pyspark.__file__).parent / "jars"
    command = [
        *(_java(), f"-Xmx{heap}", f"-Dderby.stream.error.file={directory}/derby.log"),
        *("-cp", f"{directory}{os.pathsep}{jars}/*"),
        *("org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(port)),
    ]
    with (directory / "metastore.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=directory)
        try:
            _await(process, port, directory / "metastore.log")
            yield server
        finally:
            process.kill()
            process.wait()


def _await(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _STARTS_WITHIN
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise RuntimeError(f"the metastore did not come up: {log.read_text()[-2000:]}")


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else "java"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
