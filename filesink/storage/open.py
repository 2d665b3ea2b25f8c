"""Which store serves a base path. The one place that knows all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from os import PathLike
from typing import Any

from filesink.errors import ConfigError, DependencyError
from filesink.storage.api import Store
from filesink.storage.base_path import spelling
from filesink.storage.hdfs.namenode import Namenode, host_and_port
from filesink.storage.hdfs.native import NativeNamenode
from filesink.storage.hdfs.output import HdfsFiles
from filesink.storage.hdfs.store import HdfsStore
from filesink.storage.hdfs.webhdfs import WebNamenode
from filesink.storage.local.posix import PosixFs
from filesink.storage.local.store import LocalStore
from filesink.storage.memory import MemoryFiles, MemoryStore
from filesink.system import SystemClock, SystemIds, ThreadRunner

_WEB_PORT = 9870  # of a namenode's web interface, since Hadoop 3


def open_store(base_path: str | PathLike[str], storage_options: Mapping[str, Any]) -> Store:
    """The store of everything below ``base_path``. Called once in each process that needs it.

    Args:
        base_path: see ``check_base_path``. ``memory://name`` is accepted here, for tests and notebooks
            that run without Spark: it lives as long as this process, which alone sees it.
        storage_options: settings of the store's client; local paths take none.

    Raises:
        ConfigError: path or options cannot be used.
    """
    given: object = storage_options
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise ConfigError(
            f"storage options are a mapping of names to values, got {type(given).__name__}", code="BAD_VALUE"
        )
    path = spelling(base_path)
    scheme, _, rest = path.partition("://")
    return _OPENERS.get(scheme if rest else "file", _open_local)(path, storage_options)


def _open_local(path: str, options: Mapping[str, Any]) -> Store:
    _take_none(options, "local paths")
    return LocalStore(PosixFs(path), runner=ThreadRunner(), ids=SystemIds())


def _open_memory(path: str, options: Mapping[str, Any]) -> Store:
    _take_none(options, "memory:")
    return MemoryStore(_memory(path))


@cache  # what makes two stores of one process see the same files
def _memory(path: str) -> MemoryFiles:
    del path
    return MemoryFiles()


def _open_hdfs(path: str, options: Mapping[str, Any]) -> Store:
    host, base = _split(path)
    return _on(NativeNamenode(f"hdfs://{host}", options), base, path)


def _open_webhdfs(path: str, options: Mapping[str, Any]) -> Store:
    host, base = _split(path)
    name, port = host_and_port(f"webhdfs://{host}")
    return _on(WebNamenode(name, port or _WEB_PORT, options), base, path)


def _on(namenode: Namenode, base: str, path: str) -> Store:
    return HdfsStore(HdfsFiles(namenode, base, url=path), runner=ThreadRunner(), ids=SystemIds())


def _open_s3(path: str, options: Mapping[str, Any]) -> Store:
    try:
        from filesink.storage.s3 import client as s3_client
    except ImportError as error:
        raise DependencyError(
            f"'s3://' needs boto3 ({error.name} is missing); pip install 'filesink[s3]'", code="DEPENDENCY"
        ) from error
    from filesink.storage.s3.store import S3Store

    bucket, _, prefix = path.removeprefix("s3://").partition("/")
    checked = s3_client.options_of(options)
    return S3Store(
        s3_client.connect(bucket, checked), prefix, options=checked, clock=SystemClock(), ids=SystemIds()
    )


def _open_azure(path: str, options: Mapping[str, Any]) -> Store:
    try:
        from filesink.storage.azure.connection import connect as connect_to_azure
    except ImportError as error:
        raise DependencyError(
            f"paths on Azure need its client ({error.name} is missing); pip install 'filesink[azure]'",
            code="DEPENDENCY",
        ) from error
    from filesink.storage.azure.options import azure_options
    from filesink.storage.azure.store import AzureStore

    container, prefix = _split(path)
    name, _, host = container.partition("@")
    checked = azure_options(options)
    objects = connect_to_azure(name, host.replace(".dfs.", ".blob."), checked)
    prefix = prefix.strip("/")
    return AzureStore(objects, prefix, options=checked, clock=SystemClock(), ids=SystemIds())


def _open_gcs(path: str, options: Mapping[str, Any]) -> Store:
    try:
        from filesink.storage.gcs.client import connect as connect_to_gcs
    except ImportError as error:
        raise DependencyError(
            f"paths on Google Cloud Storage need its libraries ({error.name} is missing); "
            "pip install 'filesink[gcs]'",
            code="DEPENDENCY",
        ) from error
    from filesink.storage.gcs.options import gcs_options
    from filesink.storage.gcs.store import GcsStore

    bucket, prefix = _split(path)
    checked = gcs_options(options)
    objects = connect_to_gcs(bucket, checked)
    return GcsStore(objects, prefix.strip("/"), options=checked, clock=SystemClock(), ids=SystemIds())


def _split(path: str) -> tuple[str, str]:
    host, _, below = path.partition("://")[2].partition("/")
    return host, f"/{below}"


def _take_none(options: Mapping[str, Any], what: str) -> None:
    if options:
        raise ConfigError(
            f"storage options {sorted(options)} do not apply to {what}; remove them", code="UNKNOWN_OPTION"
        )


_OPENERS: Mapping[str, Callable[[str, Mapping[str, Any]], Store]] = {
    "memory": _open_memory,
    "s3": _open_s3,
    "az": _open_azure,
    "abfss": _open_azure,
    "gs": _open_gcs,
    "hdfs": _open_hdfs,
    "webhdfs": _open_webhdfs,
}
