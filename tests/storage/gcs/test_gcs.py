"""Google Cloud Storage keeps the contract: on its emulator, and on a simulation that is strict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from filesink.errors import ConfigError, StorageError
from filesink.storage.api import Store
from filesink.storage.gcs import session
from filesink.storage.open import open_store
from tests.contracts.store_contract import StoreContract
from tests.contracts.store_site import Site
from tests.storage.gcs.gcs_site import GcsSite
from tests.storage.gcs.sim_gcs import sim_gcs

pytestmark = pytest.mark.slow  # together

#: fake-gcs-server 1.54 ignores conditions of everything but uploads: a start finds that out.
EMULATED: dict[str, Any] = {"conditional_writes": "one_driver"}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The emulator answers 500 for a part that is gone, which no waiting cures."""
    monkeypatch.setattr(session, "PAUSES", (0.01,))


class GcsContract(StoreContract):
    """What differs: there are no directories, and each file is a request."""

    outputs, published, pieces = 10, 6, 12

    def test_absent_is_not_unreadable(self, site: Site, store: Store) -> None:
        """No object is ``None``, and one without bytes is not absent."""
        assert store.read("_filesink/none") is None
        site.plant("_filesink/sink/0", b"")
        assert store.read("_filesink/sink/0") == b""


class TestStrict(GcsContract):
    """Every condition is kept, by a simulation of the service."""

    @pytest.fixture
    def site(self) -> Iterator[Site]:
        with sim_gcs() as service:
            yield GcsSite(service.url)


class TestEmulator(GcsContract):
    """fake-gcs-server; what only a race could show is left out, as on S3 without conditions."""

    @pytest.fixture
    def site(self, gcs_server: str) -> Site:
        return GcsSite(gcs_server, options=EMULATED)

    @pytest.mark.skip(reason="the server ignores conditions; the user vouches for one driver")
    def test_one_of_eight_puts_wins(self) -> None: ...

    @pytest.mark.skip(reason="one driver at a time, see above")
    def test_two_drivers_publish_the_same_files(self) -> None: ...

    @pytest.mark.skip(reason="the server composes whatever stands under the name of a part")
    def test_verify_finds_other_lengths(self) -> None: ...


@pytest.mark.nightly
class TestManyFiles(TestStrict):
    outputs, published, pieces = 2000, 40, 60


@pytest.mark.nightly
class TestManyFilesOnTheEmulator(TestEmulator):
    outputs, published, pieces = 200, 40, 60


@pytest.mark.nightly
class TestBucketRoot(GcsContract):
    """A bucket itself may be the base path."""

    @pytest.fixture
    def site(self) -> Iterator[Site]:
        with sim_gcs() as service:
            yield GcsSite(service.url, prefix="")


def test_the_emulator_is_not_taken_for_the_service(gcs_server: str) -> None:
    """A start finds out that a composition there replaces what exists, and says what may be promised."""
    site = GcsSite(gcs_server)
    with pytest.raises(ConfigError, match="one_driver") as raised:
        site.store().prepare()
    assert raised.value.code == "NO_EXCLUSIVE_PUBLISH"


def test_a_bucket_that_is_not_there_is_named(gcs_server: str) -> None:
    """The first start says so, and what to do."""
    with pytest.raises(StorageError) as raised:
        open_store("gs://no-such-bucket/base", {"endpoint_url": gcs_server}).prepare()
    assert raised.value.code == "NO_BUCKET"
