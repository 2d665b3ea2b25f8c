"""An object is the one that was seen, or the request is refused: what is asked of S3, and its answers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from filesink.errors import CommitConflictError, StorageError
from filesink.storage.api import Deletion
from filesink.storage.objects import EXISTS, MIB, Condition, CopyRange, version_of
from filesink.storage.s3 import S3Store
from filesink.storage.s3_client import S3Objects, options_of
from filesink.storage.s3_options import S3Options
from filesink.system import SystemIds
from tests.fakes import SettableClock
from tests.servers import S3Server
from tests.storage.s3_site import S3Site

NOW = datetime(2026, 1, 2, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
KEY = {"Bucket": "b", "Key": "k"}
VERSION = version_of('"e"', NOW_MS)


@pytest.fixture
def stub() -> Iterator[Stubber]:
    """Amazon's answers, given one after the other to requests that are as expected; all of them asked for."""
    client = boto3.client("s3", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
    with Stubber(client) as stub:
        yield stub
        stub.assert_no_pending_responses()


@pytest.fixture
def objects(stub: Stubber) -> S3Objects:
    """The bucket of these answers."""
    return S3Objects(stub.client, "b", S3Options())


@pytest.fixture
def store(objects: S3Objects) -> S3Store:
    """A store in it."""
    return S3Store(objects, "", options=S3Options(), clock=SettableClock(), ids=SystemIds())


def refuse(stub: Stubber, operation: str, expected: dict[str, Any]) -> None:
    """The next answer: a condition does not hold."""
    stub.add_client_error(operation, "PreconditionFailed", http_status_code=412, expected_params=expected)


def look(stub: Stubber, etag: str = '"e"') -> None:
    """The next answer: a listing, in which names that only begin alike stand, too."""
    found = {"Size": 3, "ETag": etag, "LastModified": NOW}
    stub.add_response(
        "list_objects_v2",
        {"Contents": [{**found, "Key": "k"}, {**found, "Key": "k0", "Size": 7}]},
        {"Bucket": "b", "Prefix": "k", "Delimiter": "/"},
    )


def test_a_file_replaced_since_the_look_is_not_removed(stub: Stubber, store: S3Store) -> None:
    """The removal names what was seen; the store's refusal is the answer, whatever comes between."""
    look(stub)
    refuse(stub, "delete_object", {**KEY, "IfMatch": '"e"'})
    assert store.delete_if_unchanged("k", size=3, version=VERSION) is Deletion.CHANGED


@pytest.mark.parametrize("etag", ['"e"', "e"])
def test_a_file_that_is_as_it_was_is_removed(stub: Stubber, store: S3Store, etag: str) -> None:
    """Under the same condition, with its quotes; a removal that nobody has bound to anything has none."""
    look(stub, etag)
    stub.add_response("delete_object", {}, {**KEY, "IfMatch": '"e"'})
    assert store.delete_if_unchanged("k", size=3, version=VERSION) is Deletion.GONE
    stub.add_response("delete_object", {}, KEY)
    store.delete("k")


def test_a_file_is_removed_whatever_it_was_encrypted_with(stub: Stubber) -> None:
    """A look that needs the key of the object, HEAD, would be answered 400 for ever."""
    extra = {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": "x" * 32}
    options = options_of({"s3_additional_kwargs": extra})
    encrypting = S3Objects(stub.client, "b", options)
    look(stub)
    stub.add_response("delete_object", {}, {**KEY, "IfMatch": '"e"'})
    store = S3Store(encrypting, "", options=options, clock=SettableClock(), ids=SystemIds())
    assert store.delete_if_unchanged("k", size=3, version=VERSION) is Deletion.GONE


def test_what_only_begins_alike_is_not_removed(stub: Stubber, store: S3Store) -> None:
    """A listing shows all keys that begin with the name; none of them is the file."""
    found = {"Size": 3, "ETag": '"e"', "LastModified": NOW, "Key": "k0"}
    stub.add_response("list_objects_v2", {"Contents": [found], "CommonPrefixes": [{"Prefix": "k/"}]})
    assert store.delete_if_unchanged("k", size=3, version=VERSION) is Deletion.GONE


def test_a_removal_of_what_is_gone_is_done(stub: Stubber, objects: S3Objects) -> None:
    """A conditional one, repeated by the client after a lost answer, is told 404."""
    stub.add_client_error("delete_object", "NoSuchKey", http_status_code=404)
    objects.delete("k", etag='"e"')


def test_only_the_bytes_that_were_seen_are_copied(stub: Stubber, objects: S3Objects) -> None:
    """A source that is another by now is refused, and not a part of somebody else's bytes."""
    expected = {
        **KEY,
        "UploadId": "u",
        "PartNumber": 2,
        "CopySource": {"Bucket": "b", "Key": "source"},
        "CopySourceRange": "bytes=5-9",
        "CopySourceIfMatch": '"e"',
    }
    source = CopyRange(key="source", etag='"e"', start=5, end=10)
    stub.add_response("upload_part_copy", {"CopyPartResult": {"ETag": '"part"'}}, expected)
    assert objects.copy_part("k", "u", number=2, source=source) == '"part"'
    refuse(stub, "upload_part_copy", expected)
    with pytest.raises(CommitConflictError) as raised:
        objects.copy_part("k", "u", number=2, source=source)
    assert raised.value.code == EXISTS


@pytest.mark.parametrize("condition", Condition)
def test_objects_are_made_under_the_condition_asked_for(
    stub: Stubber, objects: S3Objects, condition: Condition
) -> None:
    """``If-None-Match`` goes with a put and a completion, and with no other than a conditional one."""
    sent = {"IfNoneMatch": "*"} if condition is Condition.IF_ABSENT else {}
    stub.add_response("put_object", {}, {**KEY, "Body": b"1", "Metadata": {"filesink-token": "t"}, **sent})
    objects.put("k", b"1", token="t", condition=condition)
    refuse(
        stub,
        "complete_multipart_upload",
        {**KEY, "UploadId": "u", "MultipartUpload": {"Parts": []}, "MpuObjectSize": 0, **sent},
    )
    with pytest.raises(CommitConflictError):
        objects.complete("k", "u", parts=[], condition=condition)


@pytest.mark.parametrize(("code", "status"), [("403", 403), ("AccessDenied", 403), ("401", 401)])
def test_an_object_that_may_not_be_looked_at_is_not_absent(
    stub: Stubber, store: S3Store, code: str, status: int
) -> None:
    """The answer to HEAD has no body, so often no name either; 403 says nothing of what is there."""
    stub.add_client_error("head_object", code, http_status_code=status, expected_params=KEY)
    with pytest.raises(StorageError, match="permission") as raised:
        store.open_input("k")
    assert raised.value.code == "PERMISSION"
    stub.add_client_error("get_object", code, http_status_code=status, expected_params=KEY)
    with pytest.raises(StorageError, match="permission"):
        store.read("k")


def test_a_file_replaced_while_it_is_read_is_an_error(moto_server: S3Server) -> None:
    """Its reader gets the bytes of one object or none: never the beginning of one and the end of another."""
    site = S3Site(moto_server)
    site.plant("a/x", b"1" * (9 * MIB))
    with site.store().open_input("a/x") as opened:
        assert opened.read(3) == b"111"
        site.plant("a/x", b"2" * (9 * MIB))
        opened.seek(8 * MIB)
        with pytest.raises(CommitConflictError) as raised:
            opened.read(3)
    assert raised.value.code == EXISTS
