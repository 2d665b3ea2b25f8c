"""Spark's own settings of S3, ``spark.hadoop.fs.s3a.*``, for sinks that have no storage options.

Rules:

* They are read on the driver, before an epoch begins: after *decide* nothing asks the JVM. Tasks get
  them inside the pickled sink, as they get storage options.
* No value is logged or shown; ``repr`` has none.
* What Python cannot do as S3A does, such as a provider of credentials that is a Java class of somebody
  else, is left to botocore's own search, and said.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from filesink.errors import ConfigError

if TYPE_CHECKING:
    Get = Callable[[str], str]

_S3 = "s3://"
_AMAZONS = re.compile(r"(?:https?://)?s3[.-](?P<region>[a-z]{2}(?:-[a-z0-9]+)+)\.amazonaws\.com(?:\.cn)?/?")
_CENTRAL = re.compile(r"(?:https?://)?s3\.amazonaws\.com/?")
_NO_REGIONS = {"", "sdk", "ec2", "auto"}  # words of S3A for: find out
_WITH_KEYS = {"SimpleAWSCredentialsProvider", "TemporaryAWSCredentialsProvider"}
_SECRETS = {"access.key", "secret.key", "session.token", "encryption.key", "server-side-encryption.key"}
_ROLE = "AssumedRoleCredentialProvider"
_ANONYMOUS = "AnonymousAWSCredentialsProvider"
#: What botocore finds by itself, by whatever name Hadoop and both SDKs know it.
_FOUND = re.compile(r"Environment|Container|InstanceProfile|IAMInstance|Profile|WebIdentity|Default")
_ASSUMED = {
    "RoleArn": "assumed.role.arn",
    "RoleSessionName": "assumed.role.session.name",
    "ExternalId": "assumed.role.external.id",
    "Policy": "assumed.role.policy",
}
_ENCRYPTED = {"SSE-S3": "AES256", "AES256": "AES256", "SSE-KMS": "aws:kms", "DSSE-KMS": "aws:kms:dsse"}
log = logging.getLogger("filesink")


class SessionOptions(Mapping[str, Any]):
    """Storage options that follow from a session. A pickle of them is a plain dictionary.

    Args:
        base_path: of the sink, in its one spelling. Only of paths on S3 anything follows.
    """

    def __init__(self, base_path: str) -> None:
        self._bucket = base_path.removeprefix(_S3).partition("/")[0] if base_path.startswith(_S3) else None
        self._read: dict[str, Any] | None = None

    def read(self, session: object) -> None:
        """Take the settings of ``session`` as they are now. Called on the driver before each write.

        What is no classic session has none; the engine refuses it in its own words.
        """
        if self._bucket is not None and hasattr(session, "_jsparkSession"):
            self._read = s3a_options(_getter(session, self._bucket))

    def _values(self) -> dict[str, Any]:
        if self._read is None and self._bucket is not None:
            session = SparkSession.getActiveSession()  # that of an operator who recovers or sweeps
            if session is not None:
                self.read(session)
        return self._read or {}

    def __getitem__(self, name: str) -> Any:
        return self._values()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values())

    def __len__(self) -> int:
        return len(self._values())

    def __repr__(self) -> str:
        return "SessionOptions(...)"

    def __reduce__(self) -> tuple[object, ...]:
        return dict, (dict(self._values()),)


def s3a_options(get: Get) -> dict[str, Any]:
    """Storage options with the meaning of S3A's settings.

    Args:
        get: the text of a setting, by its name after ``fs.s3a.``; ``""`` if it is not set.
    """
    providers = [name.strip().rpartition(".")[2] for name in get("aws.credentials.provider").split(",")]
    providers = [name for name in providers if name]
    options: dict[str, Any] = {**_addresses(get), **_encryption(get)}
    if providers[:1] == [_ANONYMOUS]:
        return {**options, "anon": True}
    if _ROLE in providers:
        options |= _role(get)
        under_it = get("assumed.role.credentials.provider")
        providers = [name.strip().rpartition(".")[2] for name in under_it.split(",") if name.strip()]
    if not providers or _WITH_KEYS.intersection(providers):
        names = {"key": "access.key", "secret": "secret.key", "token": "session.token"}
        options |= {name: text for name, setting in names.items() if (text := get(setting))}
    elif not any(_FOUND.search(name) for name in providers):
        log.warning(
            "spark.hadoop.fs.s3a.aws.credentials.provider names %s, which only Java can ask. Credentials are "
            "taken from the environment, profiles or the role of the host. For others pass storage options",
            ", ".join(providers),
        )
    return options


def _addresses(get: Get) -> dict[str, Any]:
    options: dict[str, Any] = {}
    endpoint, region = get("endpoint"), get("endpoint.region")
    amazons = _AMAZONS.fullmatch(endpoint)
    if amazons and region in _NO_REGIONS:
        region = amazons["region"]
    if get("connection.ssl.enabled").lower() == "false":
        options["use_ssl"] = False
    if endpoint and not _CENTRAL.fullmatch(endpoint):
        scheme = "http" if "use_ssl" in options else "https"
        options["endpoint_url"] = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
    if region not in _NO_REGIONS:
        options["client_kwargs"] = {"region_name": region}
    if get("path.style.access").lower() == "true":
        options["config_kwargs"] = {"s3": {"addressing_style": "path"}}
    if get("requester.pays.enabled").lower() == "true":
        options["requester_pays"] = True
    return options


def _encryption(get: Get) -> dict[str, Any]:
    wanted = (get("encryption.algorithm") or get("server-side-encryption-algorithm")).upper()
    algorithm = _ENCRYPTED.get(wanted)
    if algorithm is None:
        if wanted:
            log.warning(
                "spark.hadoop.fs.s3a.encryption.algorithm is %s, which is not supported. The bucket's own "
                "encryption applies. For another one pass storage option s3_additional_kwargs",
                wanted[:20],
            )
        return {}
    key = (get("encryption.key") or get("server-side-encryption.key")) if "kms" in algorithm else ""
    kept = {"ServerSideEncryption": algorithm} | ({"SSEKMSKeyId": key} if key else {})
    return {"s3_additional_kwargs": kept}


def _role(get: Get) -> dict[str, Any]:
    role = {name: text for name, setting in _ASSUMED.items() if (text := get(setting))}
    prefix = "assumed.role.sts.endpoint"
    sts = {"endpoint_url": get(prefix), "region_name": get(f"{prefix}.region")}
    if sts["endpoint_url"] and "://" not in sts["endpoint_url"]:
        sts["endpoint_url"] = f"https://{sts['endpoint_url']}"
    return {"assume_role": role, "sts_kwargs": {name: text for name, text in sts.items() if text}}


def _getter(session: Any, bucket: str) -> Get:
    """As S3A looks: a setting of the bucket's own first, secrets in credential files as well."""
    conf: Any = session._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001 - private to Spark

    def get(name: str) -> str:
        for full in (f"fs.s3a.bucket.{bucket}.{name}", f"fs.s3a.{name}"):
            found = _secret(conf, full) if name in _SECRETS else conf.get(full)
            if found and found.strip():
                return str(found).strip()
        return ""

    return get


def _secret(conf: Any, name: str) -> str:
    try:
        return "".join(conf.getPassword(name) or ())
    except Py4JJavaError as error:
        raise ConfigError(
            "the credential file that 'hadoop.security.credential.provider.path' names cannot be read for "
            f"'{name}': {error.java_exception.getClass().getSimpleName()}. Correct it, or pass storage "
            "options",
            code="CREDENTIALS",
        ) from None
