"""A connection to a container: which account, and by which credential."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

from azure.identity import DefaultAzureCredential
from azure.storage.blob import BlobServiceClient

from filesink.errors import ConfigError
from filesink.storage.azure.client import AzureObjects
from filesink.storage.azure.errors import checking
from filesink.storage.azure.options import AzureOptions

# What the client refuses before it asks anything. It may repeat the value, we do not.
_BAD_CONNECTION = (
    "Azure's client does not accept storage option 'connection_string'; copy it from the account's access "
    "keys, as in 'DefaultEndpointsProtocol=https;AccountName=…;AccountKey=…;EndpointSuffix=core.windows.net'"
)
_BAD_CREDENTIAL = (
    "Azure's client does not accept this account name, or this storage option 'credential'; name the account "
    "as 'lake' or by its host, and pass a credential of azure.identity or azure.core.credentials, "
    "account_key or sas_token"
)
_BAD_CHAIN = (
    "Azure's default chain of credentials cannot be made; correct the AZURE_… environment variables, "
    "or pass storage option account_key, sas_token, connection_string or credential"
)

#: Half a minute for one request, tasks' too. By default the pauses of the client take a minute and a half,
#: and a driver, which is patient by itself, would hold the lock of its sink for minutes.
_RETRIES: dict[str, Any] = {"retry_total": 5, "initial_backoff": 1, "increment_base": 2}


def connect(container: str, account: str, options: AzureOptions) -> AzureObjects:
    """A client for one container.

    Args:
        container: its name.
        account: of the storage account, or its host, ``lake.blob.core.windows.net``; ``""`` if the options
            tell it.
        options: the names of adlfs. Without a key, a token or a connection string Azure's default chain
            of credentials is asked: environment, workload, managed identity, command line.

    Raises:
        ConfigError: ``BAD_VALUE``; no account is named, or two are, or the client does not accept the value.
    """
    if options.connection_string:
        with checking(_BAD_CONNECTION):
            service = BlobServiceClient.from_connection_string(options.connection_string, **_RETRIES)
        _check_same_account(account, service.account_name)
    else:
        name = account or options.account_name
        if not name:
            raise ConfigError(
                "the storage account is not known; pass storage option account_name, or a path like "
                "'abfss://container@account.dfs.core.windows.net/data'",
                code="BAD_VALUE",
            )
        host = options.account_host or (name if "." in name else f"{name}.blob.core.windows.net")
        credential = _credential(options, name.partition(".")[0])
        with checking(_BAD_CREDENTIAL):
            service = BlobServiceClient(f"https://{host}", credential=credential, **_RETRIES)
    return AzureObjects(service.get_container_client(container), container)


def _check_same_account(in_path: str, connected: str | None) -> None:
    """Refuse a path that names another account than the connection string, which would win."""
    name = in_path.partition(".")[0]
    if name and connected and name != connected:
        raise ConfigError(
            f"the path names the storage account '{name}', and the connection string is of another; remove "
            "the account from the path, as in 'az://container/data', or pass the string of that account",
            code="BAD_VALUE",
        )


def _credential(options: AzureOptions, account: str) -> Any:
    # A key goes with its account's name, which the client cannot read off every host.
    key = {"account_name": account, "account_key": options.account_key} if options.account_key else None
    return options.credential or key or options.sas_token or _default_credential(os.getpid())


@lru_cache(maxsize=1)
def _default_credential(process: int) -> DefaultAzureCredential:
    """This process's own: it keeps its token, and its locks must not be carried through a fork."""
    del process  # a key of the cache, no more
    with checking(_BAD_CHAIN):
        return DefaultAzureCredential()
