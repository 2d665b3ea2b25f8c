"""A frozen directory as one small file, and back.

As with any ``tar`` of the classic kind, names, bytes, hard links and whole seconds of modification are kept,
and nothing else: no owner, no fraction of a second, no inode. So what is unpacked is a copy of the sink on
another disk, as users move theirs.
"""

from __future__ import annotations

import gzip
import tarfile
from pathlib import Path

#: Where the frozen states are, one directory for each time that they were frozen.
STATES = Path(__file__).parent


def pack(directory: Path, archive: Path) -> None:
    """Write what is in ``directory``; the same bytes for the same files."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with (
        archive.open("wb") as file,
        gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for path in sorted(directory.rglob("*")):
            entry = tar.gettarinfo(path, str(path.relative_to(directory)))
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mode = 0o755 if entry.isdir() else 0o644
            entry.mtime = int(entry.mtime)
            if entry.isreg():
                with path.open("rb") as content:
                    tar.addfile(entry, content)
            else:
                tar.addfile(entry)


def unpack(archive: Path, directory: Path) -> None:
    """Put a frozen directory there; it is made."""
    with tarfile.open(archive) as tar:
        tar.extractall(directory, filter="data")
