"""Who asks: credentials of google-auth, by what a user gives. No value is repeated in a message."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import google.auth
from google.auth import compute_engine
from google.auth.credentials import AnonymousCredentials, with_scopes_if_required
from google.oauth2 import credentials as of_users

from filesink.errors import ConfigError
from filesink.storage.gcs.options import ANONYMOUS, DEFAULT_CHAIN, OF_THE_HOST

_SCOPES = ["https://www.googleapis.com/auth/devstorage.read_write"]
_ACCESS_TOKEN = "ya29."  # noqa: S105 - how every access token of Google's begins


def credentials_of(token: Any) -> Any:
    """Credentials for objects in buckets.

    Args:
        token: as ``GcsOptions`` has it.

    Raises:
        ConfigError: ``BAD_VALUE``; it is no key file, or one that google-auth does not take.
        google.auth.exceptions.DefaultCredentialsError: the default chain has found none.
    """
    if token is None or token == DEFAULT_CHAIN:
        with warnings.catch_warnings():  # that a person's own credentials are used is for the person to know
            warnings.simplefilter("ignore", UserWarning)
            return google.auth.default(scopes=_SCOPES)[0]
    if token == ANONYMOUS:
        return AnonymousCredentials()  # type: ignore[no-untyped-call]
    if token == OF_THE_HOST:
        return compute_engine.Credentials(scopes=_SCOPES)  # type: ignore[no-untyped-call]
    if not isinstance(token, str):
        return with_scopes_if_required(token, _SCOPES)  # type: ignore[no-untyped-call]
    if token.startswith(_ACCESS_TOKEN):
        return of_users.Credentials(token)  # type: ignore[no-untyped-call]
    return _of_file(token)


def _of_file(token: str) -> Any:
    try:
        text = token if token.lstrip().startswith("{") else Path(token).read_text(encoding="utf-8")
        info = json.loads(text)
        with warnings.catch_warnings():  # the file is the user's own, which is what the warning asks for
            warnings.simplefilter("ignore", DeprecationWarning)
            found = google.auth.load_credentials_from_dict(info, scopes=_SCOPES)  # type: ignore[no-untyped-call]
            return found[0]
    except OSError as error:
        raise ConfigError(
            f"the key file of storage option 'token' cannot be read ({type(error).__name__}): it must be at "
            "the same path on every host; correct the path, or pass its content as a dictionary",
            code="BAD_VALUE",
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, google.auth.exceptions.GoogleAuthError):
        raise ConfigError(  # their texts may repeat the value, a secret
            "storage option 'token' holds nothing that google-auth takes; pass a key file as the console "
            "or gcloud makes it, its path or its content as a dictionary",
            code="BAD_VALUE",
        ) from None
