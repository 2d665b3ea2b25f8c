"""Where files lie: one class of options for each of SeaTunnel's file connectors."""

from __future__ import annotations

from typing import Any, ClassVar

from filesink.jobs.model.options import Options, option
from filesink.jobs.model.secret import Secret
from filesink.jobs.plugins.api import Run

_NAMED = "names are filesink's: no file is ever replaced"


class Place(Options):
    """A store. Derived classes say how a path in it is spelled, and what its client is told.

    Attributes:
        takes_writes: ``""``, or why a sink cannot write there.
    """

    takes_writes: ClassVar[str] = ""

    def address(self, path: str) -> str:
        """The path as filesink takes it."""
        return path

    def storage(self, run: Run) -> dict[str, Any]:
        """Options of the store."""
        del run
        return {}


class LocalPlace(Place):
    """A disk that every task sees under the same path."""


class HdfsPlace(Place):
    """HDFS."""

    refused = {
        "hdfs_site_path": "write fs.defaultFS; a client's own configuration is found by HADOOP_CONF_DIR",
        "remote_user": "set HADOOP_USER_NAME",
        "kerberos_principal": "run kinit before, or give Spark its keytab",
        "kerberos_keytab_path": "run kinit before, or give Spark its keytab",
        "krb5_path": "set KRB5_CONFIG",
    }

    default_fs: str = option(doc="hdfs://host:port.", words=("fs.defaultFS",))

    def address(self, path: str) -> str:
        """See ``Place.address``."""
        return f"{self.default_fs.rstrip('/')}/{path.lstrip('/')}"


class _ObjectPlace(Place):
    """What speaks the protocol of S3."""

    bucket: str = option(doc="The bucket, with or without its scheme.")

    def address(self, path: str) -> str:
        """See ``Place.address``."""
        name = self.bucket.partition("://")[2] or self.bucket
        return f"s3://{name.strip('/')}/{path.lstrip('/')}"

    def _with(self, run: Run, key: Secret | None, secret: Secret | None, endpoint: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if key is not None and secret is not None:
            found |= {"key": run.reveal(key), "secret": run.reveal(secret)}
        if endpoint:
            found["endpoint_url"] = endpoint if "://" in endpoint else f"https://{endpoint}"
        return found


class S3Place(_ObjectPlace):
    """S3, or what speaks its protocol."""

    refused = {"hadoop_s3_properties": "write spark.hadoop.fs.s3a.… into env, which every path on S3 obeys"}
    harmless = {"hadoop_s3_properties": ({},)}
    without_effect = {
        "fs.s3a.aws.credentials.provider": "keys are used if there are any; else they are found as boto3 does"
    }

    endpoint: str = option("", doc="The address of the service.", words=("fs.s3a.endpoint",))
    access_key: Secret | None = option(None, doc="A reference.")
    secret_key: Secret | None = option(None, doc="A reference.")

    def storage(self, run: Run) -> dict[str, Any]:
        """See ``Place.storage``."""
        return self._with(run, self.access_key, self.secret_key, self.endpoint)


class OssPlace(_ObjectPlace):
    """Alibaba's OSS, by its interface of S3."""

    endpoint: str = option(doc="The address of the service.")
    access_key: Secret | None = option(None, doc="A reference.")
    access_secret: Secret | None = option(None, doc="A reference.")

    def storage(self, run: Run) -> dict[str, Any]:
        """See ``Place.storage``."""
        return self._with(run, self.access_key, self.access_secret, self.endpoint)


class ObsPlace(OssPlace):
    """Huawei's OBS, by its interface of S3."""

    access_key: Secret | None = option(None, doc="A reference.", words=("access_key", "security_key_id"))


class CosPlace(_ObjectPlace):
    """Tencent's COS, by its interface of S3."""

    region: str = option(doc="Of the bucket.")
    endpoint: str = option("", doc="The address of the service, if it is not that of the region.")
    secret_id: Secret | None = option(None, doc="A reference.")
    secret_key: Secret | None = option(None, doc="A reference.")

    def storage(self, run: Run) -> dict[str, Any]:
        """See ``Place.storage``."""
        endpoint = self.endpoint or f"cos.{self.region}.myqcloud.com"
        return self._with(run, self.secret_id, self.secret_key, endpoint)


class _ServerPlace(Place):
    """A server that fsspec reads from."""

    scheme: ClassVar[str] = ""
    takes_writes = "its protocol cannot create a file only if there is none, and exactly-once needs that"

    host: str = option(doc="The server.")
    port: int = option(doc="Its port.", ge=1, le=65_535)
    user: str = option(doc="Who logs in.")
    password: Secret = option(doc="A reference.")

    def address(self, path: str) -> str:
        """See ``Place.address``."""
        return f"{self.scheme}://{self.host}:{self.port}/{path.lstrip('/')}"

    def storage(self, run: Run) -> dict[str, Any]:
        """See ``Place.storage``."""
        return {"username": self.user, "password": run.reveal(self.password)}


class FtpPlace(_ServerPlace):
    """FTP."""

    scheme = "ftp"
    without_effect = {"connection_mode": "the client is always the one that connects (passive)"}


class SftpPlace(_ServerPlace):
    """SFTP."""

    scheme = "sftp"
