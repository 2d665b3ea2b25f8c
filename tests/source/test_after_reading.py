"""What becomes of files that were read: nothing before the checkpoint has them, nothing to any other file."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from filesink.errors import CommitConflictError, ConfigError
from filesink.source.directories import root_of
from filesink.source.discovery.after_reading import Action, AfterReading, Tidying
from filesink.source.discovery.discovery import Discovery
from filesink.source.discovery.log import DIRECTORY, DiscoveryLog
from filesink.source.enumerators import RecursiveFileEnumerator
from filesink.source.streams import FoundFiles, Limit
from filesink.storage.faulty import Fault, FaultyStore, Moment, Plan
from filesink.storage.open import open_store
from filesink.system import SystemClock, SystemIds
from tests.source.found_files import Checkpoint, all_read, run

DELETE = AfterReading(action=Action.DELETE)


class Place:
    """Directories to read, to move to, and for the state."""

    def __init__(self, base: Path) -> None:
        self.source, self.moved, self.state = base / "in", base / "moved", base / "state"
        self.source.mkdir()

    def write(self, *names: str, text: str = "x") -> None:
        for name in names:
            (self.source / name).parent.mkdir(parents=True, exist_ok=True)
            (self.source / name).write_text(text)

    def stream(self, after: AfterReading, plan: Plan = lambda *_: None) -> FoundFiles:
        roots = (root_of(self.source, {}),)
        store = FaultyStore(open_store(self.state, {}), plan)
        log = DiscoveryLog(store, ids=SystemIds())

        def open_log() -> None:
            store.prepare()
            log.open([str(self.source)])

        enumerate_files = partial(RecursiveFileEnumerator().enumerate_files, roots)
        discovery = Discovery(log, enumerate_files, clock=SystemClock())
        return FoundFiles(discovery, open_log=open_log, tidying=Tidying(log, store, roots=roots, after=after))

    def there(self, directory: Path | None = None) -> list[str]:
        base = directory or self.source
        files = (path for path in base.rglob("*") if path.is_file())
        return sorted(str(path.relative_to(base)) for path in files)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Empty directories."""
    return Place(tmp_path)


def test_nothing_goes_before_the_checkpoint_has_it(place: Place) -> None:
    """While a batch is read its files are there; once it is done they are gone, and no others."""
    place.write("a", "dir/b")
    seen = []
    run(Checkpoint(), place.stream(DELETE), before_commit=lambda: seen.append(place.there()))
    assert seen == [["a", "dir/b"]]
    assert place.there() == []


def test_files_are_moved_with_their_directories(place: Place) -> None:
    """Bytes and paths stay what they were, below another directory."""
    place.write("a", "dir/b", text="abc")
    after = AfterReading(action=Action.MOVE, move_to=str(place.moved))
    run(Checkpoint(), place.stream(after))
    assert (place.there(), place.there(place.moved)) == ([], ["a", "dir/b"])
    assert (place.moved / "dir" / "b").read_text() == "abc"


def test_a_file_that_was_replaced_is_left_alone(place: Place) -> None:
    """Whoever puts another file under the name of one that was read keeps it."""
    place.write("a", "b")

    def replace() -> None:
        place.write("a", text="others")
        os.utime(place.source / "a", (1, 1))

    run(Checkpoint(), place.stream(DELETE), before_commit=replace)
    assert place.there() == ["a"]


def test_a_driver_that_died_before_it_removed_anything(place: Place) -> None:
    """Its files go when the next run begins, whether anything is new or not: none is kept for ever."""
    place.write("a")
    checkpoint = Checkpoint()

    class DiedError(Exception):
        pass

    stream = place.stream(DELETE)
    stream.finish = lambda _: (_ for _ in ()).throw(DiedError)  # type: ignore[method-assign]
    with pytest.raises(DiedError):
        run(checkpoint, stream)
    assert place.there() == ["a"]
    run(checkpoint, place.stream(DELETE))
    assert (place.there(), len(all_read(checkpoint))) == ([], 1)


@pytest.mark.parametrize("moment", Moment)
def test_a_driver_that_died_in_between(place: Place, moment: Moment) -> None:
    """Before it noted how far it was, or after: the next one finds the files gone, and goes on."""
    place.write("a", "b")
    checkpoint = Checkpoint()

    class DiedError(BaseException):
        pass

    def plan(operation: str, path: str) -> Fault | None:
        is_note = operation == "put_if_absent" and path.endswith(".done")
        return Fault(moment=moment, error=DiedError()) if is_note else None

    with pytest.raises(DiedError):
        run(checkpoint, place.stream(DELETE, plan))
    place.write("c")
    run(checkpoint, place.stream(DELETE))
    assert (place.there(), len(all_read(checkpoint))) == ([], 3)
    marks = [path.name for path in (place.state / DIRECTORY).glob("*.done")]
    assert marks == ["000000000003.done"]


def test_a_move_that_was_cut_off_is_finished(place: Place) -> None:
    """A file that lies at both places already is only removed; another one under its name is not replaced."""
    place.write("a", "b")
    place.moved.mkdir()
    (place.moved / "a").write_text("x")
    (place.moved / ".b.moving").write_text("half")
    after = AfterReading(action=Action.MOVE, move_to=str(place.moved))
    run(Checkpoint(), place.stream(after))
    assert (place.there(), place.there(place.moved)) == ([], ["a", "b"])
    place.write("c", text="ours")
    (place.moved / "c").write_text("somebody else's")
    checkpoint = Checkpoint()
    stream = place.stream(after)
    checkpoint.offsets.append((stream.initial(), {**stream.initial(), "files": 2}))
    checkpoint.read.append([file.path for file in stream.files(*checkpoint.offsets[0])])
    checkpoint.done = 1
    with pytest.raises(CommitConflictError):
        run(checkpoint, stream, limit=Limit())
    assert place.there() == ["c"]


@pytest.mark.parametrize(
    ("path", "after"),
    [
        ("local:///data", DELETE),
        ("/data/in", AfterReading(action=Action.MOVE, move_to="/data/in/done")),
        ("/data/in/", AfterReading(action=Action.MOVE, move_to="/data/in")),
    ],
)
def test_what_cannot_be(path: str, after: AfterReading) -> None:
    """Removing where we only read, and moving to where files would be found again."""
    with pytest.raises(ConfigError) as error:
        after.check((root_of(path, {}),))
    assert error.value.code == "CONFLICT"


@pytest.mark.parametrize(("action", "to"), [(Action.MOVE, ""), (Action.DELETE, "/x"), (Action.KEEP, "/x")])
def test_an_action_and_its_directory_go_together(action: Action, to: str) -> None:
    """One without the other is a mistake."""
    with pytest.raises(ConfigError, match="a directory to move files to"):
        AfterReading(action=action, move_to=to)
