"""What the store makes of Azure's answers, through Azure's own client: leases, snapshots, folders, pages."""

from __future__ import annotations

import io
import os
import traceback
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import requests
import urllib3
from azure.core.exceptions import ClientAuthenticationError
from azure.core.pipeline.transport import RequestsTransport
from azure.storage.blob import BlobServiceClient, LinearRetry
from requests.adapters import HTTPAdapter
from urllib3.exceptions import SSLError

from filesink.errors import CommitConflictError, CommitStateUnknown, ConfigError, StorageError
from filesink.storage.api import Deletion, Kind
from filesink.storage.azure import connection as azure_connection
from filesink.storage.azure.client import AzureObjects
from filesink.storage.azure.options import azure_options
from filesink.storage.azure.store import AzureStore
from filesink.storage.objects.api import UNAVAILABLE, Condition, version_of
from filesink.storage.open import open_store
from filesink.system import SystemIds
from tests.fakes import SettableClock

Answer = tuple[int, dict[str, str], bytes]
PAGE = b"<html><body>Please log in<br></body></html>"
MODIFIED = "Fri, 02 Jan 2026 00:00:00 GMT"
MODIFIED_MS = 1_767_312_000_000


class Scripted(HTTPAdapter):
    """Answers the requests of ``requests`` in their order, the last answer for ever; keeps what was asked."""

    def __init__(self, *answers: Answer) -> None:
        super().__init__()
        self.answers = list(answers)
        self.asked: list[requests.PreparedRequest] = []

    def send(self, request: requests.PreparedRequest, **_: Any) -> requests.Response:  # type: ignore[override]
        self.asked.append(request)
        status, headers, body = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return self.build_response(
            request,
            urllib3.HTTPResponse(
                body=io.BytesIO(b"" if request.method == "HEAD" else body),
                headers=headers,
                status=status,
                preload_content=False,
                request_method=request.method,
            ),
        )


def objects_on(service: Scripted, credential: Any = None, *, repeats: int = 0) -> AzureObjects:
    """A container of the real client, which asks ``service``, and so many times again."""
    session = requests.Session()
    session.mount("https://", service)
    client = BlobServiceClient(
        "https://lake.blob.core.windows.net",
        credential=credential or {"account_name": "lake", "account_key": "YQ=="},
        transport=RequestsTransport(session=session, session_owner=False),
        retry_policy=LinearRetry(backoff=0, random_jitter_range=0, retry_total=repeats),
    )
    return AzureObjects(client.get_container_client("data"), "data")


def store_on(service: Scripted, *, repeats: int = 0) -> AzureStore:
    """The store at the container's root."""
    objects = objects_on(service, repeats=repeats)
    return AzureStore(objects, "", options=azure_options({}), clock=SettableClock(), ids=SystemIds())


def blob(name: str, metadata: str = "", size: int = 3) -> str:
    """A blob in an answer to a listing."""
    return (
        f"<Blob><Name>{name}</Name><Properties><Last-Modified>{MODIFIED}</Last-Modified><Etag>0x1</Etag>"
        f"<Content-Length>{size}</Content-Length><BlobType>BlockBlob</BlobType></Properties>{metadata}</Blob>"
    )


def listed(*entries: str, more: str = "") -> Answer:
    """An answer to a listing; ``more`` is where the next page begins."""
    blobs = f"<Blobs>{''.join(entries)}</Blobs>"
    body = f"<EnumerationResults>{blobs}<NextMarker>{more}</NextMarker></EnumerationResults>"
    return 200, {"Content-Type": "application/xml"}, body.encode()


def refused(status: int, code: str) -> Answer:
    """An error in the service's own words."""
    body = f"<Error><Code>{code}</Code><Message>No.</Message></Error>"
    return status, {"Content-Type": "application/xml", "x-ms-error-code": code}, body.encode()


@pytest.mark.parametrize(
    "code", ["LeaseIdMissing", "LeaseIdMismatchWithBlobOperation", "LeaseAlreadyPresent", "LeaseLost"]
)
def test_a_leased_blob_is_no_changed_blob(code: str) -> None:
    """An overwrite may not count it as done: the error says that there is a lease, and is tried again."""
    store = store_on(Scripted(listed(blob("old")), refused(412, code)))
    with pytest.raises(StorageError, match="break the lease") as raised:
        store.delete_if_unchanged("old", size=3, version=version_of("0x1", MODIFIED_MS))
    assert raised.value.code == "LEASED"
    assert not isinstance(raised.value, CommitConflictError)


def test_a_condition_that_does_not_hold_is_a_changed_blob() -> None:
    """The other 412 is still told apart: another blob stands there, and is left alone."""
    store = store_on(Scripted(listed(blob("old")), refused(412, "ConditionNotMet")))
    deletion = store.delete_if_unchanged("old", size=3, version=version_of("0x1", MODIFIED_MS))
    assert deletion is Deletion.CHANGED


def test_a_blob_is_removed_with_its_snapshots() -> None:
    """Azure would refuse it for ever otherwise, with ``SnapshotsPresent``; the condition still holds."""
    service = Scripted((202, {}, b""))
    objects_on(service).delete("old", etag='"0x1"')
    headers = service.asked[0].headers
    assert (headers.get("x-ms-delete-snapshots"), headers.get("If-Match")) == ("include", '"0x1"')


@pytest.mark.parametrize(
    "broken", [SSLError("decryption failed"), ConnectionResetError("reset"), KeyError("etag")], ids=repr
)
def test_what_breaks_below_the_client_is_an_error_of_ours(broken: Exception) -> None:
    """As TLS does while a body is read: it may be tried again."""

    def download_blob(**_range: object) -> None:
        raise broken

    blob_client = SimpleNamespace(download_blob=download_blob)
    objects = AzureObjects(SimpleNamespace(get_blob_client=lambda _key: blob_client), "data")  # type: ignore[arg-type]
    with pytest.raises(StorageError) as raised:
        objects.get("k")
    assert (raised.value.code, raised.value.is_permanent) == (UNAVAILABLE, False)


@pytest.mark.parametrize("name", ["hdi_isfolder", "Hdi_isfolder"])
def test_the_marker_of_a_directory_is_no_file(name: str) -> None:
    """Hadoop, blobfuse and Storage Explorer leave one beside what is in it, in either spelling."""
    marker = blob("dt=1", f"<Metadata><{name}>true</{name}></Metadata>", size=0)
    ours = blob("part-0", "<Metadata><filesink_token>t</filesink_token></Metadata>")
    prefix = "<BlobPrefix><Name>dt=1/</Name></BlobPrefix>"
    service = Scripted(listed(prefix, marker, ours, blob("plain")))
    found = {(entry.name, entry.kind) for entry in store_on(service).list("")}
    assert found == {("dt=1", Kind.DIRECTORY), ("part-0", Kind.FILE), ("plain", Kind.FILE)}
    assert "include=metadata" in str(service.asked[0].url)


@pytest.mark.parametrize("name", ["hdi_isfolder", "Hdi_isfolder"])
def test_nothing_stands_where_a_directory_is_marked(name: str) -> None:
    """A look at one key says the same as a listing."""
    headers = {"Last-Modified": MODIFIED, "ETag": '"0x1"', "Content-Length": "0", f"x-ms-meta-{name}": "true"}
    assert objects_on(Scripted((200, headers, b""))).head("dt=1") is None


def test_all_pages_are_read() -> None:
    """Listings come in pages of five thousand; what is on the second counts as well."""
    service = Scripted(listed(blob("a"), more="m"), listed(blob("b")))
    assert [entry.name for entry in store_on(service).list("")] == ["a", "b"]
    assert ["marker=m" in str(request.url) for request in service.asked] == [False, True]


def test_a_range_is_asked_for_of_the_blob_that_was_looked_at() -> None:
    """If it is replaced while it is read, nobody gets its beginning and another one's end."""
    headers = {
        "Content-Range": "bytes 0-2/9",
        "Content-Length": "3",
        "ETag": '"0x1"',
        "Last-Modified": MODIFIED,
    }
    service = Scripted((206, headers, b"abc"), refused(412, "ConditionNotMet"))
    objects = objects_on(service)
    assert objects.get("k", end=3, etag='"0x1"') == b"abc"
    assert service.asked[0].headers.get("If-Match") == '"0x1"'
    with pytest.raises(CommitConflictError):
        objects.get("k", start=3, end=6, etag='"0x1"')
    ranges = [asked.headers.get("x-ms-range") for asked in service.asked]
    assert ranges == ["bytes=0-2", "bytes=3-5"]


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
def test_an_answer_that_does_not_tell_leaves_a_record_unknown(status: int) -> None:
    """What was asked for may be done after the look that finds nothing, so no file may be discarded."""
    store = store_on(Scripted(refused(status, "Busy"), refused(404, "BlobNotFound")))
    with pytest.raises(CommitStateUnknown):
        store.put_if_absent("r", b"1")


def test_nothing_is_absent_from_a_container_that_is_gone() -> None:
    """Nobody is told that files are lost because the container was renamed, or another account is asked."""
    with pytest.raises(StorageError) as raised:
        objects_on(Scripted(refused(404, "ContainerNotFound"))).head("k")
    assert raised.value.code == "NO_BUCKET"
    assert objects_on(Scripted(refused(404, "BlobNotFound"))).head("k") is None


@pytest.mark.parametrize("ask", ["head", "get", "parts"])
def test_a_404_that_is_not_in_azure_s_words_is_no_absence(ask: str) -> None:
    """Azure names its errors, in a header of every answer; a proxy that is lost knows nothing of blobs."""
    objects = objects_on(Scripted((404, {}, PAGE)))
    asks: dict[str, Callable[[], object]] = {
        "head": lambda: objects.head("k"),
        "get": lambda: objects.get("k"),
        "parts": lambda: objects.list_parts("k", "u"),
    }
    with pytest.raises(StorageError) as raised:
        asks[ask]()
    assert raised.value.code == UNAVAILABLE


def test_a_refusal_of_a_repeated_request_leaves_a_record_unknown() -> None:
    """The client has asked before, and what it got no answer to may be done yet."""
    refusal, absent = refused(403, "AuthorizationPermissionMismatch"), refused(404, "BlobNotFound")
    with pytest.raises(CommitStateUnknown):
        store_on(Scripted(refused(503, "ServerBusy"), refusal, absent), repeats=1).put_if_absent("r", b"1")
    with pytest.raises(StorageError, match="permission"):
        store_on(Scripted(refusal, absent), repeats=1).put_if_absent("r", b"1")


_ASKS: dict[str, Callable[[AzureObjects], object]] = {
    "list": lambda objects: objects.list_objects("a/"),
    "head": lambda objects: objects.head("a"),
    "get": lambda objects: objects.get("a"),
    "put": lambda objects: objects.put("a", b"x", token="t", condition=Condition.IF_ABSENT),
    "delete": lambda objects: objects.delete("a"),
    "stage": lambda objects: objects.upload_part("a", "u", number=1, data=b"x"),
    "commit": lambda objects: objects.complete("a", "u", parts=[], condition=Condition.IF_ABSENT),
}


@pytest.mark.parametrize("ask", _ASKS.values(), ids=_ASKS)
@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/html", PAGE),
        ("text/html", PAGE + b"\xe9"),
        ("application/xml", b"<html><body/></html>"),
        ("application/xml", b"<EnumerationResults><Blobs>"),
        ("", b""),
    ],
    ids=["HTML", "Latin-1", "XHTML", "cut off", "nothing"],
)
def test_a_page_of_a_proxy_is_no_answer(
    ask: Callable[[AzureObjects], object], kind: str, body: bytes
) -> None:
    """A 200 that is not Azure's tells nothing: not that it was done, and not that it was refused."""
    headers = {"Content-Type": kind} if kind else {}
    with pytest.raises(StorageError) as raised:
        ask(objects_on(Scripted((200, headers, body))))
    assert raised.value.code == UNAVAILABLE
    assert "log in" not in str(raised.value)


class AsyncCredential:
    """As those of ``azure.identity.aio``."""

    async def get_token(self, *scopes: str, **options: object) -> None:
        """Never asked."""


@pytest.mark.parametrize(
    "options",
    [
        {"connection_string": "hunter2"},
        {"connection_string": "AccountKey=hunter2"},
        {"connection_string": "BlobEndpoint=https:///?sig=hunter2;SharedAccessSignature=hunter2"},
        {"connection_string": ["hunter2"]},
        {"account_name": "lake", "credential": ("lake", "hunter2")},
        {"account_name": "lake", "credential": {"key": "hunter2"}},
        {"account_name": "lake", "credential": AsyncCredential()},
        {"account_name": "lake", "account_key": b"hunter2"},
        {"account_name": 7, "account_key": "hunter2"},
        {"account_name": "lake", "account_host": "[lake", "account_key": "hunter2"},
        {"account_name": "lake", "account_host": "u:hunter2@lake", "account_key": "k"},
        {"account_name": "lake", "account_host": "lake.blob.me?sig=hunter2", "account_key": "k"},
        {"account_name": "hunter2@lake", "account_key": "k"},
    ],
)
def test_what_the_client_does_not_take_is_a_wrong_option(options: dict[str, Any]) -> None:
    """The first start says which option to correct; neither message nor traceback repeats a value."""
    with pytest.raises(ConfigError) as raised:
        open_store("az://data/x", options)
    assert raised.value.code == "BAD_VALUE"
    assert "hunter2" not in "".join(traceback.format_exception(raised.value))


@pytest.fixture
def default_chain(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """The default chains that are made, of a class that asks nobody."""
    made: list[object] = []

    class Chain:
        def __init__(self) -> None:
            made.append(self)

        def get_token(self, *_scopes: str) -> None:
            """Never asked here; the client looks for its name."""

    monkeypatch.setattr(azure_connection, "DefaultAzureCredential", Chain)
    azure_connection._default_credential.cache_clear()
    yield made
    azure_connection._default_credential.cache_clear()


def test_tasks_of_one_process_share_one_default_credential(
    default_chain: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps its token, which each task would ask for again; a forked process makes its own."""
    for _ in range(2):
        open_store("az://data/x", {"account_name": "lake"})
    assert len(default_chain) == 1
    monkeypatch.setattr(os, "getpid", lambda: -1)
    open_store("az://data/x", {"account_name": "lake"})
    assert len(default_chain) == 2


def test_a_sas_token_is_what_requests_are_signed_with(default_chain: list[object]) -> None:
    """It is part of each address; no other identity is looked for."""
    store: Any = open_store("az://data/x", {"account_name": "lake", "sas_token": "sv=1&sig=x"})
    assert store._objects._container.url == "https://lake.blob.core.windows.net/data?sv=1&sig=x"
    assert default_chain == []


class NoToken:
    """A credential that nobody gives a token."""

    def get_token(self, *_scopes: str, **_: object) -> None:
        raise ClientAuthenticationError("hunter2")


@pytest.mark.parametrize("ask", ["list", "head", "put"])
def test_without_a_token_nothing_is_asked(ask: str) -> None:
    """The error says that it is the credentials: the store has not been heard."""
    service = Scripted((200, {}, b""))
    with pytest.raises(StorageError, match="these credentials") as raised:
        _ASKS[ask](objects_on(service, NoToken()))
    assert (raised.value.code, service.asked) == ("PERMISSION", [])
    assert "hunter2" not in str(raised.value)


def test_a_chain_that_cannot_be_made_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment is wrong, so the message names it, and not the value."""
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "hunter2")
    azure_connection._default_credential.cache_clear()
    with pytest.raises(ConfigError, match="AZURE_") as raised:
        open_store("az://data/x", {"account_name": "lake"})
    assert raised.value.code == "BAD_VALUE"
    assert "hunter2" not in "".join(traceback.format_exception(raised.value))
