"""Where files live, as a value that travels to other processes, unlike a store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from filesink.storage.api import Store
from filesink.storage.open import open_store


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAddress:
    """Where a sink's files live. Opened anew in every process; options never reach a record or a log."""

    base_path: str
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __call__(self) -> Store:
        """The store itself."""
        return open_store(self.base_path, self.storage_options)
