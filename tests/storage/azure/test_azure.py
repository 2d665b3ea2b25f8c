"""Azure Blob Storage keeps the contract, on Microsoft's own emulator."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobBlock, BlobServiceClient

from filesink.errors import CommitConflictError, ConfigError, StagedDataLost, StorageError
from filesink.naming import join, parent, parse_upload, upload_path
from filesink.storage.api import Store
from filesink.storage.azure.client import AzureObjects
from filesink.storage.azure.options import azure_options
from filesink.storage.azure.store import AzureStore
from filesink.storage.base_path import check_base_path
from filesink.storage.objects.api import MIB
from filesink.storage.objects.multipart import size_of_part
from filesink.storage.open import open_store
from filesink.storage.staged import PendingUpload, Staged
from filesink.system import SystemClock, SystemIds
from tests.contracts.store_contract import StoreContract
from tests.contracts.store_site import Site, hold, stage
from tests.fakes import SettableClock
from tests.storage.fake_objects import FakeObjects

PREFIX = "base/é a+b"
_KNOWN = {hashlib.sha256(data).hexdigest()[:16]: data for data in (b"", b"abc")}


@dataclass
class AzureSite(Site):
    """A container of its own. Uncommitted blocks are in no ordinary listing; here they are shown."""

    connection: str
    container: str = field(default_factory=lambda: f"c{uuid.uuid4().hex}")

    def __post_init__(self) -> None:
        self.client: Any = BlobServiceClient.from_connection_string(self.connection).create_container(
            self.container
        )

    def store(self) -> Store:
        return open_store(f"az://{self.container}/{PREFIX}", {"connection_string": self.connection})

    def files(self) -> dict[str, bytes]:
        names = [name for name in self.client.list_blob_names() if name.startswith(f"{PREFIX}/")]
        found = {
            name.removeprefix(f"{PREFIX}/"): self._blob(name).download_blob().readall() for name in names
        }
        for name in self.uncommitted():
            for block in self._blob(name).get_block_list("uncommitted")[1]:
                upload_id, _, digest = block.id.split(".")
                path = upload_path(name.removeprefix(f"{PREFIX}/"), upload_id)
                found[path] = _KNOWN.get(digest, b"?")
        return found

    def plant(self, path: str, data: bytes) -> None:
        upload = parse_upload(path.rpartition("/")[2])
        if upload is None:
            self._at(path).upload_blob(data, overwrite=True)
        else:  # no attempt of ours can do that: blocks are named by their content
            self.remove(path)
            block = f"{upload[1]}.00001.{'f' * 16}"
            self._at(join(parent(path), upload[0])).stage_block(block, data or b"?")

    def remove(self, path: str) -> None:
        upload = parse_upload(path.rpartition("/")[2])
        blob = self._at(path if upload is None else join(parent(path), upload[0]))
        if upload is not None:
            blob.commit_block_list([])  # drops what is not in the list
        blob.delete_blob()

    def half_publish(self, staged: Staged, target: str) -> None:
        """There is one step only: the blocks are committed, and the driver dies before it knows."""
        assert isinstance(staged, PendingUpload)
        blocks = [BlobBlock(f"{staged.upload_id}.{part.number:05d}.{part.etag}") for part in staged.parts]
        self._at(target).commit_block_list(blocks, metadata={"filesink_token": staged.token})

    def uncommitted(self) -> list[str]:
        listed = self.client.list_blobs(include=["uncommittedblobs"])
        return [blob.name for blob in listed if blob.name not in set(self.client.list_blob_names())]

    def _at(self, path: str) -> Any:
        return self._blob(f"{PREFIX}/{path}")

    def _blob(self, name: str) -> Any:
        return self.client.get_blob_client(name)


@pytest.mark.slow
class TestAzure(StoreContract):
    """What differs: there are no directories, and blocks that nobody commits are in no listing."""

    outputs, published, pieces = 10, 6, 12

    @pytest.fixture
    def site(self, azure_connection: str) -> AzureSite:
        return AzureSite(azure_connection)

    def test_absent_is_not_unreadable(self, site: Site, store: Store) -> None:
        """No blob is ``None``, and one without bytes is not absent."""
        assert store.read("_filesink/none") is None
        site.plant("_filesink/sink/0", b"")
        assert store.read("_filesink/sink/0") == b""

    @pytest.mark.parametrize("foreign", [b"", b"xyz", b"longer than ours"])
    def test_publish_never_replaces(self, site: Site, store: Store, foreign: bytes) -> None:
        """Another blob under the final name is a conflict, and stays; writing it has dropped our blocks."""
        staged = stage(store, "a/part-a-0", b"abc")
        site.plant("a/part-a-0", foreign)
        for _ in range(2):
            with pytest.raises(CommitConflictError):
                store.publish(staged, "a/part-a-0")
        assert site.files() == {"a/part-a-0": foreign}

    def test_discard_by_name_may_be_repeated(self, site: Site, store: Store) -> None:
        """Blocks that nobody commits are left to Azure, which drops them after a week."""
        staged = stage(store, "a/part-a-0", b"abc")
        held = hold(store, "a/part-b-0", b"abc")
        for _ in range(2):
            store.discard(staged.path)
            store.discard(held.path)
        assert site.files() == {staged.path: b"abc"}
        assert site.visible() == {}
        assert store.list("a") == []


@pytest.mark.nightly
class TestManyFilesOnAzure(TestAzure):
    outputs, published, pieces = 200, 40, 60


@pytest.mark.slow
def test_a_container_that_is_not_there_is_named(azure_connection: str) -> None:
    """The first start says so, and what to do."""
    with pytest.raises((ConfigError, StorageError)) as raised:
        open_store("az://none/base", {"connection_string": azure_connection}).prepare()
    assert raised.value.code == "NO_BUCKET"


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("az://data//trips/", "az://data/trips"),
        ("abfs://data/trips", "az://data/trips"),
        ("abfs://data@lake.dfs.core.windows.net/trips", "abfss://data@lake.dfs.core.windows.net/trips"),
        (
            "abfss://data@lake.dfs.core.windows.net/trips",
            "abfss://data@lake.dfs.core.windows.net/trips",
        ),
    ],
)
def test_azure_paths_have_one_spelling(given: str, path: str) -> None:
    """Those of adlfs, and those that Spark's own connector takes, whose '@' is no password."""
    assert check_base_path(given) == path


@pytest.mark.parametrize(
    "given", ["az://user:hunter2@data/x", "abfss://data:hunter2@lake.dfs.core.windows.net/x", "az://a/../b"]
)
def test_odd_azure_paths_are_refused(given: str) -> None:
    """Credentials and steps upwards are no part of a path, and are not repeated."""
    with pytest.raises(ConfigError) as raised:
        check_base_path(given)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    "options",
    [
        {"part_size": MIB - 1},
        {"part_size": 4000 * MIB + 1},
        {"part_size": "8MiB"},
        {"max_concurrency": 0},
        {"max_concurrency": 257},
    ],
)
def test_options_are_checked(options: dict[str, Any]) -> None:
    """What Azure takes as one block, and what a machine can send at a time."""
    with pytest.raises(ConfigError) as raised:
        open_store("az://data/x", {"account_name": "lake", **options})
    assert raised.value.code == "BAD_VALUE"


def test_options_that_are_none_are_not_given() -> None:
    """One dictionary serves several libraries, and not every one of its names has a value."""
    names = ("account_key", "sas_token", "connection_string", "account_host", "part_size", "max_concurrency")
    given = azure_options({"account_name": "lake", **dict.fromkeys(names)})
    assert given == azure_options({"account_name": "lake"})


def test_files_are_sent_in_blocks_of_the_size_that_was_chosen() -> None:
    """Three blocks and a rest; none ever has more than 4,000 MiB, and 50,000 hold more than a blob may."""
    options = azure_options({"account_name": "lake", "part_size": MIB, "max_concurrency": 2})
    store = AzureStore(FakeObjects(), "", options=options, clock=SystemClock(), ids=SystemIds())
    staged = stage(store, "a/part-0", b"x" * (3 * MIB + 1))
    assert isinstance(staged, PendingUpload)
    assert [part.size for part in staged.parts] == [MIB, MIB, MIB, 1]
    assert store._uploads.largest_part == 4000 * MIB
    sizes = [size_of_part(number, MIB, options.largest_part) for number in range(1, 50_001)]
    assert max(sizes) == 4000 * MIB
    assert sum(sizes) > 100 << 40


@pytest.mark.parametrize(
    ("path", "options", "url"),
    [
        ("abfss://data@lake.dfs.core.windows.net/x", {}, "https://lake.blob.core.windows.net/data"),
        ("abfss://data@lake.blob.core.windows.net/x", {}, "https://lake.blob.core.windows.net/data"),
        ("abfss://data@lake.dfs.core.chinacloudapi.cn/x", {}, "https://lake.blob.core.chinacloudapi.cn/data"),
        (
            "abfss://data@lake.dfs.core.usgovcloudapi.net/x",
            {"account_name": "lake"},
            "https://lake.blob.core.usgovcloudapi.net/data",
        ),
        ("az://data/x", {"account_name": "lake"}, "https://lake.blob.core.windows.net/data"),
        ("az://data/x", {"account_name": "lake", "account_host": "blobs.me"}, "https://blobs.me/data"),
        ("abfss://data@lake.dfs.core.windows.net/x", {"account_host": "blobs.me"}, "https://blobs.me/data"),
        (
            "abfss://data@lake.dfs.core.windows.net/x",
            {"connection_string": "AccountName=lake;AccountKey=YQ==;EndpointSuffix=core.windows.net"},
            "https://lake.blob.core.windows.net/data",
        ),
    ],
)
def test_requests_go_to_the_account_of_the_path(path: str, options: dict[str, str], url: str) -> None:
    """The blob service of the account and the cloud that the path names, once; a host given alone wins."""
    key = {} if "connection_string" in options else {"account_key": "YQ=="}
    store: Any = open_store(path, {**options, **key})
    assert store._objects._container.url == url


def test_a_connection_string_of_another_account_is_refused() -> None:
    """Files would go where the path does not say; neither key nor account of the string is repeated."""
    options = {
        "connection_string": "AccountName=other;AccountKey=aHVudGVyMg==;EndpointSuffix=core.windows.net"
    }
    with pytest.raises(ConfigError, match="'lake'") as raised:
        open_store("abfss://data@lake.dfs.core.windows.net/x", options)
    assert raised.value.code == "BAD_VALUE"
    assert "aHVudGVyMg" not in str(raised.value)


def test_unknown_options_are_refused_without_values() -> None:
    """An option that nobody reads is an error; its value may be a secret."""
    with pytest.raises(ConfigError, match="acount_key") as raised:
        open_store("az://data/x", {"acount_key": "hunter2"})
    assert raised.value.code == "UNKNOWN_OPTION"
    assert "hunter2" not in str(raised.value)


class BlobService:
    """One blob of a container, by Azure's book where it differs from its emulator: no block is empty."""

    def __init__(self) -> None:
        self.staged: dict[str, bytes] = {}
        self.made: tuple[bytes, dict[str, str]] | None = None

    def get_blob_client(self, _key: str) -> BlobService:
        return self

    def stage_block(self, name: str, data: bytes) -> None:
        if not data:
            raise _refused(400)
        self.staged[name] = data

    def commit_block_list(self, blocks: list[BlobBlock], *, metadata: dict[str, str], **_only: Any) -> None:
        if any(str(block.id) not in self.staged for block in blocks):
            raise _refused(400)
        self.made = b"".join(self.staged[str(block.id)] for block in blocks), metadata
        self.staged.clear()

    def get_block_list(self, _kind: str) -> tuple[None, list[Any]]:
        if not self.staged and self.made is None:
            raise _refused(404, "BlobNotFound")
        return None, [BlobBlock(name) for name in self.staged]

    def get_blob_properties(self) -> SimpleNamespace:
        if self.made is None:
            raise _refused(404, "BlobNotFound")
        data, metadata = self.made
        now = datetime(2026, 1, 2, tzinfo=UTC)
        return SimpleNamespace(size=len(data), etag='"e"', last_modified=now, metadata=metadata)


def _refused(status: int, code: str = "") -> HttpResponseError:
    error = HttpResponseError("simulated")
    error.status_code = status
    error.error_code = code  # type: ignore[attr-defined]  # as Azure's client does
    return error


def test_a_file_without_bytes_is_a_blob_without_blocks() -> None:
    """Azure takes no empty block; nothing that was staged is nothing that can be lost."""
    service = BlobService()
    objects = AzureObjects(cast("Any", service), "data")
    store = AzureStore(objects, "", options=azure_options({}), clock=SettableClock(), ids=SystemIds())
    staged = stage(store, "a/part-0")
    assert isinstance(staged, PendingUpload)
    store.verify(staged)
    store.publish(staged, "a/part-0")
    assert service.made == (b"", {"filesink_token": staged.token})
    assert store.is_published(staged, "a/part-0")


def test_blocks_that_were_dropped_are_lost() -> None:
    """That nothing is needed for an empty file does not hold for others."""
    service = BlobService()
    objects = AzureObjects(cast("Any", service), "data")
    store = AzureStore(objects, "", options=azure_options({}), clock=SettableClock(), ids=SystemIds())
    staged = stage(store, "a/part-0", b"abc")
    service.staged.clear()
    with pytest.raises(StagedDataLost):
        store.verify(staged)
    with pytest.raises(StagedDataLost):
        store.publish(staged, "a/part-0")
