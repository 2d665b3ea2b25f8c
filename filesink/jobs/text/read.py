"""A job file, read: the door of this room.

Rules:
1. A file has at most 1 MiB, and so have all that it includes together.
2. What is included lies in the directory of the job file or below it, through links as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from filesink.errors import JobError
from filesink.jobs.text.hocon import read_hocon
from filesink.jobs.text.place import Place, failure, nearest
from filesink.jobs.text.resolve import resolve
from filesink.jobs.text.sql import read_sql
from filesink.jobs.text.tree import Sections, WrittenObject
from filesink.jobs.text.variables import Variables
from filesink.jobs.text.yaml import read_yaml

LARGEST = 1024 * 1024  # bytes
_INCLUDES = 32
_SUFFIXES = (".conf", ".hocon", ".json", ".config", ".yaml", ".yml", ".sql")


def read(path: Path, variables: Variables) -> Sections:
    """What the file says, with its variables.

    Raises:
        JobError: it cannot be read, or is none; the message has the file and its line.
    """
    if path.suffix not in _SUFFIXES:
        raise JobError(
            f"{path} is no job file by its ending: take one of {', '.join(_SUFFIXES)}", code="JOB_FILE"
        )
    reading = _Reading(home=path.parent.resolve())
    return resolve(reading.written(path, path.suffix), variables)


def read_text(text: str, file: str, variables: Variables) -> Sections:
    """The same of a text whose name is ``file``; it includes nothing."""
    reading = _Reading(home=None)
    return resolve(reading.parsed(text, file, Path(file).suffix, Path()), variables)


@dataclass(slots=True)
class _Reading:
    home: Path | None
    size: int = 0
    open: list[Path] = field(default_factory=list)
    included: int = 0

    def written(self, path: Path, suffix: str) -> WrittenObject:
        text = self._text(path)
        self.open.append(path.resolve())
        try:
            return self.parsed(text, str(path), suffix, path.parent)
        finally:
            self.open.pop()

    def parsed(self, text: str, file: str, suffix: str, directory: Path) -> WrittenObject:
        if suffix in {".yaml", ".yml"}:
            return read_yaml(text, file)

        def include(name: str, place: Place) -> WrittenObject:
            return self._included(name, place, directory)

        return read_sql(text, file, include) if suffix == ".sql" else read_hocon(text, file, include)

    def _text(self, path: Path) -> str:
        try:
            with path.open("rb") as file:
                content = file.read(LARGEST + 1 - self.size)
        except OSError as error:
            near = nearest(path.name, _beside(path)) if not path.exists() else ""
            raise JobError(f"{path} cannot be read: {error.strerror}{near}", code="JOB_FILE") from None
        self.size += len(content)
        if self.size > LARGEST:
            raise JobError(
                f"{path} has more than {LARGEST:,} bytes with all that it includes, which no job file needs: "
                "rows belong into a file that a source reads",
                code="JOB_FILE",
            )
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise failure(
                Place(str(path), line), "this is no UTF-8; save the file as UTF-8", code="JOB_FILE"
            ) from None

    def _included(self, name: str, place: Place, directory: Path) -> WrittenObject:
        if self.home is None:
            raise failure(place, "a job that is no file includes nothing", code="JOB_INCLUDE")
        path = directory / name
        if not path.resolve().is_relative_to(self.home):
            raise failure(place, f"include '{name}' leaves the directory of the job file", code="JOB_INCLUDE")
        if not path.is_file():
            raise failure(
                place,
                f"include '{name}': there is no such file{nearest(path.name, _beside(path))}",
                code="JOB_INCLUDE",
            )
        if path.resolve() in self.open:
            raise failure(place, f"include '{name}' includes itself", code="JOB_INCLUDE")
        self.included += 1
        if self.included > _INCLUDES:
            raise failure(place, f"more than {_INCLUDES} files are included", code="JOB_INCLUDE")
        return self.written(path, ".conf" if path.suffix not in _SUFFIXES else path.suffix)


def _beside(path: Path) -> list[str]:
    try:
        return [one.name for one in path.parent.iterdir() if one.suffix in _SUFFIXES]
    except OSError:
        return []
