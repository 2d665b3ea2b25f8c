"""What every store must do, checked without asking the store.

Subclass ``StoreContract``, give it the fixture ``site`` and run it: that enrols a store. The oracle
is the site: it looks at the files by other means than the code under test, as a reader does.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from filesink.errors import (
    CommitConflictError,
    FilesinkError,
    StagedDataLost,
)
from filesink.naming import name_of
from filesink.storage.api import Store
from filesink.storage.probes import store_ms
from filesink.storage.staged import Tail
from tests.contracts.named_files_contract import NamedFilesContract
from tests.contracts.store_site import Site, finish, hidden, hold, stage

SUFFIX = ".parquet"
BUCKETS = ("a", "k=a b", "a:b", "a%2Fb", "é", "e\u0301", "#x", "*", "[a]", "😀", "k=a+b", "a\ufffe", "a.b")


class StoreContract(NamedFilesContract):
    """The conformance suite. Each test gets a fresh ``site`` whose base directory is prepared."""

    # How many files; fewer where a server takes long for each, and as many as here by night.
    outputs = 2000  #: that wait for their first byte at once
    published = 40  #: by several drivers at once
    pieces = 60  #: of a file that is put together; more than ten, so that their names have another order

    # --- writing -------------------------------------------------------------------------------

    def test_nothing_is_visible_before_publish(self, site: Site, store: Store) -> None:
        """A reader sees no data file while one is written, closed or synced."""
        target = f"dt=1/part-a-0{SUFFIX}"
        output = store.create(hidden(target), target=target)
        for step in (lambda: output.write(b"abc"), output.close, store.sync):
            step()
            assert site.visible() == {}
            assert not any(path.endswith(SUFFIX) for path in site.files())

    def test_publish_shows_the_whole_file_and_nothing_else(self, site: Site, store: Store) -> None:
        """After publishing there is exactly one file, with all bytes, and no hidden one."""
        target = f"dt=1/h=2/part-a-0{SUFFIX}"
        finish(store, stage(store, target, b"abc", b"", b"def"), target)
        assert site.files() == {target: b"abcdef"}

    def test_a_path_is_refused_or_can_be_written(self, site: Site, store: Store) -> None:
        """``refusal`` tells beforehand, in words that hold nothing of the path."""
        for bucket in BUCKETS:
            target = f"{bucket}/part-a-0{SUFFIX}"
            found = store.refusal(target)
            if found is None:
                finish(store, stage(store, target, b"abc"), target)
                assert site.files() == {target: b"abc"}
                site.remove(target)
            else:
                assert found.code == "ILLEGAL_CHAR"
                assert bucket in {"a:b", "a\ufffe"}
                assert bucket not in found.why

    def test_an_output_counts_its_bytes(self, store: Store) -> None:
        """``write`` returns and ``tell`` sums up lengths in bytes, for any buffer."""
        output = store.create(hidden("part-a-0"), target="part-a-0")
        assert output.tell() == 0
        assert output.write(b"abc") == 3
        assert output.write(memoryview(bytearray(8)).cast("q")) == 8
        output.flush()
        assert output.tell() == 11
        assert not output.closed
        assert output.close().size == 11
        assert output.closed

    def test_an_output_without_bytes_is_an_empty_file(self, site: Site, store: Store) -> None:
        """Closing without a write gives a file of no bytes, which can be published."""
        store.publish(stage(store, "part-a-0"), "part-a-0")
        assert site.visible() == {"part-a-0": b""}

    def test_a_closed_output_takes_no_bytes(self, store: Store) -> None:
        """What was reported as closed cannot change any more."""
        output = store.create(hidden("part-a-0"), target="part-a-0")
        output.write(b"abc")
        output.close()
        with pytest.raises(FilesinkError):
            output.write(b"def")

    def test_outputs_open_lazily(self, site: Site, store: Store) -> None:
        """Thousands of outputs may wait for their first byte; none is a file before it."""
        outputs = [store.create(hidden(f"b={n}/part-a-0"), target=None) for n in range(self.outputs)]
        assert site.files() == {}
        staged = []
        for output in outputs:
            output.write(b"x")
            staged.append(output.close())
        store.sync()
        assert len(site.files()) == self.outputs
        assert site.visible() == {}
        for one in staged:
            store.verify(one)

    def test_create_never_takes_over_a_file(self, site: Site, store: Store) -> None:
        """An existing name is refused, by the close at the latest, and its file survives the discard."""
        path = hidden("part-a-0")
        site.plant(path, b"another attempt's")
        output = store.create(path, target=None)
        with pytest.raises(CommitConflictError):  # noqa: PT012 - file systems refuse the first write
            output.write(b"ours")
            output.close()
        output.discard()
        assert site.files() == {path: b"another attempt's"}

    # --- discarding ----------------------------------------------------------------------------

    def test_discard_may_be_repeated(self, site: Site, store: Store) -> None:
        """An output can be discarded before its first byte, while open, closed, and again."""
        outputs = [store.create(hidden("a/part-a-0"), target=None) for _ in range(4)]
        for output in outputs[1:]:
            output.write(b"abc")
        outputs[2].close()
        outputs[3].close()
        store.sync()
        for output in outputs + outputs:
            output.discard()
        store.sync()
        assert site.files() == {}

    def test_discard_by_name_may_be_repeated(self, site: Site, store: Store) -> None:
        """The driver discards by path, whether or not the file is there."""
        staged = stage(store, "a/part-a-0", b"abc")
        for _ in range(2):
            store.discard(staged.path)
            store.discard(hidden("never/part-a-0"))
        assert site.files() == {}

    # --- verifying and publishing --------------------------------------------------------------

    def test_verify_accepts_what_was_closed(self, site: Site, store: Store) -> None:
        """Another process finds the file as it was reported."""
        site.store().verify(stage(store, "a/part-a-0", b"abc"))

    @pytest.mark.parametrize("damage", [b"", b"ab", b"abcd"])
    def test_verify_finds_other_lengths(self, site: Site, store: Store, damage: bytes) -> None:
        """A shorter or longer file under the hidden name is not the one that was closed."""
        staged = stage(store, "a/part-a-0", b"abc")
        site.plant(staged.path, damage)
        with pytest.raises(StagedDataLost):
            store.verify(staged)
        with pytest.raises(StagedDataLost):
            store.publish(staged, "a/part-a-0")
        assert site.visible() == {}

    def test_lost_bytes_are_an_error(self, site: Site, store: Store) -> None:
        """If neither the hidden nor the final file exists, nothing claims success."""
        staged = stage(store, "a/part-a-0", b"abc")
        site.remove(staged.path)
        with pytest.raises(StagedDataLost, match=re.escape(staged.path)):
            store.verify(staged)
        with pytest.raises(StagedDataLost, match=re.escape(staged.path)):
            store.publish(staged, "a/part-a-0")
        assert site.files() == {}

    def test_publish_may_be_repeated(self, site: Site, store: Store) -> None:
        """A second publication, by this process or another, changes nothing."""
        staged = stage(store, "a/part-a-0", b"abc")
        for each in (store, store, site.store()):
            each.publish(staged, "a/part-a-0")
            assert site.visible() == {"a/part-a-0": b"abc"}
        for each in (store, site.store(), site.store()):
            finish(each, staged, "a/part-a-0")
        assert site.files() == {"a/part-a-0": b"abc"}

    def test_publish_goes_on_where_another_driver_stopped(self, site: Site, store: Store) -> None:
        """Killed between its two steps, publication is completed by the next driver."""
        staged = stage(store, "a/part-a-0", b"abc")
        site.half_publish(staged, "a/part-a-0")
        finish(site.store(), staged, "a/part-a-0")
        assert site.files() == {"a/part-a-0": b"abc"}

    @pytest.mark.parametrize("foreign", [b"", b"xyz", b"longer than ours"])
    def test_publish_never_replaces(self, site: Site, store: Store, foreign: bytes) -> None:
        """Another file under the final name is a conflict, of whatever length, and both survive."""
        staged = stage(store, "a/part-a-0", b"abc")
        site.plant("a/part-a-0", foreign)
        for _ in range(2):
            with pytest.raises(CommitConflictError):
                store.publish(staged, "a/part-a-0")
        assert site.files() == {"a/part-a-0": foreign, staged.path: b"abc"}

    def test_a_published_file_that_vanished_is_lost(self, site: Site, store: Store) -> None:
        """Replaying a publication whose file was deleted since does not claim success."""
        staged = stage(store, "a/part-a-0", b"abc")
        finish(store, staged, "a/part-a-0")
        site.remove("a/part-a-0")
        with pytest.raises(StagedDataLost):
            store.publish(staged, "a/part-a-0")

    def test_published_is_told_from_conflict_and_absence(self, site: Site, store: Store) -> None:
        """Only our own file under the final name counts, not a hidden one, nor another's."""
        staged = stage(store, "a/part-a-0", b"abc")
        assert not store.is_published(staged, "a/part-a-0")
        site.plant("a/part-a-0", b"xyz")
        assert not store.is_published(staged, "a/part-a-0")
        site.remove("a/part-a-0")
        store.publish(staged, "a/part-a-0")
        assert site.store().is_published(staged, "a/part-a-0")

    def test_two_drivers_publish_the_same_files(self, site: Site, store: Store) -> None:
        """A driver left over from a crash and its successor both succeed, whoever is first."""
        staged = {f"a/part-{n}-0": stage(store, f"a/part-{n}-0", b"abc") for n in range(self.published)}
        start = Barrier(4)

        def drive(_: int) -> None:
            own = site.store()
            start.wait()
            for target, one in staged.items():
                finish(own, one, target)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(drive, range(4)))
        assert site.files() == dict.fromkeys(staged, b"abc")

    def test_a_held_file_is_promoted_as_it_is(self, site: Site, store: Store) -> None:
        """What was held for a later epoch can be published without being written again."""
        held = hold(store, "a/part-a-0", b"abc")
        promoted = site.store().promote(held, "a/part-b-7")
        store.sync()
        store.publish(promoted, "a/part-b-7")
        assert site.visible() == {"a/part-b-7": b"abc"}

    # --- concatenating -------------------------------------------------------------------------

    def test_concat_joins_many_pieces_in_order(self, site: Site, store: Store) -> None:
        """The new file holds the bytes of all sources in order, and the sources stay."""
        pieces = [bytes([n]) * (n * 1000) for n in range(self.pieces)]
        sources = [hold(store, f"a/part-{n}-0", piece) for n, piece in enumerate(pieces)]
        merged = store.concat(sources, hidden("a/part-m-0"), target="a/part-m-0")
        store.sync()
        assert site.visible() == {}
        assert merged.size == sum(map(len, pieces))
        for source in sources:
            store.verify(source)
        store.publish(merged, "a/part-m-0")
        assert site.visible() == {"a/part-m-0": b"".join(pieces)}

    def test_concat_joins_parts_of_files_and_bytes(self, site: Site, store: Store) -> None:
        """A file may be taken without its beginning, and bytes may stand between two."""
        first, second = hold(store, "a/part-a-0", b"h:abc"), hold(store, "a/part-b-0", b"h:def")
        pieces = [first, b"|", Tail(staged=second, start=2), b"|", Tail(staged=first, start=5)]
        merged = store.concat(pieces, hidden("a/part-m-0"), target="a/part-m-0")
        store.sync()
        store.publish(merged, "a/part-m-0")
        assert site.visible() == {"a/part-m-0": b"h:abc|def|"}

    def test_concat_to_a_file_that_is_held(self, site: Site, store: Store) -> None:
        """Without a target the result is one more held file, which can be read and concatenated again."""
        sources = [hold(store, f"a/part-{n}-0", b"abc") for n in range(2)]
        merged = store.concat(sources, hidden("a/part-m-0"), target=None)
        store.sync()
        store.verify(merged)
        assert site.visible() == {}
        assert site.files()[merged.path] == b"abcabc"

    def test_a_new_file_shows_the_time(self, site: Site, store: Store) -> None:
        """By which all other files are dated; none is left of it, and no sink's files are taken for it."""
        store.prepare()
        first = store_ms(store, "00000000-0000-4000-8000-000000000001")
        held = hold(store, "a/part-a-0", b"abc")
        dated = [entry.mtime_ms for entry in store.list("a") if entry.name == name_of(held.path)]
        assert first <= dated[0] <= store_ms(store, "00000000-0000-4000-8000-000000000002")
        assert set(site.files()) == {held.path}

    @pytest.mark.parametrize("damage", [b"ab", b"xyz"])
    def test_concat_refuses_changed_sources(self, site: Site, store: Store, damage: bytes) -> None:
        """If a source is not what it was, nothing is made."""
        sources = [hold(store, f"a/part-{n}-0", b"abc") for n in range(3)]
        site.plant(sources[1].path, damage)
        with pytest.raises(StagedDataLost):
            store.concat(sources, hidden("a/part-m-0"), target="a/part-m-0")
        assert len(site.files()) == 3
