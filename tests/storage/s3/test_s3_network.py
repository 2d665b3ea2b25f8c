"""Exactly once over a network that loses, delays and refuses, between a sink and two real servers."""

from __future__ import annotations

from collections import Counter
from itertools import product
from threading import Lock
from typing import Any

import pytest

from filesink.errors import FilesinkError
from filesink.storage.address import StoreAddress
from property_tests.real_epochs import expected, rows_in, run_query
from tests.servers import S3Server
from tests.storage.s3.fault_proxy import FaultProxy, Spoil
from tests.storage.s3.s3_site import S3Site

pytestmark = pytest.mark.slow  # together; each takes some seconds

KINDS = ("part", "complete", "record", "held", "list")
BATCHES = 2
MOST_STARTS = 20
_LATE = {Spoil.REPLY_LATE, Spoil.REQUEST_LATE}  # which the client has to give up
# What a driver may die of, since its successor goes on.
HARMLESS = {"UNAVAILABLE", "PUT_UNKNOWN", "DECIDE_UNKNOWN"}


def kind_of(method: str, path: str) -> str | None:
    """Which of ``KINDS`` a request is; ``None`` for others, and for the probe of a start."""
    key, _, query = path.partition("?")
    if "probe" in key:
        return None
    match method:
        case "PUT" if query:
            return "part" if "partNumber=" in query else None
        case "PUT":
            return "record" if "/_filesink/" in key else "held"
        case "POST":
            return "complete" if "uploadId=" in query else None
        case "GET":
            return "list" if {"list-type=2", "uploads"} & set(query.split("&")) else None
    return None


class Plan:
    """Spoils the second request of each kind, and if servers are busy the two that follow as well."""

    def __init__(self, spoil: Spoil) -> None:
        self._spoil = spoil
        self._spoiled = {2, 3, 4} if spoil is Spoil.BUSY else {2}
        self._lock = Lock()
        self.seen: Counter[str] = Counter()

    def __call__(self, method: str, path: str) -> Spoil | None:
        """See ``fault_proxy.Plan``."""
        kind = kind_of(method, path)
        if kind is None:
            return None
        with self._lock:
            self.seen[kind] += 1
            return self._spoil if self.seen[kind] in self._spoiled else None


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the attempts of the client."""
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0)


@pytest.fixture
def server(request: pytest.FixtureRequest) -> S3Server:
    """Of moto, which knows conditions and repeats completions, or of rclone, which does neither."""
    found: S3Server = request.getfixturevalue(f"{request.param}_server")
    return found


def for_a_change_or_by_night(*chosen: tuple[str, Spoil], servers: tuple[str, ...]) -> list[Any]:
    """All there is, of which a change tries what is chosen."""
    assert {spoil for _, spoil in chosen} == set(Spoil)
    return [
        pytest.param(*each, marks=() if each in chosen else pytest.mark.nightly)
        for each in product(servers, Spoil)
    ]


@pytest.mark.parametrize(
    ("server", "spoil"),
    for_a_change_or_by_night(
        ("moto", Spoil.REPLY_LOST),
        ("moto", Spoil.REQUEST_LATE),
        ("moto", Spoil.BUSY),
        ("rclone", Spoil.REPLY_LATE),
        ("rclone", Spoil.RESET),
        servers=("moto", "rclone"),
    ),
    indirect=["server"],
)
def test_each_row_once_if_the_client_repeats(server: S3Server, spoil: Spoil) -> None:
    """The answer to the repetition is another one, and says less than it seems to."""
    check(server, spoil, attempts=2)


@pytest.mark.parametrize("spoil", Spoil)
def test_each_row_once_if_the_driver_is_started_again(moto_server: S3Server, spoil: Spoil) -> None:
    """What the store cannot settle by looking ends the driver; a late request meets its successor."""
    check(moto_server, spoil, attempts=1)


def check(server: S3Server, spoil: Spoil, *, attempts: int) -> None:
    """A part, a completion, a record, a held file and a listing meet the same fate, each once.

    At the end each row is visible once, and nothing hidden, no object and no upload, is left.
    """
    site = S3Site(server, prefix="out")
    plan = Plan(spoil)
    with FaultProxy(server.port, plan) as proxy:
        failures = run_to_the_end(site, proxy.port, attempts, timeout=1 if spoil in _LATE else 30)
    assert set(failures) <= HARMLESS
    assert not failures or attempts == 1 or spoil not in {Spoil.REPLY_LOST, Spoil.RESET}
    assert all(plan.seen[kind] > 2 for kind in KINDS), plan.seen
    run_query("lines", StoreAddress(base_path=site.path, storage_options=server.options), batches=BATCHES)
    assert rows(site) == expected(BATCHES)
    assert site.uploads() == []
    assert [path for path in site.names() if path.rpartition("/")[2][0] == "."] == []


def run_to_the_end(site: S3Site, port: int, attempts: int, *, timeout: int) -> list[str]:
    """Start the query again until it comes to its end; the codes of what it died of before.

    ``timeout``: of a request, in seconds; one that takes longer by itself is one more fault.
    """
    options = {**site.server.options, "endpoint_url": f"http://127.0.0.1:{port}"}
    retries = {"mode": "standard", "total_max_attempts": attempts}
    options["config_kwargs"] = {**options["config_kwargs"], "read_timeout": timeout, "retries": retries}
    failures: list[str] = []
    while len(failures) < MOST_STARTS:
        try:
            run_query("lines", StoreAddress(base_path=site.path, storage_options=options), batches=BATCHES)
        except FilesinkError as error:
            failures.append(error.code)
        else:
            break
    return failures


def rows(site: S3Site) -> list[str]:
    """What readers of the bucket find, sorted."""
    names = [path for path in site.names() if not any(name[0] in "._" for name in path.split("/"))]
    return sorted(row for path, data in site.read(names).items() for row in rows_in(path, data))
