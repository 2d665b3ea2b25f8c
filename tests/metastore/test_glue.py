"""Glue's catalog keeps the contract, as far as moto behaves like Glue."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from filesink.errors import ConfigError, DependencyError, MetastoreConflictError, MetastoreError
from filesink.metastore.api import Column, Metastore, Partition, Table, TableChange, TableName, Values
from filesink.metastore.glue.metastore import GlueCatalog
from tests.contracts.metastore_contract import MetastoreContract, MetastoreSite, partition
from tests.fakes import SettableClock

boto3 = pytest.importorskip("boto3", reason="the extra 'glue' is not installed")
moto = pytest.importorskip("moto", reason="moto is not installed")


@dataclass
class GlueSite(MetastoreSite):
    """Glue asked by a bare client."""

    client: Any = None
    root: str = "s3://bucket/warehouse"

    def metastore(self) -> Metastore:
        return GlueCatalog(self.client)

    def partitions(self, name: TableName) -> dict[Values, tuple[str, dict[str, str]]]:
        pages = self.client.get_paginator("get_partitions")
        found = pages.paginate(DatabaseName=name.database, TableName=name.table)
        return {
            tuple(one["Values"]): (one["StorageDescriptor"]["Location"], one["Parameters"])
            for page in found
            for one in page["Partitions"]
        }

    def drop_table(self, name: TableName) -> None:
        self.client.delete_table(DatabaseName=name.database, Name=name.table)

    def columns(self, name: TableName) -> dict[str, str]:
        found = self.client.get_table(DatabaseName=name.database, Name=name.table)["Table"]
        both = (*found["StorageDescriptor"]["Columns"], *found["PartitionKeys"])
        return {column["Name"]: column["Type"] for column in both}


@pytest.fixture(scope="module")
def session() -> Any:
    """Reads what Glue's calls look like once, not for each account."""
    return boto3.Session("testing", "testing", region_name="eu-central-1")


@pytest.fixture
def site(session: Any) -> Iterator[MetastoreSite]:
    """A fresh account."""
    with moto.mock_aws():
        client = session.client("glue")
        client.create_database(DatabaseInput={"Name": "default"})
        yield GlueSite(client=client)


class TestGlueCatalog(MetastoreContract):
    """The conformance suite, against moto."""

    def test_more_than_one_request(self, site: MetastoreSite, metastore: Metastore, table: Table) -> None:
        """Glue takes a hundred partitions in a request."""
        many = [partition(table, f"d{i}") for i in range(230)]
        metastore.add_partitions(table, many)
        assert len(metastore.get_partitions(table, [one.values for one in many])) == 230
        assert len(site.partitions(table.name)) == 230


def test_a_partition_gets_the_columns_that_were_added_since(site: Any) -> None:
    """With its next change, as rows that have them may lie there by then; columns of its own stay."""
    metastore, table = site.metastore(), site.fresh_table()
    metastore.create_table(table)
    metastore.add_partitions(table, [partition(table, day) for day in ("d1", "d2", "d3")])
    of_its_own = _storage(site, table, "d3")
    of_its_own["Columns"][0]["Type"] = "binary"
    site.client.update_partition(
        DatabaseName=table.name.database, TableName=table.name.table, PartitionValueList=["d3", "x"],
        PartitionInput={"Values": ["d3", "x"], "StorageDescriptor": of_its_own},
    )  # fmt: skip
    metastore.alter_table(table.name, TableChange(new_columns=(Column(name="Added", type="string"),)))
    grown = metastore.existing_table(table.name)
    metastore.alter_partitions(grown, [partition(table, day, seen="1") for day in ("d1", "d3")])
    names = {
        day: [one["Name"] for one in _storage(site, table, day)["Columns"]] for day in ("d1", "d2", "d3")
    }
    assert names["d1"] == [*names["d2"], "added"]
    assert names["d3"] == names["d2"]


def _storage(site: Any, table: Table, day: str) -> dict[str, Any]:
    found = site.client.get_partition(
        DatabaseName=table.name.database, TableName=table.name.table, PartitionValues=[day, "x"]
    )
    storage: dict[str, Any] = found["Partition"]["StorageDescriptor"]
    return storage


def test_buckets_of_a_table_are_known() -> None:
    """Glue tells them beside the columns."""

    class Client:
        def get_table(self, **arguments: object) -> dict[str, object]:
            del arguments
            return {"Table": {"StorageDescriptor": {"BucketColumns": ["id"]}}}

    found = GlueCatalog(Client()).get_table(TableName.parse("a.b"))
    assert found is not None
    assert found.bucket_columns == ("id",)


def test_the_catalog_of_another_account() -> None:
    """Its id goes with every request."""
    asked = []

    def answer(call: str, *, CatalogId: str, **_arguments: object) -> dict[str, Any]:  # noqa: N803 - Glue's name
        asked.append((call, CatalogId))
        return {"Table": {"StorageDescriptor": {"Columns": []}}}

    calls = ("create_table", "get_table", "update_table", "batch_get_partition")
    client = SimpleNamespace(**{call: partial(answer, call) for call in calls})
    catalog, table = GlueCatalog(client, catalog_id="123"), GlueSite().fresh_table()
    catalog.create_table(table)
    catalog.alter_table(table.name, TableChange())
    catalog.get_partitions(table, [("d", "k")])
    assert asked == [(call, "123") for call in calls]


class Broken:
    """A client whose every call fails."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def get_table(self, **arguments: object) -> None:
        del arguments
        raise self._error


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("AccessDeniedException", MetastoreConflictError),
        ("UnrecognizedClientException", MetastoreConflictError),
        ("ExpiredTokenException", MetastoreConflictError),
        ("InvalidSignatureException", MetastoreConflictError),
        ("InternalServiceException", MetastoreError),
        ("ThrottlingException", MetastoreError),
        ("OperationTimeoutException", MetastoreError),
    ],
)
def test_errors_of_the_service(code: str, kind: type[Exception]) -> None:
    """What can be tried again is told from what cannot; Glue's own sentence is told, but for secrets."""
    from botocore.exceptions import ClientError

    sentence = "User: arn:aws:iam::1:user/u may not; token=secret"
    error = ClientError({"Error": {"Code": code, "Message": sentence}}, "GetTable")
    with pytest.raises(MetastoreError) as caught:
        GlueCatalog(Broken(error)).get_table(TableName.parse("a.b"))
    assert type(caught.value) is kind
    assert "User: arn:aws:iam::1:user/u may not; token=…" in str(caught.value)


@pytest.mark.parametrize("error", ["NoCredentialsError", "NoAuthTokenError", "UnauthorizedSSOTokenError"])
def test_who_cannot_be_asked_for_is_not_tried_again(error: str) -> None:
    """Without credentials nothing is sent, now or in half a minute."""
    from botocore import exceptions

    with pytest.raises(MetastoreConflictError) as caught:
        GlueCatalog(Broken(getattr(exceptions, error)())).get_table(TableName.parse("a.b"))
    assert caught.value.code == "METASTORE_LOGIN"


@pytest.mark.parametrize("environment", [{}, {"AWS_DEFAULT_REGION": "x y"}, {"AWS_PROFILE": "nobody"}])
def test_an_environment_that_makes_no_client(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Said when it is built, with boto3's own sentence."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with monkeypatch.context() as patch:
        patch.setattr(boto3, "DEFAULT_SESSION", None)
        with pytest.raises(ConfigError) as caught:
            GlueCatalog()
    assert caught.value.code == "GLUE_CLIENT"


def test_no_answer_is_unknown() -> None:
    """A time-out says nothing about what was done."""
    from botocore.exceptions import ReadTimeoutError

    with pytest.raises(MetastoreError) as caught:
        GlueCatalog(Broken(ReadTimeoutError(endpoint_url="http://x"))).get_table(TableName.parse("a.b"))
    assert caught.value.code == "METASTORE_UNKNOWN"


def test_glue_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra to install is named when the sink is built."""
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(DependencyError) as caught:
        GlueCatalog()
    assert caught.value.code == "GLUE"


class Busy:
    """A client of a service that answers for one partition at a time."""

    def batch_get_partition(self, *, PartitionsToGet: list[dict[str, Any]], **_where: str) -> dict[str, Any]:  # noqa: N803 - Glue's name
        first, *left = PartitionsToGet
        found = {**first, "StorageDescriptor": {"Location": "s3://b/x"}}
        return {"Partitions": [found], "UnprocessedKeys": left}


def test_partitions_that_glue_has_put_off_are_asked_for_again() -> None:
    """What it does not answer at once is not absent: it would be added a second time."""
    table = TableName.parse("a.b")
    found = GlueCatalog(Busy()).get_partitions(SimpleNamespace(name=table), [("1",), ("2",), ("3",)])  # type: ignore[arg-type]
    assert [one.values for one in found] == [("1",), ("2",), ("3",)]


@pytest.mark.parametrize(
    ("error", "code"),
    [("InternalServiceException", "METASTORE_FAILED"), ("EntityNotFoundException", "PARTITION_MISSING")],
)
def test_partitions_that_glue_has_not_changed_are_an_error(error: str, code: str) -> None:
    """They stand in an answer that is none itself; their statistics would be taken for told."""

    class Refusing(Busy):
        def batch_update_partition(self, **arguments: object) -> dict[str, Any]:
            del arguments
            return {"Errors": [{"PartitionValueList": ["1"], "ErrorDetail": {"ErrorCode": error}}]}

    table = SimpleNamespace(name=TableName.parse("a.b"))
    with pytest.raises(MetastoreError) as caught:
        GlueCatalog(Refusing()).alter_partitions(table, [Partition(values=("1",), location="s3://b/x")])  # type: ignore[arg-type]
    assert caught.value.code == code


class NoTime:
    """A client of a service that has no time for some requests, or ever, and counts them."""

    def __init__(self, times: float) -> None:
        self.times = times
        self.asked = 0

    def batch_get_partition(self, *, PartitionsToGet: list[dict[str, Any]], **_where: str) -> dict[str, Any]:  # noqa: N803 - Glue's name
        self.asked += 1
        assert self.asked < 1_000, "a loop without an end"
        if self.asked <= self.times:
            return {"Partitions": [], "UnprocessedKeys": PartitionsToGet}
        found = [{**one, "StorageDescriptor": {"Location": "s3://b/x"}} for one in PartitionsToGet]
        return {"Partitions": found}


def test_a_service_without_time_is_asked_again_after_pauses() -> None:
    """What it has not looked at is asked for again, ever more slowly."""
    clock = SettableClock()
    found = GlueCatalog(NoTime(3), clock=clock).get_partitions(GlueSite().fresh_table(), [("d1",), ("d2",)])
    assert [one.values for one in found] == [("d1",), ("d2",)]
    assert clock.slept == [0.05, 0.1, 0.2]


def test_a_service_that_never_has_time_ends_in_an_error() -> None:
    """One of ours, that may be tried again: a loop without a pause would be part of what is wrong."""
    client, clock = NoTime(float("inf")), SettableClock()
    with pytest.raises(MetastoreError, match="UnprocessedKeys") as caught:
        GlueCatalog(client, clock=clock).get_partitions(GlueSite().fresh_table(), [("d1",), ("d2",)])
    assert not caught.value.is_permanent
    assert client.asked == len(clock.slept) + 1 == 6
