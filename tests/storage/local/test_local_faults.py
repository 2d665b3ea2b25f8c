"""Every system call of the local store fails once, before or after its effect.

The whole way of a file is run on a real directory, with a fault at each call in turn. Whatever
happens, the error is one of ours, readers never see half a file, and a second driver, without
faults, brings it to its end or says truly that the bytes are gone.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from filesink.errors import CommitStateUnknown, FilesinkError, StagedDataLost, StorageError
from filesink.storage.api import PutResult
from filesink.storage.faulty import Moment
from filesink.storage.local.posix import PosixFs
from filesink.storage.local.store import LocalStore
from tests.contracts.store_site import finish
from tests.storage.scripted_fs import (
    DATA,
    TARGET,
    ScriptedFs,
    contents,
    fail_at,
    fail_on,
    local,
    publish,
    write,
)

ERRNOS = [
    errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EMFILE, errno.ENFILE,
    errno.ENAMETOOLONG, errno.EXDEV, errno.ESTALE, errno.ETIMEDOUT, errno.EEXIST, errno.ENOENT,
]  # fmt: skip


class Crash(BaseException):
    """The process is gone; nothing of its code matters any more."""


@pytest.fixture
def fs(tmp_path: Path) -> ScriptedFs:
    """A file system that can be told to fail."""
    return ScriptedFs(PosixFs(str(tmp_path)))


@pytest.fixture
def plain(tmp_path: Path) -> LocalStore:
    """A store on the same directory whose calls succeed."""
    return local(PosixFs(str(tmp_path)))


def bases(tmp_path: Path, run: Callable[[LocalStore], object]) -> Iterator[tuple[int, str]]:
    """The number of each system call of ``run`` with a fresh directory to let it fail in."""
    trial = tmp_path / "trial"
    trial.mkdir()
    fs = ScriptedFs(PosixFs(str(trial)))
    run(local(fs))
    assert len(fs.calls) > 3
    for number in range(len(fs.calls)):
        base = tmp_path / str(number)
        base.mkdir()
        yield number, str(base)


@pytest.mark.parametrize("moment", Moment)
@pytest.mark.parametrize("code", ERRNOS, ids=errno.errorcode.get)
def test_a_fault_while_writing_leaves_nothing(tmp_path: Path, moment: Moment, code: int) -> None:
    """The attempt fails with one of our errors or succeeds; a failed one leaves nothing."""
    for number, base in bases(tmp_path, write):
        fs = ScriptedFs(PosixFs(base), fail=fail_at(number, moment, code))
        try:
            staged = write(local(fs))
        except FilesinkError:
            # Made by us and reported as made by another: not ours to remove; the sweep's.
            spared = {path for path in contents(base) if code == errno.EEXIST}
            assert set(contents(base)) == spared, fs.calls
        else:
            assert contents(fs.base) == {staged.path: DATA}, fs.calls
        assert fs.handles == {}, fs.calls


@pytest.mark.parametrize("moment", Moment)
@pytest.mark.parametrize("code", ERRNOS, ids=errno.errorcode.get)
def test_a_fault_while_publishing_is_rolled_forward(tmp_path: Path, moment: Moment, code: int) -> None:
    """At each call publication fails with a StorageError or is done, and a second driver completes it."""
    for number, base in bases(tmp_path, lambda store: publish(store, write(store))):
        plain = local(PosixFs(base))
        staged = write(plain)
        fs = ScriptedFs(PosixFs(base), fail=fail_at(number, moment, code))
        try:
            publish(local(fs), staged)
        except StorageError:
            assert contents(fs.base).get(TARGET, DATA) == DATA
        else:
            assert contents(fs.base)[TARGET] == DATA, fs.calls
        finish(plain, staged, TARGET)
        assert contents(fs.base) == {TARGET: DATA}, fs.calls
        assert fs.handles == {}


@pytest.mark.parametrize("data", [b"", DATA])
@pytest.mark.parametrize("moment", Moment)
@pytest.mark.parametrize("code", ERRNOS, ids=errno.errorcode.get)
def test_a_fault_while_creating_is_told_truly(tmp_path: Path, moment: Moment, code: int, data: bytes) -> None:
    """Created means created, an error not created or not known; readers see all bytes or no file."""
    path = "_filesink/sink/0"
    for number, base in bases(tmp_path, lambda store: store.put_if_absent(path, data)):
        fs = ScriptedFs(PosixFs(base), fail=fail_at(number, moment, code))
        try:
            outcome = local(fs).put_if_absent(path, data)
        except CommitStateUnknown:
            assert contents(fs.base).get(path, data) == data
        except StorageError:
            assert path not in contents(fs.base), fs.calls
        else:
            # For an empty file, EEXIST cannot be told from another's: it looks the same.
            assert outcome is PutResult.CREATED or (data == b"" and code == errno.EEXIST), fs.calls
            if outcome is PutResult.CREATED:
                assert contents(fs.base) == {path: data}, fs.calls
        assert fs.handles == {}, fs.calls


@pytest.mark.parametrize(
    "failure", [Crash(), OSError(errno.EIO, "Input/output error")], ids=["crash", "disk"]
)
def test_a_process_that_dies_anywhere_is_succeeded(tmp_path: Path, failure: BaseException) -> None:
    """From each call on nothing works any more; the next driver finishes what was reported, no more."""
    for number, base in bases(tmp_path, lambda store: publish(store, write(store))):

        def die(current: int, _name: str, *, first: int = number) -> None:
            if current >= first:
                raise failure

        store, staged = local(ScriptedFs(PosixFs(base), fail=die)), None
        with pytest.raises((Crash, StorageError)):  # noqa: PT012 - it may die in either
            staged = write(store)
            publish(store, staged)
        if staged is None:
            assert all(path.rpartition("/")[2].startswith(".") for path in contents(base))
        else:
            finish(local(PosixFs(base)), staged, TARGET)
            assert contents(base) == {TARGET: DATA}


@pytest.mark.parametrize(
    "failure", [Crash(), OSError(errno.EIO, "Input/output error")], ids=["crash", "disk"]
)
def test_a_record_is_whole_or_absent_wherever_its_writer_dies(tmp_path: Path, failure: BaseException) -> None:
    """The next driver can put its own record, or finds the whole one; leftovers begin with a dot."""
    for number, base in bases(tmp_path, lambda store: store.put_if_absent("l/0", DATA)):

        def die(current: int, _name: str, *, first: int = number) -> None:
            if current >= first:
                raise failure

        with pytest.raises((Crash, StorageError)):
            local(ScriptedFs(PosixFs(base), fail=die)).put_if_absent("l/0", DATA)
        outcome = local(PosixFs(base)).put_if_absent("l/0", b"the next driver's")
        expected = DATA if outcome is PutResult.EXISTS else b"the next driver's"
        assert {p: d for p, d in contents(base).items() if "/." not in p} == {"l/0": expected}


def test_a_lost_answer_of_link_is_no_failure(fs: ScriptedFs, plain: LocalStore) -> None:
    """A network file system that links and then reports an error, or that the name exists, has linked."""
    for code in (errno.EIO, errno.EEXIST, errno.ETIMEDOUT):
        target = f"a/part-{code}-0"
        staged = write(plain, target)
        fs.fail = fail_on("link", Moment.AFTER, code)
        finish(local(fs), staged, target)
        assert local(fs).put_if_absent(f"l/{code}", DATA) is PutResult.CREATED
        assert plain.read(target) == DATA
    assert not any("/." in path for path in contents(fs.base))


def test_a_record_whose_fate_cannot_be_read_is_unknown(fs: ScriptedFs) -> None:
    """If after an error neither name can be looked at, that is said, and nothing is removed."""
    fs.fail = lambda _number, name: (Moment.AFTER, errno.EIO) if name in {"link", "stat"} else None
    with pytest.raises(CommitStateUnknown):
        local(fs).put_if_absent("l/0", DATA)
    assert contents(fs.base)["l/0"] == DATA


def test_an_empty_record_that_another_may_have_made_is_unknown(fs: ScriptedFs, plain: LocalStore) -> None:
    """After an error a file stands there, and nothing tells whose it is: two drivers would have made it."""
    plain.put_if_absent("l/0", b"")
    fs.fail = fail_on("create_exclusive", Moment.BEFORE, errno.EIO)
    with pytest.raises(CommitStateUnknown):
        local(fs).put_if_absent("l/0", b"")


def test_a_record_whose_hidden_name_is_gone_is_unknown(fs: ScriptedFs) -> None:
    """What stands there may be ours, whose answer was lost, or another's: the name would have told."""

    def fail(_number: int, name: str) -> tuple[Moment, int] | None:
        if name == "stat":
            for hidden_name in (Path(fs.base) / "l").glob(".*"):
                hidden_name.unlink()
        return (Moment.AFTER, errno.EIO) if name == "link" else None

    fs.fail = fail
    with pytest.raises(CommitStateUnknown):
        local(fs).put_if_absent("l/0", DATA)
    assert contents(fs.base) == {"l/0": DATA}


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK])
def test_a_file_system_without_links_is_refused(fs: ScriptedFs, code: int) -> None:
    """At the start of a sink, with the reason, and without leaving anything behind."""
    fs.fail = fail_on("link", Moment.BEFORE, code)
    with pytest.raises(FilesinkError, match="cannot publish without replacing") as raised:
        local(fs).prepare()
    assert raised.value.code == "NO_EXCLUSIVE_PUBLISH"
    assert contents(fs.base) == {}


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (errno.EACCES, "PERMISSION"),
        (errno.EPERM, "PERMISSION"),
        (errno.ENOTDIR, "WRONG_KIND"),
        (errno.EISDIR, "WRONG_KIND"),
        (errno.EROFS, "READ_ONLY"),
        (errno.ENOSPC, "NO_SPACE"),
        (errno.EDQUOT, "QUOTA"),
        (errno.EMFILE, "TOO_MANY_FILES"),
        (errno.ENFILE, "TOO_MANY_FILES"),
        (errno.ENAMETOOLONG, "NAME_TOO_LONG"),
        (errno.ESTALE, "STALE"),
        (errno.ETIMEDOUT, "TIMEOUT"),
        (errno.EXDEV, "CROSS_DEVICE"),
        (errno.EIO, "IO"),
        (errno.EFBIG, "IO"),
    ],
)
def test_errors_have_codes_and_say_what_to_do(fs: ScriptedFs, code: int, name: str) -> None:
    """Operation, path, the system's reason and a remedy are in the message, a stable word in ``code``."""
    fs.fail = fail_on("create_exclusive", Moment.BEFORE, code)
    for step in (lambda: write(local(fs)), local(fs).prepare, lambda: local(fs).put_if_absent("l/0", DATA)):
        with pytest.raises(StorageError, match=rf"cannot \w+.* '{fs.base}/.*': .+; .+") as raised:
            step()
        assert raised.value.code == name
        assert isinstance(raised.value.__cause__, OSError)


@pytest.mark.parametrize("call", ["make_base", "mkdir"])
def test_a_base_that_cannot_be_made_is_an_error_of_ours(fs: ScriptedFs, call: str) -> None:
    """With its code and what to do, like any other: a sink is started by people."""
    fs.fail = fail_on(call, Moment.BEFORE, errno.EROFS)
    with pytest.raises(StorageError, match=f"cannot create '{fs.base}.*'.*remount") as raised:
        local(fs).prepare()
    assert raised.value.code == "READ_ONLY"


def test_a_source_that_shrinks_while_it_is_copied_is_lost(fs: ScriptedFs, plain: LocalStore) -> None:
    """Between the look at a source and its copy it may change; the number of bytes copied tells."""
    source = write(plain)

    def shrink(_number: int, name: str) -> None:
        if name == "copy":
            (Path(fs.base) / source.path).write_bytes(b"abc")

    fs.fail = shrink
    with pytest.raises(StagedDataLost, match="has 3 bytes, 3000 were recorded"):
        local(fs).concat([source], ".merged", target=None)
    assert set(contents(fs.base)) == {source.path}
    assert fs.handles == {}


def test_why_a_join_failed_is_told_although_its_file_stays(fs: ScriptedFs, plain: LocalStore) -> None:
    """The sweep removes that one; whoever joins learns that the source was lost."""
    source = write(plain)
    (Path(fs.base) / source.path).write_bytes(b"abc")
    fs.fail = lambda _number, name: (Moment.BEFORE, errno.EIO) if name == "unlink" else None
    with pytest.raises(StagedDataLost):
        local(fs).concat([b"head", source], ".merged", target=None)
    assert fs.handles == {}
