"""The store that fails on demand fails exactly where it is told to, and is a store otherwise."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from filesink.errors import StorageError
from filesink.storage.api import Store
from filesink.storage.faulty import Fault, FaultyStore, Moment
from filesink.storage.memory import MemoryFiles, MemoryStore
from tests.contracts.store_contract import StoreContract
from tests.contracts.store_site import Site, hidden, stage
from tests.storage.test_memory import MemorySite


class FaultySite(MemorySite):
    """A place whose stores are wrapped."""

    def store(self) -> Store:
        return FaultyStore(super().store(), lambda _operation, _path: None)


class TestWithoutFaults(StoreContract):
    @pytest.fixture
    def site(self) -> Site:
        return FaultySite()


ERROR = StorageError("the disk is on fire; call somebody", code="IO")


@pytest.mark.parametrize("moment", Moment)
@pytest.mark.parametrize(
    ("operation", "run", "effect"),
    [
        ("put_if_absent", lambda store: store.put_if_absent("x", b"1"), {"x"}),
        ("write", lambda store: store.create(".x", target=None).write(b"1"), {".x"}),
        ("close", lambda store: store.create(".x", target=None).close(), {".x"}),
        ("publish", lambda store: store.publish(stage(store, "y", b"1"), "y"), {"y"}),
    ],
)
def test_the_effect_comes_before_a_late_error_only(
    moment: Moment, operation: str, run: Callable[[Store], object], effect: set[str]
) -> None:
    """``BEFORE`` does nothing; ``AFTER`` does it and loses the answer."""
    shared = MemoryFiles()
    asked = []

    def plan(name: str, path: str) -> Fault | None:
        asked.append((name, path))
        return Fault(moment=moment, error=ERROR) if name == operation else None

    with pytest.raises(StorageError) as raised:
        run(FaultyStore(MemoryStore(shared), plan))
    assert raised.value is ERROR
    assert asked[-1][0] == operation
    done = {path for path in shared.files if ".inprogress." not in path}
    assert done == (effect if moment is Moment.AFTER else set())


def test_every_operation_can_fail() -> None:
    """A plan is asked for each method of the store and of its outputs that does something."""
    asked: list[str] = []

    def note(name: str, _path: str) -> None:
        asked.append(name)

    store = FaultyStore(MemoryStore(MemoryFiles()), note)
    store.prepare()
    staged = stage(store, "a", b"1")
    merged = store.concat([staged], hidden("b"), target="b")
    store.verify(merged)
    store.publish(store.promote(merged, "b"), "b")
    store.is_published(merged, "b")
    store.sync_directories([""])
    store.create(hidden("c"), target=None).discard()
    store.discard(staged.path)
    store.put_if_absent("r", b"1")
    store.read("r")
    store.open_input("r").close()
    store.list("")
    store.delete("r")
    methods = Store.__abstractmethods__ - {"create", "refusal"}  # which do nothing by themselves
    assert methods | {"write", "close", "discard"} == set(asked)
