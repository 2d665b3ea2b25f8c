"""Spark's own settings of S3, ``spark.hadoop.fs.s3a.*``, below the storage options of a sink's own.

Rules:

* They are read on the driver, before an epoch begins: after *decide* nothing asks the JVM. Tasks get
  them inside the pickled sink, as they get storage options.
* Options of the user's own come first, each by itself, but for credentials: these belong together.
* No value is logged or shown; ``repr`` has none.
* What Python cannot do as S3A does, such as a provider of credentials that is a Java class of somebody
  else, is left to botocore's own search, and said.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from filesink.errors import ConfigError

_S3 = "s3://"
_AMAZONS = re.compile(r"(?:https?://)?s3[.-](?P<region>[a-z]{2}(?:-[a-z0-9]+)+)\.amazonaws\.com(?:\.cn)?/?")
_CENTRAL = re.compile(r"(?:https?://)?s3\.amazonaws\.com/?")
_NO_REGIONS = {"", "sdk", "ec2", "auto"}  # words of S3A for: find out
_WITH_KEYS = {"SimpleAWSCredentialsProvider", "TemporaryAWSCredentialsProvider"}
_SECRETS = ("access.key", "secret.key", "session.token", "encryption.key", "server-side-encryption.key")
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
_NAMES = (
    *_SECRETS, *_ASSUMED.values(), "endpoint", "endpoint.region", "connection.ssl.enabled",
    "path.style.access", "requester.pays.enabled", "aws.credentials.provider",
    "assumed.role.credentials.provider", "assumed.role.sts.endpoint", "assumed.role.sts.endpoint.region",
    "encryption.algorithm", "server-side-encryption-algorithm",
)  # fmt: skip
_CREDENTIALS = frozenset(
    {"key", "username", "secret", "password", "token", "profile", "anon", "assume_role", "sts_kwargs"}
)
_ADDRESS = frozenset({"endpoint_url", "endpoint_from", "use_ssl"})
_DEFAULTS = "core-default.xml"
_NESTED = ("client_kwargs", "config_kwargs")
#: The text of a setting by its whole name; ``""`` if it is not set.
Settings = Callable[[str], str]
_ENCRYPTED = {"SSE-S3": "AES256", "AES256": "AES256", "SSE-KMS": "aws:kms", "DSSE-KMS": "aws:kms:dsse"}
log = logging.getLogger("filesink")


class SessionOptions(Mapping[str, Any]):
    """Storage options, and what follows from a session beside them. A pickle of them is a plain dictionary.

    Args:
        base_path: of the sink, in its one spelling. Only of paths on S3 anything follows.
        own: options of the user's.
    """

    def __init__(self, base_path: str, own: Mapping[str, Any] | None = None) -> None:
        self._bucket = bucket_of(base_path)
        self._own = dict(own or {})
        self._read: dict[str, Any] | None = None

    def read(self, session: object) -> None:
        """Take the settings of ``session`` as they are now. Called on the driver before each write.

        What is no classic session has none; the engine refuses it in its own words.
        """
        if self._bucket is not None and hasattr(session, "_jsparkSession"):
            self._read = together(s3a_options(settings_of(session), self._bucket), self._own)

    def _values(self) -> dict[str, Any]:
        if self._read is None and self._bucket is not None:
            session = SparkSession.getActiveSession()  # that of an operator who recovers or sweeps
            if session is not None:
                self.read(session)
        return self._own if self._read is None else self._read

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


def of_active_session(path: str, own: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The user's ``own`` options of a store, and below them the settings of a session, if one is active.

    What is no mapping is refused where it is used.
    """
    given: object = own
    return SessionOptions(path, own) if own is None or isinstance(given, Mapping) else own


def together(settings: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The options that follow from ``settings``, and over them the user's ``own``."""
    kept = dict(settings)
    if not _CREDENTIALS.isdisjoint(own):
        kept = {name: value for name, value in kept.items() if name not in _CREDENTIALS}
    if "endpoint_url" in own:
        kept = {name: value for name, value in kept.items() if name not in _ADDRESS}
    for name in _NESTED:
        if isinstance(own.get(name), Mapping) and name in kept:
            own = {**own, name: _merged(kept[name], own[name])}
    return {**kept, **own}


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    inner = {
        name: _merged(below[name], value)
        for name, value in above.items()
        if isinstance(value, Mapping) and isinstance(below.get(name), Mapping)
    }
    return {**below, **above, **inner}


def settings_of(session: Any) -> Settings:
    """The settings of a classic session, as they are now."""
    conf: Any = session._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001 - private to Spark

    def get(name: str) -> str:
        found = _secret(conf, name) if name.endswith(_SECRETS) else conf.get(name)
        return str(found).strip() if found else ""

    return get


def copy_of(session: Any) -> dict[str, str]:
    """The settings of a classic session by their whole names, for processes that have none."""
    settings = settings_of(session)
    conf: Any = session._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001 - as above
    of_buckets = [f"fs.s3a.bucket.{name}" for name in conf.getPropsWithPrefix("fs.s3a.bucket.").keySet()]
    names = [*(f"fs.s3a.{name}" for name in _NAMES), *of_buckets]
    ours = [name for name in names if name.endswith(_NAMES) and not _is_default(conf, name)]
    return {name: text for name in ours if (text := settings(name))}


def _is_default(conf: Any, name: str) -> bool:
    """Whether a setting is what Hadoop comes with: nothing follows from those."""
    sources = conf.getPropertySources(name)
    return sources is not None and [*sources][-1:] == [_DEFAULTS]


def bucket_of(path: str) -> str | None:
    """The bucket of a path on S3 in its one spelling; ``None`` for any other."""
    return path.removeprefix(_S3).partition("/")[0] if path.startswith(_S3) else None


def options_for(path: str, settings: Mapping[str, str], own: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a store: the user's ``own``, and below them what follows from a copy of settings."""
    bucket = bucket_of(path)
    if bucket is None or not settings:
        return dict(own)
    return together(s3a_options(lambda name: settings.get(name, ""), bucket), own)


def s3a_options(settings: Settings, bucket: str) -> dict[str, Any]:
    """Storage options with the meaning of S3A's settings.

    Args:
        settings: the text of a setting, by its whole name; ``""`` if it is not set.
        bucket: whose own settings come first.

    Raises:
        ConfigError: ``BAD_VALUE``; a setting that is true or false is neither.
    """
    get = _Getter(settings, bucket)
    providers = _providers(get("aws.credentials.provider"))
    options: dict[str, Any] = {**_addresses(get), **_encryption(get)}
    if providers[:1] == [_ANONYMOUS]:
        return {**options, "anon": True}
    if _ROLE in providers:
        options |= _role(get)
        providers = _providers(get("assumed.role.credentials.provider"))
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


class _Getter:
    """Looks as S3A does: a setting of the bucket's own first."""

    def __init__(self, settings: Settings, bucket: str) -> None:
        self._settings = settings
        self._bucket = bucket

    def __call__(self, name: str) -> str:
        return self._found(name)[1]

    def full(self, name: str) -> str:
        """What the setting is called where it was found."""
        return f"spark.hadoop.{self._found(name)[0]}"

    def is_set(self, name: str, word: str) -> bool:
        """Whether a setting that is true or false has been set to ``word``, one of the two."""
        text = self(name).lower()
        if text not in {"", "true", "false"}:
            raise ConfigError(f"{self.full(name)} must be true or false", code="BAD_VALUE")
        return text == word

    def _found(self, name: str) -> tuple[str, str]:
        of_bucket, of_all = f"fs.s3a.bucket.{self._bucket}.{name}", f"fs.s3a.{name}"
        text = self._settings(of_bucket)
        return (of_bucket, text) if text else (of_all, self._settings(of_all))


def _providers(text: str) -> list[str]:
    """Names of classes, without their packages."""
    return [name.strip().rpartition(".")[2] for name in text.split(",") if name.strip()]


def _addresses(get: _Getter) -> dict[str, Any]:
    options: dict[str, Any] = {}
    endpoint, region = get("endpoint"), get("endpoint.region")
    amazons = _AMAZONS.fullmatch(endpoint)
    if amazons and region in _NO_REGIONS:
        region = amazons["region"]
    if get.is_set("connection.ssl.enabled", "false"):
        options["use_ssl"] = False
    if endpoint and not _CENTRAL.fullmatch(endpoint):
        scheme = "http" if "use_ssl" in options else "https"
        is_whole = "://" in endpoint
        options["endpoint_url"] = endpoint if is_whole else f"{scheme}://{endpoint}"
        options["endpoint_from"] = get.full("endpoint") + ("" if is_whole else ", which has no scheme")
    if region not in _NO_REGIONS:
        options["client_kwargs"] = {"region_name": region}
    if get.is_set("path.style.access", "true"):
        options["config_kwargs"] = {"s3": {"addressing_style": "path"}}
    if get.is_set("requester.pays.enabled", "true"):
        options["requester_pays"] = True
    return options


def _encryption(get: _Getter) -> dict[str, Any]:
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


def _role(get: _Getter) -> dict[str, Any]:
    role = {name: text for name, setting in _ASSUMED.items() if (text := get(setting))}
    prefix = "assumed.role.sts.endpoint"
    sts = {"endpoint_url": get(prefix), "region_name": get(f"{prefix}.region")}
    if sts["endpoint_url"] and "://" not in sts["endpoint_url"]:
        sts["endpoint_url"] = f"https://{sts['endpoint_url']}"
    return {"assume_role": role, "sts_kwargs": {name: text for name, text in sts.items() if text}}


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
