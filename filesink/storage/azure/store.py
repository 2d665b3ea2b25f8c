"""Files on Azure Blob Storage: block lists take the place of multipart uploads; see ``azure_client``."""

from __future__ import annotations

from filesink.storage.s3.store import S3Store


class AzureStore(S3Store):
    """The store of objects, on a container of Azure."""

    name = "azure"
