"""A store as small as can be: what a place needs whose renames never replace; ``HdfsStore`` does the rest."""

import io
from contextlib import suppress
from pathlib import Path

from filesink.storage.hdfs.namenode import HdfsStatus


class ToyTree:
    class _Writer(io.BufferedWriter):
        abandon = io.BufferedWriter.close

    open = staticmethod(io.FileIO)

    def mkdirs(self, path):
        Path(path).mkdir(parents=True, exist_ok=True)

    def create(self, path):
        self.mkdirs(Path(path).parent)
        return self._Writer(io.FileIO(path, "xb"))

    def status(self, path):
        with suppress(FileNotFoundError):
            known, is_directory = Path(path).stat(), Path(path).is_dir()
            name, size, mtime_ms = Path(path).name, known.st_size, known.st_mtime_ns // 1_000_000
            return HdfsStatus(name=name, size=size, mtime_ms=mtime_ms, is_directory=is_directory)

    def rename(self, source, target):
        with suppress(FileExistsError):
            Path(target).hardlink_to(source)  # never replaces, as a rename of this machine would
        if not Path(source).samefile(target):
            raise FileExistsError(target)
        Path(source).unlink()

    def delete(self, path):
        Path(path).unlink(missing_ok=True)

    def list(self, path):
        return [found for each in Path(path).iterdir() if (found := self.status(each))]
