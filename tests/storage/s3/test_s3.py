"""S3 by two independent servers keeps the contract of every store."""

from __future__ import annotations

import pytest

from filesink.storage.api import Store
from tests.contracts.store_contract import StoreContract
from tests.contracts.store_site import Site
from tests.servers import S3Server
from tests.storage.s3.s3_site import S3Site

pytestmark = pytest.mark.slow  # together


class S3Contract(StoreContract):
    """What differs: there are no directories, and each file is a request."""

    outputs, published, pieces = 10, 6, 12

    def test_absent_is_not_unreadable(self, site: Site, store: Store) -> None:
        """No object is ``None``, and one without bytes is not absent."""
        assert store.read("_filesink/none") is None
        site.plant("_filesink/sink/0", b"")
        assert store.read("_filesink/sink/0") == b""


class TestMoto(S3Contract):
    @pytest.fixture
    def site(self, moto_server: S3Server) -> Site:
        return S3Site(moto_server)


@pytest.mark.nightly
class TestManyFilesOnMoto(TestMoto):
    outputs, published, pieces = 200, 40, 60


@pytest.mark.nightly
class TestMotoBucketRoot(S3Contract):
    """A bucket itself may be the base path; for a change that is tried on the other server."""

    @pytest.fixture
    def site(self, moto_server: S3Server) -> Site:
        return S3Site(moto_server, prefix="")


class TestRclone(S3Contract):
    """A server that ignores If-None-Match: what only a race could show is left out. A bucket is the base."""

    @pytest.fixture
    def site(self, rclone_server: S3Server) -> Site:
        return S3Site(rclone_server, prefix="")

    @pytest.mark.skip(reason="the server ignores If-None-Match; the user vouches for one driver")
    def test_one_of_eight_puts_wins(self) -> None: ...

    @pytest.mark.skip(reason="one driver at a time, see above")
    def test_two_drivers_publish_the_same_files(self) -> None: ...

    @pytest.mark.skip(reason="the server takes no part twice, so none can be damaged")
    def test_verify_finds_other_lengths(self) -> None: ...


@pytest.mark.nightly
class TestManyFilesOnRclone(TestRclone):
    outputs, published, pieces = 200, 40, 60

    @pytest.fixture
    def site(self, rclone_server: S3Server) -> Site:
        return S3Site(rclone_server, prefix="base")
