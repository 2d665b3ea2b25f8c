"""The runbook is tried: its commands, as they stand there, mend a path that was broken on purpose."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from filesink.cli.app import app
from filesink.operations.fsck.kinds import KINDS
from tests.cli.running import run
from tests.operations import broken_paths, damage
from tests.sink_directory.written import Written

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations.md"
_SECTION = re.compile(
    r"^### (?P<symptom>[^\n]+)\n+<!-- tried on: (?P<damage>[^\n]+) -->\n(?P<text>.*?)(?=^##)",
    re.MULTILINE | re.DOTALL,
)
_SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"(?<!_)\bfilesink ([a-z]+) (?:PATH|-|/data)")
_MAKERS = ("whole", "with_open_parts", "unfinished")


@dataclass(frozen=True, kw_only=True)
class Section:
    """A symptom, how a path gets it, and the commands."""

    symptom: str
    damages: tuple[str, ...]
    commands: tuple[str, ...]

    def __str__(self) -> str:
        return self.symptom


def sections() -> Iterator[Section]:
    """Those of the page that say how they are tried."""
    for found in _SECTION.finditer(PAGE.read_text()):
        lines = "".join(_SHELL.findall(found["text"])).splitlines()
        yield Section(
            symptom=found["symptom"],
            damages=tuple(found["damage"].split(", ")),
            commands=tuple(line for line in lines if line),
        )


SECTIONS = list(sections())


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a section is tried; ``file`` is what a finding would name."""

    base: Path
    backup: Path
    aside: Path
    file: str

    def resolved(self, line: str) -> list[str]:
        """The words of a line, with the paths of this place."""
        names = {"/data/trips": self.base, "/backup/trips": self.backup, "FILE": self.file}
        words = [str(self.aside) if word == "/tmp/" else word for word in shlex.split(line)]  # noqa: S108 - of the page
        return [re.sub("|".join(names), lambda found: str(names[found[0]]), word) for word in words]


def state_lost(base: Path) -> Path:
    """What no check can find: without it the path is no sink's."""
    shutil.rmtree(base / "_filesink")
    return base / "_filesink"


_STATE_LOST = damage.Damage(code="", make=state_lost)


def broken(section: Section, root: Path) -> Place:
    """A path with the damage of ``section``, and a backup from before it."""
    base, backup, aside = root / "base", root / "backup", root / "aside"
    aside.mkdir()
    damages = [
        next(one for one in (*damage.DAMAGES, _STATE_LOST) if str(one) == name)
        for name in section.damages
        if name not in _MAKERS
    ]
    maker = next((name for name in section.damages if name in _MAKERS), None)
    made: Written = getattr(broken_paths, maker)(base) if maker else damages[0].on(base)
    assert made.base == base
    shutil.copytree(base, backup)
    paths = [one.make(base) for one in damages]
    return Place(base=base, backup=backup, aside=aside, file=str(paths[0].relative_to(base)) if paths else "")


@pytest.mark.parametrize("section", SECTIONS, ids=str)
def test_the_commands_of_a_symptom_mend_it(section: Section, tmp_path: Path) -> None:
    """One after the other; none of those that change something fails, and in the end nothing is wrong."""
    place = broken(section, tmp_path)
    code = None
    for line in section.commands:
        program, *arguments = place.resolved(line)
        if program == "filesink":
            ran = run(*arguments)
            code = ran.code
            assert code == 0 or (code == 1 and arguments[0] in {"fsck", "status"}), (line, ran)
        else:
            _by_hand(program, arguments)
    assert section.commands[-1].startswith("filesink fsck")
    assert code == 0


def _by_hand(program: str, arguments: list[str]) -> None:
    match program, arguments:
        case "mv", [source, target]:
            shutil.move(source, target)
        case "cp", ["-p", source, target]:
            shutil.copy2(source, target)
        case "cp", ["-pr", source, target]:
            shutil.copytree(source, Path(target) / Path(source).name, dirs_exist_ok=True)
        case _:
            raise AssertionError((program, arguments))


def test_there_is_a_section_for_most_that_can_happen() -> None:
    """And what is tried is what the page says."""
    assert len(SECTIONS) > 14
    assert all(section.commands for section in SECTIONS)


def test_every_command_is_on_the_page() -> None:
    """In one of its tables; and no command is named that there is not."""
    names = {command.name for command in app.registered_commands}
    text = PAGE.read_text()
    of_jobs = set(re.findall(r"`filesink ([a-z]+)[ `]", (PAGE.parent / "jobs.md").read_text()))
    assert names - set(re.findall(r"`([a-z]+) \[?PATH", text)) - of_jobs == set()
    assert of_jobs - names == set()
    mends = " ".join(kind.mend for kind in KINDS.values())
    assert set(_COMMAND.findall(text + mends)) - names == set()
