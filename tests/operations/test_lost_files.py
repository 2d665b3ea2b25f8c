"""Whether decided bytes are lost, while another driver publishes them."""

from __future__ import annotations

import pytest

from filesink.storage.memory import MemoryStore
from tests.fakes import World


@pytest.mark.parametrize("number", [1, 2])
def test_what_is_published_between_two_looks_is_not_lost(number):
    """The driver that does it makes the target before it removes the hidden name; one of them is seen."""
    world = World()
    store, other = world.store(), MemoryStore(world.files)
    output = store.create(".part", target=None)
    output.write(b"1\n")
    staged = output.close()
    looks = []

    def publish(operation, _path):
        looks.append(operation)
        if len(looks) == number:
            other.publish(staged, "part")
            other.release(staged)

    world.fault = publish
    assert not store.is_lost(staged, "part")


def test_what_is_nowhere_is_lost():
    """Neither name leads to it."""
    world = World()
    output = world.store().create(".part", target=None)
    output.write(b"1\n")
    staged = output.close()
    world.store().discard(".part")
    assert world.store().is_lost(staged, "part")
