"""Files on Azure Blob Storage: block lists take the place of multipart uploads; see ``client``."""

from __future__ import annotations

from filesink.storage.objects.store import ObjectStore


class AzureStore(ObjectStore):
    """The store of objects, on a container of Azure."""

    name = "azure"
