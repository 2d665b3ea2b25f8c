"""An object is the one that was seen, or the request is refused: what is asked of S3, and its answers."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import botocore
import pytest
from botocore import exceptions
from botocore.stub import Stubber

from filesink.errors import CommitConflictError, CommitStateUnknown, ConfigError, StorageError
from filesink.storage.api import Deletion
from filesink.storage.objects.api import (
    EXISTS,
    MIB,
    RACE,
    UNAVAILABLE,
    Condition,
    CopyRange,
    ObjectInfo,
    version_of,
)
from filesink.storage.s3.client import S3Objects, connect, options_of
from filesink.storage.s3.errors import explaining
from filesink.storage.s3.options import S3Options
from filesink.storage.s3.store import S3Store
from filesink.system import SystemIds
from tests.fakes import SettableClock
from tests.servers import S3Server
from tests.storage.s3.s3_site import S3Site

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


def test_a_file_of_another_length_is_not_removed(stub: Stubber, store: S3Store) -> None:
    """Whatever its etag says, which not every server makes of the bytes."""
    look(stub)
    assert store.delete_if_unchanged("k", size=4, version=VERSION) is Deletion.CHANGED


@pytest.mark.parametrize(("etag", "moment"), [("e", NOW), ('"e"', NOW.replace(microsecond=500_000))])
def test_a_version_is_the_same_however_it_is_told(
    stub: Stubber, store: S3Store, etag: str, moment: Any
) -> None:
    """Answers differ in the quotes of an etag and in the fraction of a second; the file is the same."""
    found = {"Size": 3, "ETag": etag, "LastModified": moment, "Key": "k"}
    stub.add_response("list_objects_v2", {"Contents": [found]})
    stub.add_response("delete_object", {}, {**KEY, "IfMatch": '"e"'})
    assert store.delete_if_unchanged("k", size=3, version=VERSION) is Deletion.GONE
    assert version_of('"e"', NOW_MS + 1000) != VERSION


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


def test_a_store_without_conditional_removal_is_asked_without(stub: Stubber, objects: S3Objects) -> None:
    """Whoever removes has looked just before; else an overwrite could never be completed there."""
    stub.add_client_error("delete_object", "NotImplemented", http_status_code=501)
    stub.add_response("delete_object", {}, KEY)
    objects.delete("k", etag='"e"')


@pytest.mark.parametrize(
    ("operation", "call"),
    [
        ("get_object", lambda objects: objects.get("k")),
        ("put_object", lambda objects: objects.put("k", b"", token="t", condition=Condition.IF_ABSENT)),
        ("list_objects_v2", lambda objects: objects.list_objects("k/")),
        ("list_parts", lambda objects: objects.list_parts("k", "u")),
        ("list_multipart_uploads", lambda objects: objects.list_uploads("k/")),
        ("complete_multipart_upload", lambda o: o.complete("k", "u", parts=[], condition=Condition.ALWAYS)),
    ],
)
def test_the_404_of_a_proxy_says_nothing_of_keys(
    stub: Stubber, objects: S3Objects, operation: str, call: Callable[[S3Objects], object]
) -> None:
    """It has no name of S3's: nothing is absent and nothing is lost for it."""
    stub.add_client_error(operation, "404", http_status_code=404)
    with pytest.raises(StorageError) as raised:
        call(objects)
    assert raised.value.code == UNAVAILABLE


def test_a_refusal_of_a_repeated_request_leaves_a_record_unknown(stub: Stubber, store: S3Store) -> None:
    """The client has asked before, and what it got no answer to may be done yet."""
    stub.add_client_error(
        "put_object", "QuotaExceeded", http_status_code=403, response_meta={"RetryAttempts": 1}
    )
    stub.add_client_error("head_object", "404", http_status_code=404)
    with pytest.raises(CommitStateUnknown):
        store.put_if_absent("k", b"1")
    stub.add_client_error("put_object", "AccessDenied", http_status_code=403)
    stub.add_client_error("head_object", "404", http_status_code=404)
    with pytest.raises(StorageError, match="permission"):
        store.put_if_absent("k", b"1")


@pytest.mark.parametrize(
    ("name", "status", "code"),
    [("RequestTimeTooSkewed", 403, "CLOCK"), ("ExpiredToken", 400, "EXPIRED_CREDENTIALS")],
)
def test_what_only_the_user_can_mend_is_named(
    stub: Stubber, objects: S3Objects, name: str, status: int, code: str
) -> None:
    """A clock that is wrong is no lack of permission, and a token that has expired no refusal."""
    stub.add_client_error("get_object", name, http_status_code=status)
    with pytest.raises(StorageError) as raised:
        objects.get("k")
    assert raised.value.code == code


@pytest.mark.parametrize(
    "given",
    [
        {"client_kwargs": {"region": "x"}},
        {"config_kwargs": {"no_such": "secret"}},
        {"client_kwargs": {"endpoint_url": "secret"}},
    ],
    ids=str,
)
def test_options_that_the_client_does_not_take_are_refused(given: dict[str, Any]) -> None:
    """By an error of ours, without a value."""
    with pytest.raises(ConfigError) as raised:
        connect("b", options_of(given))
    assert raised.value.code == "BAD_VALUE"
    assert "secret" not in str(raised.value)


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
    stub.add_response(
        "put_object", {"ETag": '"e"'}, {**KEY, "Body": b"1", "Metadata": {"filesink-token": "t"}, **sent}
    )
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


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("InternalError", 500),
        ("ServiceUnavailable", 503),
        ("SlowDown", 503),
        ("RequestTimeout", 408),
        ("TooManyRequests", 429),
        ("", 502),
    ],
)
def test_an_answer_that_does_not_tell_leaves_a_record_unknown(
    stub: Stubber, store: S3Store, code: str, status: int
) -> None:
    """The request may have been done, or be done yet: files of its epoch must not be discarded."""
    stub.add_client_error("put_object", code, http_status_code=status)
    stub.add_client_error("head_object", "404", http_status_code=404)
    with pytest.raises(CommitStateUnknown):
        store.put_if_absent("k", b"1")


@pytest.mark.parametrize(
    "lost",
    [
        exceptions.ReadTimeoutError(endpoint_url="http://s3"),
        exceptions.ConnectionClosedError(endpoint_url="http://s3"),
        exceptions.IncompleteReadError(actual_bytes=0, expected_bytes=1),
    ],
)
def test_a_request_without_an_answer_may_have_been_done(lost: Exception) -> None:
    """A client that heard nothing knows nothing, and says so by one code."""
    with pytest.raises(StorageError) as raised, explaining("create", "s3://b/k"):
        raise lost
    assert raised.value.code == UNAVAILABLE


@pytest.mark.parametrize(
    "missing",
    [
        exceptions.NoCredentialsError(),
        exceptions.PartialCredentialsError(provider="env", cred_var="AWS_SECRET_ACCESS_KEY"),
        exceptions.CredentialRetrievalError(provider="sso", error_msg="hunter2"),
        exceptions.ProfileNotFound(profile="hunter2"),
        exceptions.NoAuthTokenError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_without_credentials_nothing_was_asked(missing: Exception) -> None:
    """No store is blamed for what the client did not send; the error says what to give."""
    with pytest.raises(StorageError, match="pass them") as raised, explaining("create", "s3://b/k"):
        raise missing
    assert raised.value.code == "NO_CREDENTIALS"
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(("code", "status"), [("", 409), ("OperationAborted", 409), ("", 412)])
def test_a_refusal_is_known_by_its_status_alone(
    stub: Stubber, objects: S3Objects, code: str, status: int
) -> None:
    """Not every server tells the name of what has happened."""
    stub.add_client_error("put_object", code, http_status_code=status)
    with pytest.raises(StorageError) as raised:
        objects.put("k", b"1", token="t", condition=Condition.IF_ABSENT)
    assert raised.value.code == (RACE if status == 409 else EXISTS)


@pytest.mark.parametrize(
    "expired",
    [
        exceptions.TokenRetrievalError(provider="sso", error_msg="hunter2"),
        exceptions.UnauthorizedSSOTokenError(),
        RuntimeError("Credentials were refreshed, but the refreshed credentials are still expired."),
    ],
    ids=lambda error: type(error).__name__,
)
def test_credentials_that_cannot_be_renewed_have_expired(expired: Exception) -> None:
    """One of these the client raises as no error of its own."""
    with pytest.raises(StorageError, match="pass newer ones") as raised, explaining("create", "s3://b/k"):
        raise expired
    assert raised.value.code == "EXPIRED_CREDENTIALS"
    assert "hunter2" not in str(raised.value)


def test_a_redirection_without_end_is_a_wrong_region() -> None:
    """A server that answers 301 without a region is asked again by the client until its stack is full."""
    with pytest.raises(StorageError) as raised, explaining("create", "s3://b/k"):
        raise RecursionError("maximum recursion depth exceeded")
    assert raised.value.code == "REGION"


def test_what_is_no_answer_does_not_look_like_one() -> None:
    """A defect of the program comes out as it is."""
    with pytest.raises(RuntimeError, match="cannot schedule"), explaining("create", "s3://b/k"):
        raise RuntimeError("cannot schedule new futures")


def test_a_key_of_the_customer_goes_with_every_request_that_touches_bytes(stub: Stubber) -> None:
    """Made, read, copied and looked at with the key; removed and listed without it."""
    extra = {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": "x" * 32}
    objects = S3Objects(stub.client, "b", options_of({"s3_additional_kwargs": extra}))
    part = {**KEY, "UploadId": "u", "PartNumber": 1}
    upload = {**KEY, "UploadId": "u", "MultipartUpload": {"Parts": []}, "MpuObjectSize": 0}
    stub.add_response(
        "create_multipart_upload",
        {"UploadId": "u"},
        {**KEY, "Metadata": {"filesink-token": "t"}, **_encrypted()},
    )
    stub.add_response("upload_part", {"ETag": '"p"'}, {**part, "Body": b"1", **_encrypted()})
    stub.add_response(
        "upload_part_copy",
        {"CopyPartResult": {"ETag": '"p"'}},
        {
            **part,
            "CopySource": {"Bucket": "b", "Key": "source"},
            "CopySourceRange": "bytes=0-0",
            "CopySourceIfMatch": '"e"',
            **_encrypted(),
            **_encrypted("CopySource"),
        },
    )
    stub.add_response("complete_multipart_upload", {"ETag": '"e"'}, {**upload, **_encrypted()})
    stub.add_response("get_object", {"Body": io.BytesIO(b"1")}, {**KEY, **_encrypted()})
    stub.add_response(
        "head_object", {"ContentLength": 1, "ETag": '"e"', "LastModified": NOW}, {**KEY, **_encrypted()}
    )
    stub.add_response("delete_object", {}, KEY)
    objects.create_upload("k", token="t")
    objects.upload_part("k", "u", number=1, data=b"1")
    objects.copy_part("k", "u", number=1, source=CopyRange(key="source", etag='"e"', start=0, end=1))
    objects.complete("k", "u", parts=[], condition=Condition.ALWAYS)
    assert objects.get("k") == b"1"
    objects.head("k")
    objects.delete("k")


def _encrypted(prefix: str = "") -> dict[str, Any]:
    """What is sent of a customer's key; the client adds its digest."""
    return {f"{prefix}SSECustomerAlgorithm": "AES256", f"{prefix}SSECustomerKey": "x" * 32}


def test_names_in_metadata_are_read_in_any_case(stub: Stubber, objects: S3Objects) -> None:
    """Some servers give them back as they like; the token is the one that was sent."""
    answer = {"ContentLength": 1, "ETag": '"e"', "LastModified": NOW, "Metadata": {"Filesink-Token": "t"}}
    stub.add_response("head_object", answer)
    assert objects.head("k") == ObjectInfo(size=1, etag='"e"', mtime_ms=NOW_MS, token="t")


def test_an_upload_that_is_gone_is_aborted_and_has_no_parts(stub: Stubber, objects: S3Objects) -> None:
    """Absence is the aim of the one and an answer to the other; other refusals are errors of both."""
    for operation in ("abort_multipart_upload", "list_parts"):
        stub.add_client_error(operation, "NoSuchUpload", http_status_code=404)
    objects.abort("k", "u")
    assert objects.list_parts("k", "u") is None
    for operation in ("abort_multipart_upload", "list_parts"):
        stub.add_client_error(operation, "AccessDenied", http_status_code=403)
    for call in (objects.abort, objects.list_parts):
        with pytest.raises(StorageError, match="permission"):
            call("k", "u")


@pytest.mark.parametrize("answer", ["501", "silence"])
def test_a_server_that_cannot_copy_is_heard(stub: Stubber, objects: S3Objects, answer: str) -> None:
    """It says so by a status, or by an answer without an etag: then bytes are read and sent."""
    if answer == "501":
        stub.add_client_error("upload_part_copy", "NotImplemented", http_status_code=501)
    else:
        stub.add_response("upload_part_copy", {})
    source = CopyRange(key="source", etag='"e"', start=0, end=1)
    assert objects.copy_part("k", "u", number=1, source=source) is None


def test_the_client_gives_up_when_the_options_say() -> None:
    """After a minute without a byte, and not later than after five requests, if they say nothing of it."""
    where = {"key": "a", "secret": "b", "client_kwargs": {"region_name": "us-east-1"}}
    told = []
    for given in ({}, {"read_timeout": 5, "retries": {"total_max_attempts": 2}}):
        config = connect("b", options_of({**where, "config_kwargs": given}))._client.meta.config
        told.append((config.read_timeout, config.retries["total_max_attempts"]))
    assert told == [(60, 5), (5, 2)]


def test_what_the_client_refuses_was_not_sent() -> None:
    """It is the user's to correct: no store is blamed, and no record may yet appear."""
    refusal = exceptions.ParamValidationError(report="hunter2")
    with pytest.raises(StorageError, match="not valid") as raised, explaining("create", "s3://b/k"):
        raise refusal
    assert raised.value.code == "REFUSED"
    assert "hunter2" not in str(raised.value)


def test_an_anonymous_client_signs_nothing() -> None:
    """Who reads a public bucket has no credentials, and needs none."""
    found = connect("b", options_of({"anon": True, "client_kwargs": {"region_name": "us-east-1"}}))
    assert found._client.meta.config.signature_version is botocore.UNSIGNED


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"key": "a", "secret": "b", "token": "passing"}, "token=passing"),
        ({"profile": "theirs"}, "THEIRKEY"),
        ({"key": "a", "secret": "b", "use_ssl": False}, "http://"),
    ],
    ids=["token", "profile", "use_ssl"],
)
def test_requests_are_signed_and_sent_as_the_options_say(
    given: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With what was given, or with what a profile holds; an address that the client signs shows it."""
    credentials = tmp_path / "credentials"
    credentials.write_text("[theirs]\naws_access_key_id = THEIRKEY\naws_secret_access_key = b\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(credentials))
    options = options_of({**given, "client_kwargs": {"region_name": "us-east-1"}})
    assert said in connect("b", options)._client.generate_presigned_url("get_object", KEY)
