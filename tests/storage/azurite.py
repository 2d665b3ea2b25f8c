"""Azurite, Microsoft's own emulator of Blob Storage, on a free port of this machine."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

#: The emulator's account, as its documentation publishes it.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_PACKAGE = "azurite@3"


@contextmanager
def azurite(directory: Path) -> Iterator[str]:
    """A running server; its connection string. Skips the test where it cannot be had."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("Azurite needs node and npm, which are not installed")
    install = ["npm", "install", "--no-save", "--no-audit", "--no-fund", "--prefix", str(directory), _PACKAGE]
    done = subprocess.run(install, capture_output=True, text=True, timeout=280, check=False)  # noqa: S603
    if done.returncode:
        pytest.skip("Azurite cannot be installed with npm")
    port = _free_port()
    program = directory / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    command = ["node", str(program), "--blobPort", str(port), "--blobHost", "127.0.0.1"]
    command += ["--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck", "--silent"]
    process = subprocess.Popen(command, cwd=directory, stdout=subprocess.DEVNULL)  # noqa: S603
    try:
        _wait_for(port, process)
        endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
        yield (
            f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={endpoint};"
        )
    finally:
        process.terminate()
        process.wait(30)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        if process.poll() is not None:
            pytest.fail("Azurite ended at its start")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail("Azurite does not answer")
