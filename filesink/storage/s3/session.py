"""How a client of S3 is made: from options, or as botocore finds credentials, or in a role of somebody else.

Rules: a process has a client for all sinks with equal options. It keeps the credentials that it was made
with, also that there were none, so one that was refused is forgotten: variables, files and roles change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any

import boto3
import botocore
import botocore.session
from botocore import exceptions
from botocore.config import Config
from botocore.credentials import (
    AssumeRoleCredentialFetcher,
    CredentialResolver,
    DeferredRefreshableCredentials,
)

from filesink.errors import ConfigError
from filesink.storage.objects.options import SMALL_REQUESTS
from filesink.storage.s3.errors import explaining, note_what_is_under_way
from filesink.storage.s3.options import S3Options

_ANY_REGION = "us-east-1"  # where STS answers for every account


def client_of(options: S3Options, process: int) -> Any:
    """The client of ``process``; a forked one has to have its own."""
    return _cached_client(options, process)


def forget_clients() -> None:
    """Have the next to connect make a client of its own. Those that are in use stay as they are."""
    _cached_client.cache_clear()


@lru_cache(maxsize=4)
def _cached_client(options: S3Options, process: int) -> Any:
    del process  # a key of the cache, no more
    config: dict[str, Any] = {
        # The store sets the pace: after a 503 the client slows down all its threads.
        "retries": {"mode": "adaptive", "total_max_attempts": 5},
        "connect_timeout": 10,
        "read_timeout": 60,
        "max_pool_connections": max(options.max_concurrency, SMALL_REQUESTS),
        **{name: dict(value) if isinstance(value, tuple) else value for name, value in options.config_kwargs},
    }
    if options.anon:
        config["signature_version"] = botocore.UNSIGNED
    with explaining("connect to", "S3"), _options_explained():
        session = _session(options)
        arguments = {
            "endpoint_url": options.endpoint_url,
            "use_ssl": options.use_ssl,
            **dict(options.client_kwargs),
        }
        client = session.client("s3", config=Config(**config), **arguments)
        note_what_is_under_way(client)
        return client


@contextmanager
def _options_explained() -> Iterator[None]:
    """The client refuses what it does not know by whatever its constructors raise, with the value."""
    try:
        yield
    except (TypeError, ValueError) as error:
        unknown = re.search(r"unexpected (?:keyword argument|parameter)s?:? '?(\w+)", str(error))
        which = f", such as '{unknown[1]}'" if unknown else ""
        raise ConfigError(
            f"S3's client does not take the storage options{which}: look at client_kwargs, config_kwargs and "
            f"endpoint_url ({type(error).__name__})",
            code="BAD_VALUE",
        ) from None


def _session(options: S3Options) -> boto3.session.Session:
    own = boto3.session.Session(
        aws_access_key_id=options.key,
        aws_secret_access_key=options.secret,
        aws_session_token=options.token,
        profile_name=options.profile,
    )
    if not options.assume_role:
        return own
    request = dict(options.assume_role)
    source = own.get_credentials()
    if source is None:
        raise exceptions.NoCredentialsError
    region = own.region_name or dict(options.client_kwargs).get("region_name", _ANY_REGION)
    fetcher = AssumeRoleCredentialFetcher(
        client_creator=partial(own.client, **{"region_name": region, **dict(options.sts_kwargs)}),
        source_credentials=source,
        role_arn=request.pop("RoleArn"),
        extra_args=request,
    )
    session = botocore.session.get_session()
    session.register_component("credential_provider", CredentialResolver([_Role(fetcher)]))
    return boto3.session.Session(botocore_session=session)


class _Role:
    """Hands out the credentials of a role, which are fetched when they are needed, again and again."""

    METHOD = "assume-role"

    def __init__(self, fetcher: AssumeRoleCredentialFetcher) -> None:
        self._fetcher = fetcher

    def load(self) -> DeferredRefreshableCredentials:
        """See botocore's ``CredentialProvider.load``."""
        return DeferredRefreshableCredentials(
            method=self.METHOD, refresh_using=self._fetcher.fetch_credentials
        )
