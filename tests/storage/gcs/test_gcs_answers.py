"""What the store makes of Google's answers: lost ones, refusals, pages of others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from filesink.errors import ConfigError, StorageError
from filesink.storage.api import PutResult
from filesink.storage.base_path import check_base_path
from filesink.storage.gcs import session
from filesink.storage.gcs.options import gcs_options
from filesink.storage.open import open_store
from tests.contracts.store_site import finish, hold, stage
from tests.storage.gcs.gcs_site import GcsSite
from tests.storage.gcs.sim_gcs import AFTER, BEFORE, GONE, Fault, SimGcs, sim_gcs, told

SECRET = "ya29.hunter2"  # noqa: S105 - a token of nobody's
SMALL = {"part_size": 256 * 1024}


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimGcs]:
    """A strict service that is asked twice at most."""
    monkeypatch.setattr(session, "PAUSES", (0.01,))
    with sim_gcs() as sim:
        yield sim


@pytest.mark.parametrize("parts", [1, 32, 33, 70])
def test_files_of_many_parts_are_composed_by_levels(service: SimGcs, parts: int) -> None:
    """Whatever their number, the bytes are in order, and nothing is left of the parts and levels."""
    site = GcsSite(service.url, options=SMALL)
    data = b"".join(bytes([n]) * SMALL["part_size"] for n in range(parts))
    store = site.store()
    staged = stage(store, "a/part-0", data)
    assert site.visible() == {}
    finish(store, staged, "a/part-0")
    assert site.names() == ["a/part-0"]
    assert site.read("a/part-0") == data


@pytest.mark.parametrize("status", [GONE, 500, 503])
@pytest.mark.parametrize("operation", ["insert", "compose", "delete"])
def test_a_lost_answer_is_looked_for(service: SimGcs, operation: str, status: int) -> None:
    """What was done is found by its token or generation, and not taken for somebody else's."""
    site = GcsSite(service.url)
    store = site.store()
    service.faults.append(Fault(operation, AFTER, status))
    finish(store, stage(store, "a/part-0", b"abc"), "a/part-0")
    assert site.files() == {"a/part-0": b"abc"}
    assert service.faults == []


def test_a_record_whose_answer_was_lost_is_ours(service: SimGcs) -> None:
    """The repetition is refused, and the token tells whose record stands there."""
    site = GcsSite(service.url)
    service.faults.append(Fault("insert", AFTER, GONE))
    assert site.store().put_if_absent("_filesink/x/0", b"1") is PutResult.CREATED
    assert site.store().put_if_absent("_filesink/x/0", b"1") is PutResult.EXISTS


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (401, told(401, "authError", "Invalid Credentials"), "NO_CREDENTIALS"),
        (403, told(403, "forbidden", f"{SECRET} lacks access"), "PERMISSION"),
        (403, told(403, "rateLimitExceeded"), "UNAVAILABLE"),
        (403, told(403, "retentionPolicyNotMet"), "HELD"),
        (404, b"<html>proxy</html>", "UNAVAILABLE"),
        (200, b"<html>proxy</html>", "UNAVAILABLE"),
        (302, b"", "UNAVAILABLE"),
        (429, told(429, "rateLimitExceeded"), "UNAVAILABLE"),
        (503, b"", "UNAVAILABLE"),
        (400, told(400, "invalid"), "REFUSED"),
    ],
)
def test_answers_have_the_codes_of_other_stores(service: SimGcs, status: int, body: bytes, code: str) -> None:
    """Each with our words: those of the service may name users and secrets."""
    store = GcsSite(service.url).store()
    service.faults += [Fault("list", BEFORE, status, body) for _ in range(2)]
    with pytest.raises(StorageError) as raised:
        store.list("a")
    assert raised.value.code == code
    assert "hunter2" not in str(raised.value)


def test_a_token_is_sent_and_repeated_nowhere(service: SimGcs) -> None:
    """An access token lets in; one that is refused has nothing to renew itself, and is in no message."""
    site = GcsSite(service.url)
    service.token = SECRET
    options = gcs_options({"token": SECRET})
    assert "hunter2" not in repr(options)
    store = open_store(site.path, {"endpoint_url": service.url, "token": SECRET})
    hold(store, "a/part-0", b"abc")
    with pytest.raises(StorageError) as raised:
        open_store(site.path, {"endpoint_url": service.url, "token": f"{SECRET}-old"}).list("a")
    assert raised.value.code == "EXPIRED_CREDENTIALS"
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    "options",
    [
        {"token": 7},
        {"token": SECRET, "endpoint_url": "http://storage.example.org"},
        {"endpoint_url": "https://user:hunter2@host"},
        {"endpoint_url": "ftp://hunter2"},
        {"part_size": 1},
        {"timeout": 0},
        {"requester_pays": True},
        {"no_such": "hunter2"},
    ],
)
def test_options_are_checked_and_values_not_repeated(options: dict[str, Any]) -> None:
    """A token never goes over a network in the clear."""
    with pytest.raises(ConfigError) as raised:
        open_store("gs://bucket/x", options)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("given", ["gs://bucket//a/b/", "gcs://bucket/a/b", "GS://bucket/a/b"])
def test_paths_have_one_spelling(given: str) -> None:
    """Those of gcsfs and of Spark's connector."""
    assert check_base_path(given) == "gs://bucket/a/b"


def test_files_are_published_where_nothing_may_be_removed(service: SimGcs) -> None:
    """The parts stay, hidden, and the file is there."""
    site = GcsSite(service.url)
    service.may_delete = False
    store = site.store()
    finish(store, stage(store, "a/part-0", b"abc"), "a/part-0")
    assert site.visible() == {"a/part-0": b"abc"}
