"""An exporter that does what it is told, and one that fails."""

from __future__ import annotations

from filesink import Exporter, ExportError, SinkDirectory


class Names(Exporter):
    """Remembers the names of the live files in memory.

    Args:
        name: see there.
        fails: raised by every call, as long as it is there.
    """

    def __init__(self, name: str = "names", fails: Exception | None = None) -> None:
        self._name = name
        self.fails = fails
        self.at: int | None = None
        self.files: set[str] = set()
        self.calls: list[int] = []

    @property
    def name(self) -> str:
        return self._name

    def version(self, directory: SinkDirectory) -> int | None:
        del directory
        if self.fails is not None:
            raise self.fails
        return self.at

    def bring_to(self, directory: SinkDirectory, version: int) -> None:
        self.calls.append(version)
        self.files = {file.path for file in directory.snapshot(version).files}
        self.at = version


def away() -> ExportError:
    """A catalog that does not answer."""
    return ExportError("the catalog does not answer", code="AWAY")
