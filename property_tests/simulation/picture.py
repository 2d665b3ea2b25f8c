"""What is on a disk to the byte, and what was due: for those who say that nothing may change."""

from __future__ import annotations

from filesink.errors import FilesinkError
from property_tests.simulation.stage import Stage
from property_tests.simulation.world.listing import all_files

Picture = dict[str, tuple[int, int, bytes]]


def picture(stage: Stage) -> Picture:
    """Every file with its number, time and bytes; a start may remove old probes."""
    files = all_files(stage.world.disk.root)
    return {
        name: (inode.number, inode.mtime_ns, bytes(inode.data))
        for name, inode in files.items()
        if ".probe." not in name
    }


def expect(stage: Stage, error: Exception | None, kind: type[FilesinkError]) -> None:
    """Fail unless ``error`` is of ``kind``."""
    if not isinstance(error, kind):
        stage.world.fail(f"I14: {kind.__name__} was due, and there was {type(error).__name__}: {error}")
