"""The doors of this room: ``open`` reads what a path holds, ``adopt`` makes its inventory."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from filesink.errors import ConfigError, StorageError
from filesink.inventory.adoption.adopt import Adoption, AdoptionPlan
from filesink.ledger.directory import ledger_ids
from filesink.ledger.nearby import nothing_at
from filesink.sink_directory.directory import SinkDirectory
from filesink.sink_directory.other_sinks import refuse_other_sink
from filesink.sink_directory.site import Site
from filesink.storage.address import StoreAddress
from filesink.storage.base_path import spelling
from filesink.storage.retrying import RetryingStore
from filesink.system import SystemClock, SystemIds


def open(  # noqa: A001 - as in gzip and zipfile
    path: str | PathLike[str], storage_options: Mapping[str, Any] | None = None
) -> SinkDirectory:
    """See ``filesink.open``, which is this with the settings of an active session."""
    return SinkDirectory(_site=site_of(path, storage_options))


def is_sink_directory(path: str | PathLike[str], storage_options: Mapping[str, Any] | None = None) -> bool:
    """Whether a sink has written to ``path`` itself, so that ``open`` has something to open.

    Raises:
        ConfigError: path or options cannot be used.
    """
    options = {} if storage_options is None else storage_options
    try:
        return bool(ledger_ids(StoreAddress(base_path=spelling(path), storage_options=options)()))
    except StorageError as error:
        if error.code != "WRONG_KIND":
            raise
        return False  # it is a file


def adopt(site: Site) -> None:
    """See ``filesink.adopt``."""
    Adoption(site.store, clock=site.clock, ids=SystemIds()).run()


def plan_adopt(site: Site) -> AdoptionPlan:
    """What ``adopt`` would change now. Touches nothing."""
    return Adoption(site.store, clock=site.clock, ids=SystemIds()).plan()


def site_of(path: str | PathLike[str], storage_options: Mapping[str, Any] | None) -> Site:
    """The base path, if a sink has written there; raises as ``open``."""
    options = {} if storage_options is None else storage_options
    return _site_at(StoreAddress(base_path=spelling(path), storage_options=options))


def open_at(address: StoreAddress) -> SinkDirectory:
    """As ``open``, for who has the address of the path."""
    return SinkDirectory(_site=_site_at(address))


def _site_at(address: StoreAddress) -> Site:
    clock = SystemClock()
    store = RetryingStore(address(), clock)
    ids = ledger_ids(store)
    if not ids:
        if not store.list(""):
            raise ConfigError(
                f"there is nothing at '{address.base_path}'. Pass the base path of a sink", code="NO_PATH"
            )
        raise nothing_at(address, advice="Pass the base path of the sink")
    refuse_other_sink(store, ids, address.base_path)
    return Site(base_path=address.base_path, store=store, clock=clock)
