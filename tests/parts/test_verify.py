"""The last look at the files of an epoch before it is decided."""

from __future__ import annotations

import pytest

from filesink.api import EpochContext, Input, Prepared
from filesink.errors import InternalError, SecurityError, StagedDataLost
from filesink.naming import HiddenName
from filesink.parts.committables import DiscardFile, HeldFile, PendingFile
from filesink.parts.stages.verify import VerifyStage
from filesink.ports import SerialRunner
from tests.fakes import World, held


@pytest.fixture
def world():
    """An empty base."""
    return World()


def hide(world, *, slot):
    """A hidden file of ours."""
    name = HiddenName(target="p", tag="0123abcd", slot=slot, attempt=world.ids.uuid())
    output = world.store().create(str(name), target=None)
    output.write(b"x")
    return output.close()


def pending(world):
    """A pending file of slot 3."""
    return PendingFile(bucket="", target="part-0", staged=hide(world, slot=3), rows=1, size=1)


def verify(world, committables=(), states=()):
    """Run the last stage for slot 3."""
    epoch = EpochContext(
        sink_id="uid-u", slot=3, now_ms=0, input=Input.GOES_ON, ids=world.ids, runner=SerialRunner()
    )
    prepared = Prepared(committables, {0: states})
    assert VerifyStage(world.store()).prepare(epoch, prepared) is prepared


def state(world, *, slot):
    """A held file of a slot."""
    file = hide(world, slot=slot)
    values = {name: getattr(held(file.path), name) for name in HeldFile.__slots__}
    return HeldFile(**{**values, "staged": file})


def test_files_that_are_there_pass(world):
    """Pending files and new segments as they were closed are decided on."""
    verify(world, [pending(world), DiscardFile(path="x")], [state(world, slot=3)])


def test_a_segment_of_this_epoch_that_is_gone_is_found(world):
    """A new segment is looked at as well; those of earlier epochs cost nothing."""
    new, old = state(world, slot=3), state(world, slot=2)
    world.files.files.clear()
    verify(world, states=[old])
    with pytest.raises(StagedDataLost) as raised:
        verify(world, states=[new])
    assert raised.value.code == "NOT_SHARED"


def test_a_closed_part_must_be_put_together_first(world):
    """A held file among the committables is a bug of the stages before."""
    with pytest.raises(InternalError):
        verify(world, [held("x")])


def test_foreign_names_are_refused(world):
    """A task can make the driver keep nothing but files of ours."""
    with pytest.raises(SecurityError) as raised:
        verify(world, states=[held("data/part-0.parquet")])
    assert raised.value.code == "FOREIGN_FILE"
