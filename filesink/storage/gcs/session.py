"""Requests to the JSON API: each is sent once, and again only here, so that what may have happened is known.

Google's own client is not used: above 8 MiB it sends a file by a resumable session, which is several
requests under a secret address, and each of its calls repeats itself. Its session, of google-auth, is.

Rules:

* Credentials are looked for with the first request, not before: the default chain may ask the network.
* A process has a session for all sinks with equal options. One whose credentials were refused is forgotten.
* A redirection is no answer: nothing of ours is sent to where it leads. ``.netrc`` is not looked into.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import requests
from google.auth import exceptions
from google.auth.transport.requests import AuthorizedSession
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError

from filesink.errors import InternalError, StorageError
from filesink.ports import Clock
from filesink.storage.gcs.credentials import credentials_of
from filesink.storage.gcs.errors import REFUSALS, answered, did_nothing, failed, is_passing, unauthenticated
from filesink.storage.gcs.options import GcsOptions
from filesink.storage.objects.api import EXISTS, UNAVAILABLE
from filesink.storage.objects.options import SMALL_REQUESTS

#: Seconds before each further try; then Spark repeats the task, or the driver the call.
PAUSES = (1.0, 2.0, 4.0, 8.0)
_CONNECTS_WITHIN = 10.0
_GOOGLES = "https://storage."
_SUCCESS = frozenset({200, 204, 206})
_NO_ANSWER = (requests.RequestException, HTTPError, OSError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call of the API.

    Attributes:
        operation: what it does, for messages.
        where: to what, for messages.
        is_change: whether it makes something: then a refusal after a try without an answer proves nothing.
        also: statuses that are answers, too.
    """

    method: str
    path: str
    operation: str
    where: str
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    is_change: bool = False
    also: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What was asked for. ``body`` of an object is as it is stored: nothing is unpacked."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Service:
    """The service, as these options reach it. May be used by several threads."""

    def __init__(self, options: GcsOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock

    def call(self, request: Request) -> Answer:
        """Send a request until there is an answer that counts.

        Raises:
            FileNotFoundError: there is no such object.
            StorageError: with a code of ``errors``.
        """
        unsure = False  # whether an earlier try may have done it, or may do it yet
        failure: Exception = InternalError("nothing was asked", code="NO_TRY")
        for pause in (*PAUSES, None):
            try:
                answer = self._sent(request)
            except StorageError:  # also an ``OSError``
                raise
            except _NO_ANSWER as error:
                failure = failed(UNAVAILABLE, request.operation, request.where, type(error).__name__)
                failure.__cause__ = error
                may_pass, unsure = True, True
            else:
                if answer.status in _SUCCESS | request.also:
                    return answer
                failure = answered(
                    answer.status, answer.body, operation=request.operation, where=request.where
                )
                may_pass = is_passing(answer.status, answer.body)
                unsure = unsure or (may_pass and not did_nothing(answer.status))
            if not may_pass or pause is None:
                break
            self._clock.sleep(pause)
        raise self._concluded(failure, unsure=unsure and request.is_change)

    def _concluded(self, failure: Exception, *, unsure: bool) -> Exception:
        if not isinstance(failure, StorageError):
            return failure
        if failure.code in REFUSALS:
            forget_sessions()
        if not unsure or failure.code in {EXISTS, UNAVAILABLE}:
            return failure
        # A refusal is that of the last try; the one before it may be done yet.
        told = StorageError(failure.message, code=UNAVAILABLE)
        told.__cause__ = failure
        return told

    def _sent(self, request: Request) -> Answer:
        try:
            session = _session_of(self._options, os.getpid())
            with session.request(  # type: ignore[no-untyped-call]
                request.method,
                f"{session.endpoint}{request.path}",
                params={**request.params, **self._payer()},
                headers={"Accept-Encoding": "gzip", "User-Agent": "filesink", **request.headers},
                data=request.body or None,
                timeout=(_CONNECTS_WITHIN, self._options.timeout),
                allow_redirects=False,
                stream=True,
            ) as found:
                is_media = request.params.get("alt") == "media" and found.status_code < 300
                body = found.raw.read(decode_content=not is_media)
                return Answer(status=found.status_code, headers=found.headers, body=body)
        except exceptions.GoogleAuthError as error:
            explained = unauthenticated(error, operation=request.operation, where=request.where)
            if explained.code == UNAVAILABLE:
                raise requests.ConnectionError(explained.message) from error
            if explained.code in REFUSALS:
                forget_sessions()
            raise explained from error

    def _payer(self) -> dict[str, str]:
        return {"userProject": self._options.user_project} if self._options.user_project else {}


class _Session(AuthorizedSession):
    """The session and its address."""

    def __init__(self, credentials: Any, options: GcsOptions) -> None:
        super().__init__(credentials)  # type: ignore[no-untyped-call]
        universe = getattr(credentials, "universe_domain", "") or "googleapis.com"
        self.endpoint = options.endpoint_url or f"{_GOOGLES}{universe}"
        self.auth = _no_other
        adapter = HTTPAdapter(pool_maxsize=max(options.max_concurrency, SMALL_REQUESTS), max_retries=0)
        self.mount("https://", adapter)
        self.mount("http://", adapter)


def _no_other(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """What ``requests`` asks in place of ``.netrc``, whose password would take the place of the token."""
    return request


def forget_sessions() -> None:
    """Have the next request look for credentials anew."""
    _session_of.cache_clear()


@lru_cache(maxsize=4)
def _session_of(options: GcsOptions, process: int) -> _Session:
    """This process's own: connections and locks must not be carried through a fork."""
    del process  # a key of the cache, no more
    return _Session(credentials_of(options.token), options)
