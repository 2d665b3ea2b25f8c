"""AWS Glue's catalog through ``boto3``: Hive's model of tables and partitions behind another API."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from filesink.arguments import instance_of
from filesink.errors import ConfigError, DependencyError, MetastoreConflictError, MetastoreError
from filesink.metastore.api import (
    Metastore,
    Partition,
    Table,
    TableChange,
    TableName,
    Values,
    batches,
    check_keys,
    no_partition,
    no_table,
)
from filesink.metastore.glue.structs import columns, entry, partition_input, table_input, table_of
from filesink.metastore.service_errors import TO_DO, sentence
from filesink.ports import Clock
from filesink.retry import Backoff
from filesink.system import SystemClock

_RETRIES = 5  # of a request of which nothing was done; whoever asks may be patient, too
_BATCH = 100  # what one request of Glue takes; it reads up to 1,000
_DROPPED = 25  # what one request drops
# Codes of Glue, and of AWS about who asks: the same answer comes again.
_REFUSED = {
    *("AccessDeniedException", "InvalidInputException", "EntityNotFoundException", "ValidationException"),
    *("UnrecognizedClientException", "InvalidClientTokenId", "MissingAuthenticationToken", "AccessDenied"),
    *("MissingAuthenticationTokenException", "InvalidSignatureException", "SignatureDoesNotMatch"),
    *("IncompleteSignature", "ExpiredToken", "ExpiredTokenException", "OptInRequired", "AuthFailure"),
    *("NotAuthorized", "InvalidAction", "UnknownOperationException", "ResourceNumberLimitExceededException"),
}
#: What Glue returns of a table or partition and does not take back.
_TABLE_INPUT = {
    *("Name", "Description", "Owner", "Retention", "StorageDescriptor", "PartitionKeys", "TableType"),
    *("Parameters", "ViewOriginalText", "ViewExpandedText", "TargetTable"),
}


class GlueCatalog(Metastore):
    """The catalog of an AWS account.

    Args:
        client: ``boto3.client("glue")``, made as you like; by default from the environment.
        catalog_id: of another account's catalog.
        clock: waits before a request is repeated.

    Raises:
        ConfigError: ``BAD_VALUE``; ``GLUE_CLIENT``, the environment has no region, or names no profile.
        DependencyError: the extra ``glue`` is not installed.
    """

    def __init__(
        self, client: Any = None, *, catalog_id: str | None = None, clock: Clock | None = None
    ) -> None:
        self._clock = clock or SystemClock()
        self._client = _default_client() if client is None else _checked(client)
        self._where = (
            {} if catalog_id is None else {"CatalogId": instance_of(catalog_id, str, name="catalog_id")}
        )

    def __repr__(self) -> str:
        return "GlueCatalog()"

    def get_table(self, name: TableName) -> Table | None:
        """See ``Metastore.get_table``."""
        found = self._find(name)
        return None if found is None else table_of(name, found)

    def create_table(self, table: Table) -> None:
        """See ``Metastore.create_table``."""
        self._call(
            lambda: self._client.create_table(
                **self._where, DatabaseName=table.name.database, TableInput=table_input(table)
            ),
            f"create table {table.name}",
            accepted="AlreadyExistsException",
        )

    def alter_table(self, name: TableName, change: TableChange) -> None:
        """See ``Metastore.alter_table``."""
        found = {key: value for key, value in self._existing(name).items() if key in _TABLE_INPUT}
        storage = found["StorageDescriptor"]
        known = (column["Name"] for column in (*storage["Columns"], *found.get("PartitionKeys", ())))
        there = [{**one, "Type": change.type_of(one["Name"], one["Type"])} for one in storage["Columns"]]
        storage["Columns"] = [*there, *columns(change.missing_from(known))]
        if change.location is not None:
            storage["Location"] = change.location
        found["Parameters"] = {**found.get("Parameters", {}), **change.parameters}
        self._call(
            lambda: self._client.update_table(**self._where, DatabaseName=name.database, TableInput=found),
            f"change table {name}",
        )

    def get_partitions(self, table: Table, values: Sequence[Values]) -> list[Partition]:
        """See ``Metastore.get_partitions``."""
        return [
            Partition(
                values=tuple(found["Values"]),
                location=found["StorageDescriptor"]["Location"],
                parameters=dict(found.get("Parameters", {})),
            )
            for found in self._partitions(table.name, values)
        ]

    def add_partitions(self, table: Table, partitions: Sequence[Partition]) -> set[Values]:
        """See ``Metastore.add_partitions``."""
        if not partitions:
            return set()
        name, found = table.name, self._same(table)
        new: set[Values] = set()
        for batch in batches(partitions, _BATCH):
            inputs = [partition_input(found["StorageDescriptor"], one) for one in batch]
            answer = self._call(
                self._request("batch_create_partition", name, PartitionInputList=inputs),
                f"add partitions of {name}",
            )
            _raise_errors(answer, name, accepted="AlreadyExistsException")
            if not answer.get("Errors"):
                new.update(one.values for one in batch)
        return new

    def alter_partitions(self, table: Table, partitions: Sequence[Partition]) -> None:
        """See ``Metastore.alter_partitions``."""
        name = table.name
        for batch in batches(partitions, _BATCH):
            found = {
                tuple(one["Values"]): one for one in self._partitions(name, [one.values for one in batch])
            }
            if any(one.values not in found for one in batch):
                self._same(table)
                raise no_partition(name)
            entries = [entry(found[one.values], one, table) for one in batch]
            answer = self._call(
                self._request("batch_update_partition", name, Entries=entries), f"change partitions of {name}"
            )
            _raise_errors(answer, name, accepted="")

    def drop_partitions(self, table: Table, values: Sequence[Values]) -> None:
        """See ``Metastore.drop_partitions``."""
        if not values:
            return
        self._same(table)
        for batch in batches(values, _DROPPED):
            keys = [{"Values": list(one)} for one in batch]
            answer = self._call(
                self._request("batch_delete_partition", table.name, PartitionsToDelete=keys),
                f"drop partitions of {table.name}",
            )
            _raise_errors(answer, table.name, accepted="EntityNotFoundException")

    def _partitions(self, name: TableName, values: Sequence[Values]) -> Iterator[dict[str, Any]]:
        for batch in batches(list(dict.fromkeys(values)), _BATCH):
            left = [{"Values": list(one)} for one in batch]
            backoff: Backoff | None = None
            while left:
                request = self._request("batch_get_partition", name, PartitionsToGet=left)
                answer = self._call(  # no table, no partitions
                    request, f"read partitions of {name}", accepted="EntityNotFoundException"
                )
                yield from answer.get("Partitions", ())
                before, left = len(left), answer.get("UnprocessedKeys", [])
                backoff = self._wait(backoff, name) if left and len(left) >= before else None

    def _wait(self, backoff: Backoff | None, name: TableName) -> Backoff:
        """Pause before a request is repeated of which nothing was done; raise after the last one."""
        backoff = backoff or Backoff(self._clock, retries=_RETRIES)
        if not backoff.wait():
            raise MetastoreError(
                f"Glue did not read partitions of {name}: it answers that it has no time for them "
                "(UnprocessedKeys). Try again when the account makes fewer requests",
                code="METASTORE_FAILED",
            )
        return backoff

    def _find(self, name: TableName) -> dict[str, Any] | None:
        answer = self._call(
            lambda: self._client.get_table(**self._where, DatabaseName=name.database, Name=name.table),
            f"read table {name}",
            accepted="EntityNotFoundException",
        )
        found: dict[str, Any] | None = answer.get("Table")
        return found

    def _existing(self, name: TableName) -> dict[str, Any]:
        found = self._find(name)
        if found is None:
            raise no_table(name)
        return found

    def _same(self, table: Table) -> dict[str, Any]:
        """The table as it is now, which has still the keys that the caller knows."""
        found = self._existing(table.name)
        check_keys(table, [key["Name"] for key in found.get("PartitionKeys", ())])
        return found

    def _request(self, call: str, name: TableName, **arguments: Any) -> Callable[[], Any]:
        method = getattr(self._client, call)
        where = {**self._where, "DatabaseName": name.database, "TableName": name.table}
        return lambda: method(**where, **arguments)

    def _call(self, call: Callable[[], Any], what: str, *, accepted: str = "") -> dict[str, Any]:
        """The answer; ``{}`` for the error that is ``accepted``. Glue's own words are in the message."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            answer: dict[str, Any] = call()
        except ClientError as error:
            found = error.response.get("Error", {})
            if found.get("Code") == accepted:
                return {}
            raise _error(found.get("Code", ""), found.get("Message", ""), what) from error
        except BotoCoreError as error:  # no answer
            raise _unasked(error, what) from error
        return answer


def _error(code: str, message: str, what: str) -> MetastoreError:
    why = f"({code}): {sentence(message)}"
    if code in _REFUSED:
        return MetastoreConflictError(f"Glue refused to {what} {why}. {TO_DO}", code="METASTORE_REFUSED")
    return MetastoreError(f"Glue could not {what} {why}", code="METASTORE_FAILED")


def _unasked(error: Exception, what: str) -> MetastoreError:
    """boto3's own errors: of who asks, before anything was sent; or of the network."""
    from botocore import exceptions as boto

    why = f"({type(error).__name__}): {sentence(str(error))}"
    nobody = boto.NoCredentialsError, boto.PartialCredentialsError, boto.CredentialRetrievalError
    no_token = boto.TokenRetrievalError, boto.NoAuthTokenError, boto.SSOError, boto.ParamValidationError
    if isinstance(error, (*nobody, *no_token)):
        return MetastoreConflictError(
            f"Glue could not be asked to {what} {why}. Correct the credentials of the driver's environment",
            code="METASTORE_LOGIN",
        )
    return MetastoreError(
        f"Glue could not be asked to {what} {why}; it may have been done or not", code="METASTORE_UNKNOWN"
    )


def _raise_errors(answer: dict[str, Any], name: TableName, *, accepted: str) -> None:
    """Raise the first error of a batch that is not ``accepted``; the rest of the batch has taken effect."""
    for error in answer.get("Errors", ()):
        detail = error.get("ErrorDetail") or error.get("PartitionError", {}).get("ErrorDetail", {})
        code = detail.get("ErrorCode", "unknown")
        if code == accepted:
            continue
        if code == "EntityNotFoundException":
            raise no_partition(name)
        raise _error(code, detail.get("ErrorMessage", ""), f"change partitions of {name}")


def _default_client() -> Any:
    try:
        import boto3
    except ImportError as error:
        raise DependencyError(
            "Glue needs a further package: pip install 'filesink[glue]'", code="GLUE"
        ) from error
    from botocore.exceptions import BotoCoreError

    try:
        return boto3.client("glue")
    except (BotoCoreError, ValueError) as error:
        raise ConfigError(
            f"no client of Glue can be made ({type(error).__name__}): {sentence(str(error))}. Set "
            "AWS_REGION, or give one: GlueCatalog(boto3.client('glue', region_name='eu-central-1'))",
            code="GLUE_CLIENT",
        ) from error


def _checked(client: Any) -> Any:
    if not any(callable(getattr(client, call, None)) for call in ("get_table", "batch_get_partition")):
        raise ConfigError(
            f"client must be boto3.client('glue'), got {type(client).__name__}", code="BAD_VALUE"
        )
    return client
