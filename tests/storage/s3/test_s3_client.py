"""The client of S3: options, secrets, pages, processes."""

from __future__ import annotations

import logging
import multiprocessing
import pickle
import traceback
from datetime import UTC, datetime

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ReadTimeoutError
from botocore.stub import Stubber

from filesink import FileSink
from filesink.errors import ConfigError, FilesinkError, StorageError
from filesink.parts.committables import CommittableCodec, PendingFile
from filesink.storage.api import PutResult
from filesink.storage.base_path import check_base_path
from filesink.storage.objects.api import (
    LARGEST_PART,
    MIB,
    MOST_PARTS,
    SMALLEST_PART,
    UNAVAILABLE,
    Condition,
    CopyRange,
    FoundUpload,
)
from filesink.storage.objects.multipart import size_of_part
from filesink.storage.objects.options import ConditionalWrites
from filesink.storage.open import open_store
from filesink.storage.s3.client import S3Objects, connect, options_of
from filesink.storage.s3.options import S3Options
from formats import ParquetWriterFactory
from tests.contracts.store_site import hold, stage
from tests.servers import S3Server
from tests.storage.s3.s3_site import S3Site

SECRETS = {"key": "AKIAHUNTER2", "secret": "hunter2+secret/key", "token": "hunter2-session"}
NOW = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("s3://bucket/a/b", "s3://bucket/a/b"),
        ("s3a://bucket/a/b/", "s3://bucket/a/b"),
        ("S3N://bucket//a", "s3://bucket/a"),
        ("s3://bucket", "s3://bucket"),
        ("s3://bucket/", "s3://bucket"),
        ("s3://bucket/é a+b%20", "s3://bucket/é a+b%20"),
    ],
)
def test_paths_have_one_spelling(given, path):
    """Spark's schemes are the same store; nothing is unquoted."""
    assert check_base_path(given) == path


@pytest.mark.parametrize("given", ["s3:bucket/a", "s3:///a", "s3://b", "s3://bucket/../a", "s3://bu cket/a"])
def test_odd_paths_are_refused(given):
    """A path names a bucket and leads nowhere else."""
    with pytest.raises(ConfigError) as raised:
        check_base_path(given)
    assert raised.value.code == "BAD_VALUE"


@pytest.mark.parametrize(
    "given",
    [
        "s3://bucket/p?X-Amz-Credential=a&X-Amz-Signature=hunter2",
        "az://container/p?sv=2024-01-01&sig=hunter2",
        "abfss://c@account.dfs.core.windows.net/p?se=2027&sig=hunter2",
        "https://account.blob.core.windows.net/c?sig=hunter2",
    ],
)
def test_signed_addresses_are_refused_and_not_repeated(given):
    """A token in a path would stand in logs, reports and the metastore."""
    with pytest.raises(ConfigError) as raised:
        check_base_path(given)
    assert raised.value.code == "CREDENTIALS"
    assert "hunter2" not in str(raised.value)
    assert check_base_path("s3://bucket/what?&sign") == "s3://bucket/what?&sign"


@pytest.mark.parametrize(
    "options",
    [{"key": "hunter2"}, {"secret": "hunter2"}, {"key": "", "secret": "hunter2"}, {"token": "hunter2"}],
)
def test_half_a_pair_of_keys_is_refused(options):
    """It would be sent as it is, or completed with another half from the environment."""
    with pytest.raises(ConfigError, match=r"only .* is set.*fs\.s3a\.secret\.key") as raised:
        options_of(options)
    assert raised.value.code == "CREDENTIALS"
    assert "hunter2" not in str(raised.value)


def test_an_empty_text_is_not_set():
    """As of a variable that is not there; of other options it is no value."""
    assert options_of({"key": "", "secret": "", "token": "", "endpoint_url": ""}) == options_of({})
    with pytest.raises(ConfigError):
        options_of({"part_size": ""})


@pytest.mark.parametrize(
    "options",
    [
        {"part_size": SMALLEST_PART - 1},
        {"part_size": LARGEST_PART + 1},
        {"part_size": "8MiB"},
        {"max_concurrency": 0},
        {"max_concurrency": True},
        {"conditional_writes": "sometimes"},
        {"endpoint_url": "host:9000"},
        {"client_kwargs": "hunter2"},
        {"anon": "yes"},
        {"key": 7},
        {"endpoint_url": "http://[hunter2"},
        {"endpoint_url": "http://host:hunter2"},
        {"client_kwargs": {"endpoint_url": "http://[hunter2"}},
        {"assume_role": {"RoleSessionName": "hunter2"}},
        {"assume_role": "hunter2"},
    ],
)
def test_options_are_checked(options):
    """Amazon's limits, and types; a value is never repeated."""
    with pytest.raises(ConfigError) as raised:
        options_of(options)
    assert raised.value.code == "BAD_VALUE"
    assert "hunter2" not in str(raised.value)


def test_parts_and_threads_unless_something_else_is_said():
    """What the pages on object stores promise of memory: ten parts of 8 MiB on their way."""
    assert S3Options() == S3Options(part_size=8 * MIB, max_concurrency=10)
    assert S3Options().conditional_writes is ConditionalWrites.REQUIRED


def test_unknown_options_are_named_and_values_are_not():
    """A slip of the pen is found before it costs a night."""
    with pytest.raises(ConfigError, match="did you mean 'endpoint_url'") as raised:
        options_of({"endpoint_urll": "hunter2"})
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://user:hunter2@host",
        "http://hunter2@host",
        "http://user:hunter2@host:1/?",
        "http://h/?k=hunter2",
    ],
)
@pytest.mark.parametrize("place", ["endpoint_url", "client_kwargs", "sts_kwargs"])
def test_credentials_in_addresses_are_refused(place, endpoint):
    """Addresses are logged by everybody who meets them."""
    with pytest.raises(ConfigError) as raised:
        options_of({place: endpoint if place == "endpoint_url" else {"endpoint_url": endpoint}})
    assert raised.value.code == "CREDENTIALS"
    assert "hunter2" not in "".join(traceback.format_exception(raised.value))


def test_options_have_the_names_of_other_libraries_and_none_is_none():
    """One dictionary serves all: those of s3fs, some by two names, and what is not known there."""
    assert options_of({"username": "a", "password": "b", "default_block_size": 9 * MIB, "token": None}) == (
        S3Options(key="a", secret="b", part_size=9 * MIB)
    )


def test_fsspec_configuration_counts_and_options_win(monkeypatch):
    """One place for all libraries that read it."""
    monkeypatch.setattr("fsspec.config.conf", {"s3": {"profile": "theirs", "requester_pays": True}})
    assert options_of({"profile": "mine"}) == S3Options(profile="mine", requester_pays=True)


def test_secrets_are_nowhere(moto_server: S3Server, caplog):
    """Not in a sink's repr, a committable, an error with its causes, or a log."""
    caplog.set_level(logging.DEBUG, logger="filesink")
    options = {**moto_server.options, **SECRETS}
    sink = FileSink.for_bulk_format("s3://bucket/a", ParquetWriterFactory()).with_storage_options(**options)
    site = S3Site(moto_server, options=SECRETS)
    store = site.store()
    staged = stage(store, "a/part-0", b"abc")
    pending = PendingFile(bucket="a", target="a/part-0", staged=staged, rows=1, size=3)
    told = [repr(sink), repr(sink.build()), repr(store), repr(options_of(SECRETS)), repr(pending)]
    told.append(CommittableCodec().encode([pending]).decode())
    for path in ("s3://no-such-bucket-at-all/x", site.path):
        with pytest.raises(FilesinkError) as raised:
            open_store(path, {**options, "endpoint_url": "http://127.0.0.1:9"}).prepare()
        told += [
            "".join(traceback.format_exception(raised.value)),
            pickle.dumps(raised.value).decode("latin1"),
        ]
    told.append(caplog.text)
    assert not [text for text in told for secret in ("HUNTER2", "hunter2") if secret in text]


def test_wrong_credentials_say_what_to_do(rclone_server: S3Server):
    """The server's own word is in the message, and advice; the key is not."""
    store = open_store("s3://bucket/a", {**rclone_server.options, "secret": "hunter2"})
    with pytest.raises(StorageError, match="its secret is another") as raised:
        store.prepare()
    assert raised.value.code == "WRONG_CREDENTIALS"


def test_a_store_without_conditions_is_refused_for_real(rclone_server: S3Server):
    """Found by the probe, unless the user vouches for one driver."""
    site = S3Site(rclone_server, prefix="x", options={"conditional_writes": "required"})
    with pytest.raises(ConfigError) as raised:
        site.store().prepare()
    assert raised.value.code == "NO_EXCLUSIVE_PUBLISH"
    S3Site(rclone_server, prefix="x").store().prepare()


def test_a_bucket_has_to_exist(moto_server: S3Server):
    """Who pays for a bucket makes it."""
    with pytest.raises(ConfigError) as raised:
        open_store("s3://no-such-bucket-here/a", moto_server.options).prepare()
    assert raised.value.code == "NO_BUCKET"


def test_a_process_has_its_own_client(moto_server: S3Server):
    """A fork after a client was made gets another one, and it works."""
    site = S3Site(moto_server)
    site.store().put_if_absent("a/x", b"1")
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(_read, (site.path, moto_server.options)) == b"1"


def _read(path, options):
    return open_store(path, options).read("a/x")


def test_parts_grow_so_that_ten_thousand_are_enough():
    """8 MiB parts reach 8 TB and more; equal steps of a thousand; never above Amazon's limit."""
    sizes = [size_of_part(number, 8 * MIB) for number in range(1, MOST_PARTS + 1)]
    assert sizes == sorted(sizes)
    assert set(sizes[:1000]) == {8 * MIB}
    assert sizes[-1] <= LARGEST_PART
    assert sum(sizes) > 8 * 10**12
    assert size_of_part(MOST_PARTS, LARGEST_PART) == LARGEST_PART


def test_all_pages_are_read():
    """Listings come in pages of a thousand; what is on the second counts as well."""
    client = boto3.client("s3", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
    upload = {"Key": "p/x", "Initiated": NOW}
    page = {"Bucket": "b", "Key": "p/x", "UploadId": "u", "MaxParts": 1}
    part = {"ETag": '"e"', "Size": 1, "LastModified": NOW}
    with Stubber(client) as stub:
        stub.add_response(
            "list_multipart_uploads",
            {
                "Uploads": [{**upload, "UploadId": "1"}],
                "IsTruncated": True,
                "NextKeyMarker": "p/x",
                "NextUploadIdMarker": "1",
            },
            {"Bucket": "b", "Prefix": "p/", "Delimiter": "/"},
        )
        stub.add_response(
            "list_multipart_uploads",
            {"Uploads": [{**upload, "UploadId": "2"}], "CommonPrefixes": [{"Prefix": "p/q/"}]},
            {"Bucket": "b", "Prefix": "p/", "Delimiter": "/", "KeyMarker": "p/x", "UploadIdMarker": "1"},
        )
        first = {**page, "Parts": [{**part, "PartNumber": 1}], "IsTruncated": True, "NextPartNumberMarker": 1}
        second = {**page, "Parts": [{**part, "PartNumber": 2}]}
        stub.add_response("list_parts", first)
        stub.add_response("list_parts", second)
        found = {"Size": 1, "ETag": '"e"', "LastModified": NOW}
        stub.add_response(
            "list_objects_v2",
            {
                "Contents": [{**found, "Key": "p/1"}],
                "CommonPrefixes": [{"Prefix": "p/q/"}],
                "IsTruncated": True,
                "NextContinuationToken": "t",
            },
            {"Bucket": "b", "Prefix": "p/", "Delimiter": "/"},
        )
        stub.add_response(
            "list_objects_v2",
            {"Contents": [{**found, "Key": "p/2"}], "CommonPrefixes": [{"Prefix": "p/r/"}]},
            {"Bucket": "b", "Prefix": "p/", "Delimiter": "/", "ContinuationToken": "t"},
        )
        objects = S3Objects(client, "b", S3Options())
        begun = int(NOW.timestamp() * 1000)
        assert objects.list_uploads("p/") == (
            [FoundUpload(key="p/x", upload_id=number, begun_ms=begun) for number in "12"],
            ["p/q/"],
        )
        assert [found.number for found in objects.list_parts("p/x", "u") or ()] == [1, 2]
        listed, below = objects.list_objects("p/")
        assert ([each.key for each in listed], below) == (["p/1", "p/2"], ["p/q/", "p/r/"])


MADE_WITH = {
    "ACL": "private",
    "BucketKeyEnabled": True,
    "CacheControl": "no-cache",
    "ContentType": "text/plain",
    "SSEKMSEncryptionContext": "e30=",
    "SSEKMSKeyId": "theirs",
    "ServerSideEncryption": "aws:kms",
    "Tagging": "a=b",
}


def test_requester_pays_and_settings_of_objects_are_sent():
    """Who reads somebody else's bucket says that he pays; encryption and the like go to what is made."""
    client = boto3.client("s3", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
    given = {**MADE_WITH, "StorageClass": "STANDARD_IA"}
    expected = {"Bucket": "b", "Key": "k", "RequestPayer": "requester"}
    made = {**expected, "Metadata": {"filesink-token": "t"}}
    with Stubber(client) as stub:
        upload = {"UploadId": "u", "AbortDate": NOW}
        stub.add_response("create_multipart_upload", upload, {**made, **given})
        stub.add_response("put_object", {"ETag": '"e"'}, {**made, **MADE_WITH, "Body": b"1"})
        stub.add_client_error("head_object", http_status_code=404, expected_params=expected)
        objects = S3Objects(client, "b", options_of({"requester_pays": True, "s3_additional_kwargs": given}))
        assert objects.create_upload("k", token="t").abort_ms == int(NOW.timestamp() * 1000)
        objects.put("k", b"1", token="t", condition=Condition.ALWAYS)
        assert objects.head("k") is None


class Raw:
    """The body of an answer."""

    def __init__(self, body=b""):
        self.body = body

    def stream(self, **_):
        yield self.body


def error(status, code):
    """An answer that refuses."""
    return status, {}, f"<Error><Code>{code}</Code></Error>".encode()


def answering(monkeypatch, *answers):
    """A bucket whose client gets ``answers`` in turn; ``None`` is none at all."""
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0)
    monkeypatch.setattr("botocore.retries.bucket.TokenBucket.acquire", lambda *_, **__: True)  # waits as well
    objects = connect("b", S3Options(key="a", secret="b", client_kwargs=(("region_name", "us-east-1"),)))
    left = iter(answers)

    def answer(request, **_):
        found = next(left)
        if found is None:
            raise ReadTimeoutError(endpoint_url=request.url)
        status, headers, body = found
        return AWSResponse(request.url, status, headers, Raw(body))

    monkeypatch.setattr(objects._client._endpoint.http_session, "send", answer)
    return objects


ABC = '"900150983cd24fb0d6963f7d28e17f72"'  # the digest of b"abc"
KMS = {"x-amz-server-side-encryption": "aws:kms"}
COPIED = b"<CopyPartResult><ETag>&quot;e&quot;</ETag></CopyPartResult>"
UNANSWERED = [None, error(500, "InternalError"), error(503, "503")]


@pytest.mark.parametrize("first", UNANSWERED, ids=["silence", "500", "proxy"])
def test_a_part_that_may_yet_get_another_etag_is_not_taken(monkeypatch, first):
    """A request that is carried out after its repetition would replace the part that a record names."""
    slow_down = error(503, "SlowDown")
    objects = answering(monkeypatch, first, slow_down, (200, {"ETag": '"e"', **KMS}, b""))
    with pytest.raises(StorageError, match=r"'s3://b/k': .* was repeated") as raised:
        objects.upload_part("k", "u", number=1, data=bytearray(b"abc"))
    assert raised.value.code == UNAVAILABLE
    objects = answering(monkeypatch, first, (200, KMS, COPIED))
    with pytest.raises(StorageError, match=r"'s3://b/k': .* was repeated"):
        objects.copy_part("k", "u", number=1, source=CopyRange(key="x", etag="e", start=0, end=1))


@pytest.mark.parametrize(
    ("first", "etag"), [*((first, ABC) for first in UNANSWERED), (error(503, "SlowDown"), '"e"')]
)
def test_a_repeated_part_whose_etag_stays_is_taken(monkeypatch, first, etag):
    """The digest of the same bytes is the same; and a store that asks to slow down has done nothing."""
    objects = answering(monkeypatch, first, (200, {"ETag": etag}, b""))
    assert objects.upload_part("k", "u", number=1, data=b"abc") == etag
    encrypted = KMS if etag == '"e"' else {}
    objects = answering(monkeypatch, first, (200, encrypted, COPIED))
    source = CopyRange(key="x", etag="e", start=0, end=1)
    assert objects.copy_part("k", "u", number=1, source=source) == '"e"'


@pytest.mark.parametrize(
    ("status", "name", "code"),
    [
        (403, "InvalidAccessKeyId", "WRONG_CREDENTIALS"),
        (403, "SignatureDoesNotMatch", "WRONG_CREDENTIALS"),
        (400, "ExpiredToken", "EXPIRED_CREDENTIALS"),
        (403, "AccessDenied", "PERMISSION"),
        (400, "AuthorizationHeaderMalformed", "REGION"),
        (400, "ThrottlingException", "KMS_THROTTLED"),
        (400, "KMS.DisabledException", "KMS_KEY"),
        (503, "SlowDown", UNAVAILABLE),
        (400, "InvalidArgument", "REFUSED"),
    ],
)
def test_refusals_are_told_apart(monkeypatch, status, name, code):
    """None, wrong, expired, forbidden, no region, KMS: each has another remedy, which is named."""
    objects = answering(monkeypatch, *[error(status, name)] * 10)
    with pytest.raises(StorageError, match=name.partition(".")[0]) as raised:
        objects.delete("k")
    assert raised.value.code == code
    assert raised.value.is_permanent is (code not in {UNAVAILABLE, "KMS_THROTTLED"})


@pytest.fixture
def no_credentials(monkeypatch, tmp_path):
    """A host on which nothing is found."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.mark.usefixtures("no_credentials")
def test_one_failure_does_not_stick_to_the_process(moto_server: S3Server, monkeypatch):
    """A client keeps what it has found, also that it was nothing; whoever sets it right goes on."""
    site = S3Site(moto_server)
    options = {name: value for name, value in moto_server.options.items() if name not in {"key", "secret"}}
    with pytest.raises(StorageError) as raised:
        open_store(site.path, options).prepare()
    assert raised.value.code == "NO_CREDENTIALS"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    open_store(site.path, options).prepare()


@pytest.mark.usefixtures("no_credentials")
def test_a_role_is_assumed(moto_server: S3Server):
    """By the credentials that were given; requests are signed with those of the role."""
    site = S3Site(moto_server)
    role = {"RoleArn": "arn:aws:iam::123456789012:role/writer", "RoleSessionName": "hunter2"}
    endpoint = moto_server.options["endpoint_url"]
    options = {**moto_server.options, "assume_role": role, "sts_kwargs": {"endpoint_url": endpoint}}
    signed = []
    objects = connect(site.bucket, options_of(options))
    objects._client.meta.events.register(
        "before-send.s3", lambda request, **_: signed.append(str(request.headers["Authorization"]))
    )
    objects.put("k", b"1", token="t", condition=Condition.IF_ABSENT)
    assert site.client.get_object(Bucket=site.bucket, Key="k")["Body"].read() == b"1"
    assert "Credential=ASIA" in signed[0]
    assert "hunter2" not in repr(options_of(options))


@pytest.mark.usefixtures("no_credentials")
def test_a_role_of_nobody_is_no_role():
    """Without credentials of one's own there is nothing to assume it with."""
    role = {"assume_role": {"RoleArn": "arn:aws:iam::123456789012:role/writer"}}
    with pytest.raises(StorageError) as raised:
        connect("bucket", options_of(role))
    assert raised.value.code == "NO_CREDENTIALS"


def test_an_archive_class_is_for_finished_files_only(moto_server: S3Server):
    """Records and held files are read again, so the ledger works, and what is held can be joined."""
    site = S3Site(moto_server, options={"s3_additional_kwargs": {"StorageClass": "GLACIER"}})
    store = site.store()
    store.prepare()
    assert store.put_if_absent("_filesink/s/0.record", b"abc") is PutResult.CREATED
    assert store.read("_filesink/s/0.record") == b"abc"
    small = hold(store, "a/.held-0", b"small")
    large = hold(store, "a/.held-1", bytes(9 * MIB))
    store.publish(stage(store, "a/part-0", b"abc"), "a/part-0")
    store.publish(store.concat([small, large], "a/.joined", target="a/part-1"), "a/part-1")
    classes = {name.rpartition("/")[2]: site.storage_class(name) for name in site.names()}
    assert classes == {
        "0.record": "STANDARD",
        **dict.fromkeys([staged.path.rpartition("/")[2] for staged in (small, large)], "STANDARD"),
        **dict.fromkeys(["part-0", "part-1"], "GLACIER"),
    }
    with pytest.raises(StorageError, match="restore") as raised:
        store.read("a/part-0")
    assert raised.value.code == "ARCHIVED"
