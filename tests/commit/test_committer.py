"""Publishing decided files, one by one, again and again."""

from __future__ import annotations

import pytest

from filesink.commit.committer import FileCommitter
from filesink.errors import CommitConflictError, InternalError, StagedDataLost, StorageError
from filesink.naming import HiddenName
from filesink.parts.committables import DiscardFile, PendingFile
from filesink.ports import SerialRunner
from filesink.storage.faulty import Fault, Moment
from filesink.storage.memory import MemoryFile
from filesink.storage.staged import HiddenFile
from filesink.system import ThreadRunner
from tests.fakes import World, held, staged

TAG = "0123abcd"


@pytest.fixture
def world():
    """An empty base."""
    return World()


@pytest.fixture
def committer(world):
    """The committer of a driver."""
    return FileCommitter(world.store(), SerialRunner())


def hide(world, content=b"x", *, bucket="", slot=3):
    """A hidden file of ours."""
    path = f"{bucket}/{HiddenName(target='p', tag=TAG, slot=slot, attempt=world.ids.uuid())}".lstrip("/")
    output = world.store().create(path, target=None)
    output.write(content)
    return output.close()


def pending(world, name, content=b"x", *, slot=3):
    """A pending file."""
    file = hide(world, content, slot=slot)
    return PendingFile(bucket="", target=name, staged=file, rows=1, size=len(content))


def test_all_are_published_and_inputs_removed(world, committer):
    """Flink's testCommitMultiple: three pending and two to clean up leave three files."""
    files = [pending(world, f"part-{number}") for number in range(3)]
    inputs = [DiscardFile(path=hide(world).path) for _ in range(2)]
    assert committer.commit([*inputs, *files]) == []
    assert sorted(world.contents()) == ["part-0", "part-1", "part-2"]


def test_committing_twice_changes_nothing(world, committer):
    """A replay after success finds everything done, in another process too."""
    files = [pending(world, "part-0"), DiscardFile(path=hide(world).path)]
    committer.commit(files)
    before = dict(world.files.files)
    assert FileCommitter(world.store(), SerialRunner()).commit(files) == []
    assert world.files.files == before


def test_one_of_a_hundred_fails(world, committer):
    """A file that fails for the moment is given back alone; the other 99 are visible."""
    files = [pending(world, f"part-{number:02}") for number in range(100)]
    busy = Fault(moment=Moment.BEFORE, error=StorageError("busy", code="BUSY"))
    world.fault = lambda operation, path: busy if (operation, path) == ("publish", "part-42") else None
    assert committer.commit(files) == [files[42]]
    assert len(world.visible()) == 99


def test_a_failure_is_logged(world, committer, caplog):
    """Why a file has to be tried again is not kept from the operator."""
    busy = Fault(moment=Moment.BEFORE, error=StorageError("the store is busy", code="BUSY"))
    world.fault = lambda operation, _path: busy if operation == "publish" else None
    committer.commit([pending(world, "part-0")])
    assert "the store is busy" in caplog.text


def test_inputs_stay_until_all_is_visible(world, committer):
    """While one file is not published, nothing that it may replace is removed."""
    discard = DiscardFile(path=hide(world).path)
    busy = Fault(moment=Moment.BEFORE, error=StorageError("busy", code="BUSY"))
    world.fault = lambda operation, _path: busy if operation == "publish" else None
    file = pending(world, "part-0")
    assert committer.commit([file, discard]) == [file, discard]
    assert discard.path in world.files.files
    world.fault = lambda _operation, _path: None
    assert committer.commit([file, discard]) == []
    assert discard.path not in world.files.files


def test_inputs_stay_until_all_is_durable(world, committer):
    """If the directory cannot be synced, nothing is removed."""
    discard = DiscardFile(path=hide(world).path)
    broken = Fault(moment=Moment.BEFORE, error=StorageError("io", code="IO"))
    world.fault = lambda operation, _path: broken if operation == "sync_directories" else None
    with pytest.raises(StorageError):
        committer.commit([pending(world, "part-0"), discard])
    assert discard.path in world.files.files


def test_hidden_names_stay_until_the_final_ones_are_durable(world, committer):
    """A power cut may take either name of a file, so neither goes before the other is sure to stay."""
    calls = []
    world.fault = lambda operation, _path: calls.append(operation)
    committer.commit([pending(world, "part-0"), pending(world, "part-1")])
    first = calls.index("publish")
    assert calls[first : first + 5] == ["publish", "publish", "sync_directories", "release", "release"]


def test_a_hidden_name_that_cannot_be_removed_is_tried_again(world, committer):
    """The file is visible and durable; its epoch is not done before its hidden name is gone."""
    files = [pending(world, "part-0"), pending(world, "part-1")]
    busy = Fault(moment=Moment.BEFORE, error=StorageError("busy", code="BUSY"))
    world.fault = lambda operation, path: (
        busy if (operation, path) == ("release", files[0].staged.path) else None
    )
    assert committer.commit(files) == [files[0]]
    assert sorted(world.visible()) == ["part-0", "part-1"]
    world.fault = lambda _operation, _path: None
    assert committer.commit([files[0]]) == []


def test_a_foreign_file_is_not_overwritten(world, committer):
    """What stands under a final name stays; the others are published all the same."""
    files = [pending(world, "part-0"), pending(world, "part-1")]
    world.files.files["part-0"] = MemoryFile(inode=-1, mtime_ms=-1, content=b"theirs")
    with pytest.raises(CommitConflictError):
        committer.commit(files)
    assert world.visible() == {"part-0": b"theirs", "part-1": b"x"}


def test_missing_bytes_are_never_passed_over(world, committer):
    """Both names gone is an error, where Flink's local committer returns success."""
    file = pending(world, "part-0")
    del world.files.files[file.staged.path]
    with pytest.raises(StagedDataLost):
        committer.commit([file])


def test_nothing_is_published_if_bytes_are_gone(world, committer):
    """What is still there stays hidden, and the error says how many files and rows, and of which epoch."""
    files = [pending(world, f"part-{number}", slot=7) for number in range(9)]
    committer.commit(files[:1])
    for file in files[3:8]:
        del world.files.files[file.staged.path]
    with pytest.raises(StagedDataLost, match=r"5 of 9 files .* 5 rows written in epoch 7: ") as raised:
        FileCommitter(world.store(), SerialRunner()).commit(files)
    assert raised.value.code == "STAGED_DATA_LOST"
    assert files[3].staged.path in raised.value.message
    assert files[7].staged.path not in raised.value.message
    assert list(world.visible()) == ["part-0"]


def test_after_a_failure_everything_is_looked_at_again(world, committer):
    """Only a driver that has just seen an epoch through trusts that the next one's files are there."""
    committer.commit([pending(world, "part-0")])
    files = [pending(world, "part-1"), pending(world, "part-2")]
    busy = Fault(moment=Moment.BEFORE, error=StorageError("busy", code="BUSY"))
    world.fault = lambda operation, _path: busy if operation == "publish" else None
    assert committer.commit(files) == files
    del world.files.files[files[1].staged.path]
    world.fault = lambda _operation, _path: None
    with pytest.raises(StagedDataLost):
        committer.commit(files)
    assert list(world.visible()) == ["part-0"]


def test_a_store_that_cannot_be_looked_at_is_tried_again(world, committer):
    """Not to know whether bytes are there is not to have lost them."""
    file = pending(world, "part-0")
    busy = Fault(moment=Moment.BEFORE, error=StorageError("busy", code="BUSY"))
    world.fault = lambda operation, _path: busy if operation in {"verify", "publish"} else None
    assert committer.commit([file]) == [file]


def test_changed_bytes_are_not_published(world, committer):
    """A hidden file of another length than was closed is not what was decided."""
    file = pending(world, "part-0", b"whole")
    world.files.files[file.staged.path].content = b"who"
    with pytest.raises(StagedDataLost):
        committer.commit([file])
    assert world.visible() == {}


def test_held_files_cannot_be_committed(committer):
    """A held file that reaches the committer is a bug of a stage."""
    with pytest.raises(InternalError):
        committer.commit([held("x")])


def test_abort_discards_pending_files_only(world, committer):
    """What an undecided epoch reported is removed; held files may belong to earlier ones."""
    file, kept = pending(world, "part-0"), hide(world)
    committer.abort([file, held(kept.path), DiscardFile(path=kept.path)])
    assert world.hidden() == [kept.path]


def test_identity_is_more_than_a_name():
    """Values of equal fields are equal: what a task reports is what the ledger holds."""
    assert staged("a") == HiddenFile(path="a", size=1, inode=1, mtime_ns=1)


@pytest.mark.parametrize("runner", [SerialRunner(), ThreadRunner(3)], ids=["serial", "threads"])
def test_every_item_is_tried_and_the_first_error_is_raised(runner):
    """Whoever is told of an error may rely on it that no work goes on behind his back."""
    tried = []

    def work(number):
        tried.append(number)
        if number % 2:
            raise StorageError(f"item {number}", code="IO")
        return number

    with pytest.raises(StorageError, match="item 1"):
        runner.run(work, range(6))
    assert sorted(tried) == list(range(6))
    assert runner.run(work, [4, 0, 2]) == [4, 0, 2]
