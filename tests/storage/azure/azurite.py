"""Azurite, Microsoft's own emulator of Blob Storage, on a free port of this machine."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fetched import fetched
from tests.servers import running

#: The emulator's account, as its documentation publishes it.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_PACKAGE = "azurite@3"


@contextmanager
def azurite(directory: Path) -> Iterator[str]:
    """A running server; its connection string. Skips the test where it cannot be had."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("Azurite needs node and npm, which are not installed")
    program = fetched(_PACKAGE, _install) / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    command = ["node", str(program), "--blobHost", "127.0.0.1"]
    command += ["--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck", "--silent"]
    log = directory / "azurite.log"
    with running(lambda port: [*command, "--blobPort", str(port)], log, cwd=directory) as port:
        endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
        yield (
            f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={endpoint};"
        )


def _install(home: Path) -> list[str]:
    return ["npm", "install", "--no-save", "--no-audit", "--no-fund", "--prefix", str(home), _PACKAGE]
