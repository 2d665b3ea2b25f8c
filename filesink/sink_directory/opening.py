"""The doors of this room: ``open`` reads what a path holds, ``adopt`` makes its inventory."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from filesink.errors import ConfigError, StorageError
from filesink.inventory.adoption.adopt import Adoption, AdoptionPlan
from filesink.ledger.directory import ledger_ids
from filesink.ledger.nearby import above, nothing_at
from filesink.sink_directory.directory import SinkDirectory
from filesink.sink_directory.other_sinks import refuse_other_sink
from filesink.sink_directory.site import Site
from filesink.storage.address import StoreAddress
from filesink.storage.api import Store
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


def ledgers_at(address: StoreAddress, store: Store) -> list[str]:
    """The ids of all ledgers of a base path, which has to be no file.

    Raises:
        ConfigError: ``NO_SINK``, it is the path of a file, which is left alone.
    """
    try:
        return ledger_ids(store)
    except StorageError as error:
        if error.code != "WRONG_KIND" or _is_directory(store):
            raise
    base = next(above(address), None)
    where = f"the base path '{base}'" if base else "the directory that a sink has written to"
    raise ConfigError(
        f"'{address.base_path}' is a file, or below one. Nothing was done; pass {where}", code="NO_SINK"
    )


def _is_directory(store: Store) -> bool:
    try:
        store.list("")
    except StorageError:
        return False
    return True


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
    ids = ledgers_at(address, store)
    if not ids:
        if not store.list(""):
            raise ConfigError(
                f"there is nothing at '{address.base_path}'. Pass the base path of a sink", code="NO_PATH"
            )
        raise nothing_at(address, advice="Pass the base path of the sink")
    refuse_other_sink(store, ids, address.base_path)
    return Site(base_path=address.base_path, store=store, clock=clock)
