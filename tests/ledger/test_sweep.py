"""What may be removed: our own hidden files, for slots that are over, that nobody names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from filesink.errors import IdentityError
from filesink.ledger.identity import EXCLUSIVE
from filesink.ledger.record import BatchWrite
from filesink.ledger.sweep import Chain, hidden_files, leftovers, visible
from filesink.naming import HiddenName, parent, sink_tag
from filesink.operations.maintenance import Lost
from filesink.save_mode import SaveMode
from filesink.storage.memory import MemoryFiles, MemoryStore
from filesink.storage.open import open_store
from tests.fakes import World, keep_open, micro_batch, plan_of, records

ATTEMPT = "00000000-0000-4000-8000-000000000001"


@pytest.fixture
def files():
    """What lies in the store."""
    return MemoryFiles()


def hide(files, *, sink_id="uid-u", slot=1, bucket="", target="part-0", mtime_ms=0):
    """A hidden file of a sink."""
    name = HiddenName(target=target, tag=sink_tag(sink_id), slot=slot, attempt=ATTEMPT)
    path = f"{bucket}/{name}" if bucket else str(name)
    files.make(path, b"12345").mtime_ms = mtime_ms
    return path


def dead(files, *, slot=5, named=(), stale_before_ms=None, directories=None):
    """Paths that may be removed when ``slot`` is complete."""
    chain = Chain(
        sink_id="uid-u", complete_slot=slot, named=frozenset(named), stale_before_ms=stale_before_ms
    )
    found = hidden_files(MemoryStore(files), directories)
    return sorted(leftover.path for leftover in leftovers(chain, found))


@pytest.mark.parametrize(("slot", "is_dead"), [(0, True), (5, True), (6, False), (7, False)])
def test_slots_that_are_over(files, slot, is_dead):
    """Up to the last complete slot nothing can be decided any more; higher ones are never touched."""
    path = hide(files, slot=slot)
    assert dead(files) == ([path] if is_dead else [])


def test_what_the_last_record_names_stays(files):
    """A held file of an old slot is data."""
    kept, gone = hide(files, target="a"), hide(files, target="b")
    assert dead(files, named=[kept]) == [gone]


def test_files_of_other_sinks_stay(files):
    """Another tag, whatever the slot, is another's business."""
    hide(files, sink_id="uid-v", slot=0)
    assert dead(files, stale_before_ms=1) == []


@pytest.mark.parametrize(
    "name",
    [
        ".part-0.crc",
        "_SUCCESS",
        "part-0.json",
        ".spark-staging-1",
        f"part.inprogress.{sink_tag('uid-u')}.1.{ATTEMPT}",
        f".x.inprogress.{sink_tag('uid-u')}.1.{ATTEMPT}.tmp",
        f".x.inprogress.{sink_tag('uid-u')}.one.{ATTEMPT}",
    ],
)
def test_foreign_files_stay(files, name):
    """Files that are not hidden files of ours are not seen, stale chain or not."""
    files.make(name, b"")
    files.make(f"a/{name}", b"")
    assert dead(files, stale_before_ms=1) == []


def test_a_stale_chain_loses_the_old_files_of_its_next_slot(files):
    """A sink that has not moved for long may be at work again: its new files are not touched."""
    old, young = hide(files, slot=6, mtime_ms=99), hide(files, slot=6, target="b", mtime_ms=100)
    assert dead(files, stale_before_ms=100) == [old]
    assert dead(files, stale_before_ms=100, named=[old]) == []
    assert young in files.files


@pytest.mark.parametrize("directories", [None, ["", "a", "a/inner", "a/inner/b"]])
def test_another_base_path_inside_is_left_alone(files, directories):
    """What lies below a directory with ledgers of its own is theirs, be the uid the same."""
    files.make("_filesink/uid-u/000000000005.record", b"")
    files.make("a/inner/_filesink/uid-u/000000000000.record", b"")
    hide(files, bucket="a/inner")
    hide(files, bucket="a/inner/b")
    mine = [hide(files), hide(files, bucket="a")]
    assert dead(files, directories=directories) == mine


def test_nested_buckets_are_searched(files):
    """Everywhere below the base, but not in directories that readers skip, such as the ledger's."""
    inside = [hide(files, bucket="a"), hide(files, bucket="a/b/c"), hide(files)]
    hide(files, bucket="_filesink/uid-u")
    hide(files, bucket=".hidden")
    assert dead(files) == sorted(inside)


def test_dead_letters_are_searched_where_they_are(files):
    """Beside all data; what has their name in a bucket is another's, which readers skip, and is no data."""
    inside = [hide(files, bucket="_dead_letters/a"), hide(files, bucket="a")]
    for bucket in ("a/_dead_letters", "a/_dead_letters/b", "a/_dead_letters_old/b", "_dead_letters/a/_x"):
        hide(files, bucket=bucket)
        files.make(f"{bucket}/letters.json", b"theirs")
    assert dead(files) == sorted(inside)
    assert list(visible(MemoryStore(files))) == []


def test_many_directories_are_searched_in_bundles(files):
    """However many there are on two levels, each is listed, and none twice."""
    paths = [hide(files, bucket=f"a={number % 7}/b={number}") for number in range(200)]
    assert dead(files) == sorted(paths)


def test_the_search_can_be_limited(files):
    """Given directories are looked at, and not what is below them."""
    hide(files)
    wanted = hide(files, bucket="a")
    hide(files, bucket="a/b")
    assert dead(files, directories=["a", "missing"]) == [wanted]


def test_each_chain_judges_its_own(files):
    """The same slot may be over in one chain and not in another."""
    mine, theirs = hide(files, slot=3), hide(files, sink_id="uid-v", slot=3)
    assert dead(files, slot=3) == [mine]
    assert theirs in files.files


def test_a_leftover_says_why(files):
    """Path, size and reason are for people."""
    path = hide(files)
    chain = Chain(sink_id="uid-u", complete_slot=1, named=frozenset())
    (found,) = leftovers(chain, hidden_files(MemoryStore(files)))
    assert (found.path, found.size, found.reason) == (path, 5, "slot 1 is complete without it")


def test_symbolic_links_are_not_followed(tmp_path):
    """A link to a directory with files of ours leads nowhere."""
    base, other = tmp_path / "base", tmp_path / "other"
    base.mkdir()
    other.mkdir()
    name = str(HiddenName(target="p", tag=sink_tag("uid-u"), slot=0, attempt=ATTEMPT))
    (other / name).write_bytes(b"x")
    (base / "link").symlink_to(other)
    (base / name).symlink_to(other / name)
    assert list(hidden_files(open_store(base, {}))) == []


def test_a_base_path_inside_is_known_before_its_first_record(tmp_path):
    """What a sink writes in its very first epoch is safe from a sink of the same uid further up."""
    inner, outer = open_store(tmp_path / "a" / "inner", {}), open_store(tmp_path, {})
    name = str(HiddenName(target="p", tag=sink_tag("uid-u"), slot=0, attempt=ATTEMPT))
    (tmp_path / "a" / "inner").mkdir(parents=True)
    (tmp_path / "a" / "inner" / name).write_bytes(b"x")
    assert [file.path for file in hidden_files(outer)] == [f"a/inner/{name}"]
    inner.prepare()
    assert list(hidden_files(outer)) == []
    assert [file.path for file in hidden_files(inner)] == [name]


class FoldingFiles(dict):
    """Files of a disk where case makes no difference: a directory has the name that it got first."""

    def path(self, path):
        """The one under which a file is listed."""
        directory, slash, name = path.rpartition("/")
        first = (parent(known) for known in self)
        return next((f for f in first if f.casefold() == directory.casefold()), directory) + slash + name

    def get(self, path, default=None):
        return super().get(self.path(path), default)

    def pop(self, path, *default):
        return super().pop(self.path(path), *default)

    def __contains__(self, path):
        return super().__contains__(self.path(path))

    def __getitem__(self, path):
        return super().__getitem__(self.path(path))

    def __setitem__(self, path, file):
        super().__setitem__(self.path(path), file)

    def __delitem__(self, path):
        super().__delitem__(self.path(path))


class FoldingStore(MemoryStore):
    """A store on that disk."""

    def list(self, directory):
        return super().list(parent(self._files.path(f"{directory}/x")) if directory else "")


def folding_world(**options):
    """Drivers on a disk where case makes no difference."""
    world = World(**options)
    world.files.files = FoldingFiles()
    world.open_store = lambda: FoldingStore(world.files)
    return world


def test_what_is_held_is_kept_whatever_its_directory_is_called():
    """Of two buckets that are one directory, both keep their open parts over the sweep of a first epoch."""
    world = folding_world(plan=plan_of(policy=keep_open()))
    driver = world.driver()
    driver.run(micro_batch(0), world.job(records("1", bucket="k=CH"), records("2", bucket="k=ch")))
    driver.finish()
    assert world.rows() == ["1", "2"]


def test_an_overwrite_spares_what_another_sink_has_decided_whatever_its_directory_is_called():
    """Half of its epoch is visible already, under the name that the directory had before."""
    world = folding_world()
    world.driver().run(micro_batch(0), world.job(records("1", bucket="k=CH")))
    world.driver("uid-b").run(micro_batch(0, query_id="b"), world.job(records("2", bucket="k=ch")))
    world.store().delete("_filesink/uid-b/000000000000.complete")
    world.driver(EXCLUSIVE).run(BatchWrite(mode=SaveMode.OVERWRITE), world.job(records("3", bucket="x")))
    assert world.rows() == ["2", "3"]


def test_buckets_that_differ_by_case_only_are_one_partition():
    """As the documentation says: nothing is lost by appends, and an overwrite of one replaces both."""
    world = folding_world()
    world.driver().run(micro_batch(0), world.job(records("1", bucket="k=CH"), records("2", bucket="k=ch")))
    assert world.rows() == ["1", "2"]
    cause = BatchWrite(mode=SaveMode.OVERWRITE_PARTITIONS)
    world.driver(EXCLUSIVE).run(cause, world.job(records("3", bucket="k=ch")))
    assert world.rows() == ["3"]


#: Two uids whose sinks have the same tag, found by trying.
TWINS = ("sink-14149", "sink-30303")


def world_of(uid):
    """A world in which parts stay open, and one does; no two of them make the same ids."""
    world = World(uid=uid, plan=plan_of(policy=keep_open()))
    world.ids.made = 1000 * TWINS.index(uid)
    world.driver().run(micro_batch(0, query_id=uid), world.job(records(uid)))
    return world


def test_the_uids_that_these_tests_are_about_have_one_tag():
    """Else they would show nothing."""
    assert sink_tag(f"uid-{TWINS[0]}") == sink_tag(f"uid-{TWINS[1]}")


def test_a_sink_whose_tag_is_taken_does_not_start():
    """Each of two such sinks would sweep what the other holds; the error names both, and the way out."""
    world = world_of(TWINS[0])
    before = sorted(world.files.files)
    second = replace(world, uid=TWINS[1])
    second.files = world.files
    with pytest.raises(IdentityError, match="uid") as refused:
        second.driver().run(micro_batch(0, query_id="q"), second.job(records("2")))
    assert refused.value.code == "TAG_TAKEN"
    assert all(uid in refused.value.message for uid in TWINS)
    assert sorted(world.files.files) == before


def test_two_sinks_of_one_tag_sweep_nothing_of_each_other(caplog):
    """Where both are there already, held files stay: no name tells whose they are. The log says so."""
    worlds = [world_of(uid) for uid in TWINS]
    first, second = worlds
    first.files.files.update(second.files.files)
    for world in worlds:
        world.files = first.files
        for batch in (1, 2):
            world.clock.now += 1
            world.driver().run(
                micro_batch(batch, query_id=world.uid), world.job(records(f"{world.uid} {batch}"))
            )
        world.maintenance().recover(Lost.RAISE, None)
        world.clock.now = 10 * 7 * 24 * 3600 * 1000
        world.maintenance().sweep(1)
    for world in worlds:
        world.driver().finish()
    assert first.rows() == sorted([*TWINS, *(f"{uid} {batch}" for uid in TWINS for batch in (1, 2))])
    assert all(uid in caplog.text for uid in TWINS)
