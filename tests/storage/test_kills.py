"""Writers onto object stores and HDFS, killed at a change: each row once after one more start.

A whole sink without Spark, in a process that is forked for each run.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from multiprocessing.sharedctypes import RawValue
from threading import Lock
from typing import Any

import pytest

from filesink.storage.api import Store
from filesink.storage.azure.connection import connect as connect_to_azure
from filesink.storage.azure.options import azure_options
from filesink.storage.azure.store import AzureStore
from filesink.storage.gcs.client import connect as connect_to_gcs
from filesink.storage.gcs.options import gcs_options
from filesink.storage.gcs.store import GcsStore
from filesink.storage.hdfs.webhdfs import WebNamenode
from filesink.storage.objects.api import Objects
from filesink.storage.s3 import client as s3_client
from filesink.storage.s3.store import S3Store
from filesink.system import SystemClock, SystemIds
from property_tests.real_epochs import FORMATS, expected, rows_in, run_query
from property_tests.test_kills import in_a_process
from tests.contracts.store_site import Site
from tests.servers import S3Server
from tests.storage.azure.test_azure import PREFIX, AzureSite
from tests.storage.gcs.gcs_site import GcsSite
from tests.storage.gcs.sim_gcs import sim_gcs
from tests.storage.gcs.test_gcs import EMULATED
from tests.storage.hdfs.sim_namenode import Cluster
from tests.storage.hdfs.sim_webhdfs import web_namenode
from tests.storage.hdfs.test_hdfs import BASE, SimulatedSite, hdfs_store
from tests.storage.s3.s3_site import S3Site

pytestmark = pytest.mark.slow  # together; each kill takes a second

ONE, MANY = 1, 20  # kills for each format on each store; many by night
BATCHES = 2
CHANGES = {"put", "delete", "create_upload", "upload_part", "copy_part", "complete", "abort", "release"}


class Countdown:
    """Kills its own process before the n-th change, by whichever thread; 0 for never."""

    def __init__(self, deadline: int) -> None:
        self._deadline = deadline
        self._begun = RawValue("i", 0)  # which the parent can read, too
        self._lock = Lock()

    @property
    def begun(self) -> int:
        """Changes so far."""
        return int(self._begun.value)

    def change(self) -> None:
        """Called before each."""
        with self._lock:
            self._begun.value += 1
            if self._begun.value == self._deadline:
                os.kill(os.getpid(), signal.SIGKILL)


#: An empty place to write to, and the store there, its changes counted.
Place = tuple[Site, Callable[[Countdown], Store]]


class CountedObjects:
    """See ``filesink.storage.objects.api.Objects``."""

    def __init__(self, objects: Objects, countdown: Countdown) -> None:
        self._objects = objects
        self._countdown = countdown

    def __getattr__(self, name: str) -> Any:
        if name in CHANGES:
            self._countdown.change()
        return getattr(self._objects, name)


class CountedNamenode(WebNamenode):
    """Creating and appending are two changes each, of namenode and datanode."""

    def __init__(self, port: int, countdown: Countdown) -> None:
        super().__init__("127.0.0.1", port, {})
        self._countdown = countdown

    def _request(self, method: str, url: str, path: str, **arguments: Any) -> Any:
        if method != "GET":
            self._countdown.change()
        return super()._request(method, url, path, **arguments)


def s3(server: S3Server) -> Callable[[], Place]:
    """One of two servers, with and without conditions."""

    def place() -> Place:
        site = S3Site(server, prefix="out")
        bucket, options = site.bucket, s3_client.options_of(server.options)

        def store(countdown: Countdown) -> Store:
            objects = CountedObjects(s3_client.connect(bucket, options), countdown)
            return S3Store(objects, "out", options=options, clock=SystemClock(), ids=SystemIds())

        return site, store

    return place


@pytest.fixture
def azure(azure_connection: str) -> Callable[[], Place]:
    """Microsoft's emulator."""

    def place() -> Place:
        site = AzureSite(azure_connection)

        def store(countdown: Countdown) -> Store:
            options = azure_options({"connection_string": azure_connection})
            objects = CountedObjects(connect_to_azure(site.container, "", options), countdown)
            return AzureStore(objects, PREFIX, options=options, clock=SystemClock(), ids=SystemIds())

        return site, store

    return place


def gcs(url: str, options: dict[str, Any]) -> Callable[[], Place]:
    """The emulator, or a simulation that keeps all conditions."""

    def place() -> Place:
        site = GcsSite(url, options=options, prefix="out")
        checked = gcs_options({"endpoint_url": url, **options})

        def store(countdown: Countdown) -> Store:
            objects: Any = CountedObjects(connect_to_gcs(site.bucket, checked), countdown)
            return GcsStore(objects, "out", options=checked, clock=SystemClock(), ids=SystemIds())

        return site, store

    return place


@pytest.fixture
def webhdfs() -> Iterator[Callable[[], Place]]:
    """The simulated namenode; each place is a cluster of its own."""
    cluster = Cluster()
    with web_namenode(cluster) as port:

        def place() -> Place:
            cluster.files.clear()
            site = SimulatedSite(cluster)
            return site, lambda countdown: hdfs_store(CountedNamenode(port, countdown), BASE)

        yield place


def changed_and_nightly(*chosen: tuple[str, ...], more: Iterable[tuple[str, ...]]) -> list[Any]:
    """One kill for what is chosen, and by night many for all there is."""
    return [
        *((*each, ONE) for each in chosen),
        *(pytest.param(*each, MANY, marks=pytest.mark.nightly) for each in more),
    ]


@pytest.mark.parametrize(
    ("server", "kind", "kills"),
    changed_and_nightly(("moto", "lines"), ("rclone", "parquet"), more=product(("moto", "rclone"), FORMATS)),
)
def test_kills_on_s3(request: pytest.FixtureRequest, server: str, kind: str, kills: int) -> None:
    """Neither a row nor an upload is left behind, wherever between two requests the driver died."""
    check(s3(request.getfixturevalue(f"{server}_server")), kind, kills)


@pytest.mark.parametrize(("kind", "kills"), changed_and_nightly(("lines",), more=product(FORMATS)))
def test_kills_on_hdfs(webhdfs: Callable[[], Place], kind: str, kills: int) -> None:
    """The same for files that are renamed."""
    check(webhdfs, kind, kills)


@pytest.mark.parametrize(("kind", "kills"), changed_and_nightly(("parquet",), more=product(FORMATS)))
def test_kills_on_azure(azure: Callable[[], Place], kind: str, kills: int) -> None:
    """The same for lists of blocks, but for blocks that nobody can remove."""
    check(azure, kind, kills)


@pytest.mark.parametrize(
    ("server", "kind", "kills"),
    changed_and_nightly(
        ("strict", "lines"), ("emulator", "parquet"), more=product(("strict", "emulator"), FORMATS)
    ),
)
def test_kills_on_gcs(request: pytest.FixtureRequest, server: str, kind: str, kills: int) -> None:
    """The same for parts that are composed: none of them is left behind."""
    kills = kills if kills == ONE else 25  # a hundred in a night
    if server == "emulator":
        check(gcs(request.getfixturevalue("gcs_server"), EMULATED), kind, kills)
        return
    with sim_gcs() as service:
        check(gcs(service.url, {}), kind, kills)


def check(place: Callable[[], Place], kind: str, kills: int) -> None:
    """Kill at some of the changes that an undisturbed run makes, each time in a new place."""
    seed = time.time_ns()
    print(f"seed {seed}")  # noqa: T201 - shown if an assertion fails
    _, store = place()
    undisturbed = run(store, kind, deadline=0)
    moments = random.Random(seed).sample(range(1, undisturbed + 1), kills)  # noqa: S311 - no secrets
    for deadline in moments:
        site, store = place()
        assert run(store, kind, deadline=deadline) == deadline, "it was killed there"
        assert Counter(rows(site)) <= Counter(expected(BATCHES))
        # A batch more, since leftovers go after the first good epoch: one that dies completing the very last
        # epoch leaves its successor none to run.
        run(store, kind, deadline=0, batches=BATCHES + 1)
        assert rows(site) == expected(BATCHES + 1)
        assert hidden_files(site) == []


def run(store: Callable[[Countdown], Store], kind: str, *, deadline: int, batches: int = BATCHES) -> int:
    """One driver process, to its end or its death; how many changes it began."""
    countdown = Countdown(deadline)
    ended_by = in_a_process(lambda: run_query(kind, lambda: store(countdown), batches=batches))
    assert ended_by == (signal.SIGKILL if deadline else 0)
    return countdown.begun


def rows(site: Site) -> list[str]:
    """What readers find, sorted."""
    files = {path: data for path, data in site.files().items() if not is_hidden(path)}
    return sorted(row for path, data in files.items() for row in rows_in(path, data))


def hidden_files(site: Site) -> list[str]:
    """What should have been removed; blocks on Azure and probes of dead starts go by themselves."""
    left = (path for path in site.files() if path.rpartition("/")[2][0] == "." and ".probe." not in path)
    return [path for path in left if not isinstance(site, AzureSite)]


def is_hidden(path: str) -> bool:
    """Whether readers skip it."""
    return any(name[0] in "._" for name in path.split("/"))
