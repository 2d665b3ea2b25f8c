"""What every sink must do, checked without asking the sink.

Subclass ``ExactlyOnceSinkContract``, or ``SinkContract`` for a sink that promises no more than at least once,
give it the fixture ``site`` and run it: that enrols a sink. The oracle is the site: it looks at the
destination as its readers do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

from filesink.framing import Codec
from tests.contracts.sink_site import Death, Drivers, Killed, Moment, SinkSite, Tier, breaking

DEATHS = [Death(tier, moment) for tier in Tier for moment in Moment]
RECOVERIES = ["recover", "the next batch", "the same batch"]


class SinkContract:
    """The conformance suite of all sinks. Each test gets a fresh ``site``."""

    @pytest.fixture
    def drivers(self, site: SinkSite) -> Iterator[Drivers]:
        found = Drivers(site)
        yield found
        found.close()

    def check(self, site: SinkSite, ids: Sequence[int]) -> None:
        """Each of ``ids`` has arrived, and nothing else."""
        assert set(site.arrived()) == set(ids)

    # --- what is written arrives ------------------------------------------------------------------

    def test_what_is_written_arrives(self, site: SinkSite, drivers: Drivers) -> None:
        """Of all tasks and all their batches; empty ones are no harm."""
        outcome = drivers.stream(0, parts(site, [1, 2], [], [3]), parts(site, [4]), parts(site))
        drivers.finish()
        assert outcome.rows == 4
        self.check(site, [1, 2, 3, 4])

    def test_an_epoch_without_tasks(self, site: SinkSite, drivers: Drivers) -> None:
        """Spark optimises an empty input away; the epoch is decided all the same."""
        drivers.stream(0, parts(site, [1]))
        assert drivers.stream(1).rows == 0
        drivers.stream(2, parts(site, [2]))
        drivers.finish()
        self.check(site, [1, 2])

    def test_a_stream_goes_on_with_every_restart(self, site: SinkSite, drivers: Drivers) -> None:
        """With more tasks and fewer, each with the state of its last epoch, if there is any."""
        for batch, tasks in enumerate([2, 1, 3, 1]):
            drivers.stream(batch, *(parts(site, [10 * batch + task]) for task in range(tasks)))
        drivers.finish()
        self.check(site, [0, 1, 10, 20, 21, 22, 30])

    def test_batch_writes_do_not_get_into_each_others_way(self, site: SinkSite, drivers: Drivers) -> None:
        """None knows its slot while it writes, and they have the same uid."""
        drivers.batch(parts(site, [1]), parts(site, [2]))
        drivers.batch(parts(site, [3]), parts(site, [4]))
        self.check(site, [1, 2, 3, 4])

    def test_preparing_again_changes_nothing(self, site: SinkSite, drivers: Drivers) -> None:
        """Every start does it."""
        drivers.stream(0, parts(site, [1]))
        site.sink().prepare(site.batch([1]).schema)
        drivers.finish()
        self.check(site, [1])

    # --- what comes again -------------------------------------------------------------------------

    def test_a_decided_epoch_that_comes_again_writes_nothing(self, site: SinkSite, drivers: Drivers) -> None:
        """Not even where doubles are allowed."""
        drivers.stream(0, parts(site, [1]), parts(site, [2]))
        before = sorted(site.arrived())
        assert drivers.stream(0, parts(site, [1]), parts(site, [2])).replayed
        assert sorted(site.arrived()) == before
        drivers.finish()
        self.check(site, [1, 2])

    def test_an_epoch_whose_task_fails_can_be_repeated(self, site: SinkSite, drivers: Drivers) -> None:
        """Its writers are told to undo and to close, and what others had written is discarded."""
        with pytest.raises(RuntimeError, match="the source broke"):
            drivers.stream(0, parts(site, [1]), breaking(parts(site, [2])))
        drivers.stream(0, parts(site, [1]), parts(site, [2]))
        drivers.finish()
        self.check(site, [1, 2])

    def test_a_driver_that_dies_undecided(self, site: SinkSite, drivers: Drivers) -> None:
        """All tasks have reported, and nobody will ever discard what they have written."""
        with pytest.raises(Killed):
            drivers.stream(0, parts(site, [1]), dies=True)
        drivers.stream(0, parts(site, [1]))
        drivers.finish()
        self.check(site, [1])

    def test_attempts_that_are_killed_are_not_heard(self, site: SinkSite, drivers: Drivers) -> None:
        """Each task has done all its work, and died; neither abort nor close was called."""
        for batch in range(2):
            drivers.stream(batch, parts(site, [2 * batch]), parts(site, [2 * batch + 1]), lost=True)
        drivers.finish()
        self.check(site, [0, 1, 2, 3])

    # --- what is decided is committed, whoever does it --------------------------------------------

    @pytest.mark.parametrize("recovery", RECOVERIES)
    @pytest.mark.parametrize("death", DEATHS, ids=lambda death: f"{death.moment.value} {death.tier.value}")
    def test_a_driver_that_dies_while_it_commits(
        self, site: SinkSite, drivers: Drivers, death: Death, recovery: str
    ) -> None:
        """Another one goes on from the record: with what is done already, too."""
        drivers.stream(0, parts(site, [1]))
        with suppress(Killed):  # it dies only if there is such a tier, and something to do for it
            drivers.stream(1, parts(site, [2]), parts(site, [3]), death=death)
        match recovery:
            case "recover":
                drivers.recover()
            case "the same batch":
                assert drivers.stream(1, parts(site, [2]), parts(site, [3])).replayed
        drivers.stream(2, parts(site, [4]))
        drivers.finish()
        self.check(site, [1, 2, 3, 4])
        announced = site.announced()
        assert announced is None or sorted(announced) == [0, 1, 2]

    @pytest.mark.parametrize("moment", Moment)
    def test_a_driver_that_dies_at_the_end_of_a_stream(
        self, site: SinkSite, drivers: Drivers, moment: Moment
    ) -> None:
        """What writers have kept for a later epoch is committed by whoever comes next."""
        drivers.stream(0, parts(site, [1]), parts(site, [2]))
        with suppress(Killed):  # it dies only if something was kept
            drivers.finish(death=Death(Tier.COMMITTER, moment))
        drivers.finish()
        self.check(site, [1, 2])

    def test_a_batch_write_whose_driver_dies_is_completed(self, site: SinkSite, drivers: Drivers) -> None:
        """By the next write of its chain."""
        with suppress(Killed):  # it dies only if its committer has something to do
            drivers.batch(parts(site, [1]), death=Death(Tier.COMMITTER, Moment.BEFORE))
        drivers.batch(parts(site, [2]))
        self.check(site, [1, 2])

    def test_committers_of_two_processes_may_commit_the_same(self, site: SinkSite, drivers: Drivers) -> None:
        """And each may be asked again: it looks for itself what has been done."""
        outcome = drivers.stream(0, parts(site, [1]), parts(site, [2]))
        again = through_bytes(site.sink().committable_codec, outcome.committables)
        for _ in range(2):
            committer = site.sink().create_committer()
            committer.restore()
            for _ in range(2):
                assert committer.commit(again) == []
        drivers.finish()
        self.check(site, [1, 2])

    def test_an_abort_undoes_its_own_epoch_alone(self, site: SinkSite, drivers: Drivers) -> None:
        """Twice, or of nothing at all, it is no harm either."""
        drivers.stream(0, parts(site, [1]))
        with pytest.raises(RuntimeError):
            drivers.stream(1, parts(site, [2]), breaking(parts(site, [3])))
        committer = site.sink().create_committer()
        committer.abort([])
        drivers.stream(1, parts(site, [2]), parts(site, [3]))
        drivers.finish()
        self.check(site, [1, 2, 3])


class ExactlyOnceSinkContract(SinkContract):
    """What a sink must do, besides, that promises each record exactly once."""

    def check(self, site: SinkSite, ids: Sequence[int]) -> None:
        """Each of ``ids`` has arrived once, and nothing else."""
        assert sorted(site.arrived()) == sorted(ids)

    def test_nothing_can_be_seen_before_it_is_decided(self, site: SinkSite, drivers: Drivers) -> None:
        """Though every task has done all its work, in one attempt or in two."""
        with pytest.raises(Killed):
            drivers.stream(0, parts(site, [1]), parts(site, [2]), dies=True, lost=True)
        assert site.arrived() == []

    def test_an_epoch_that_is_never_decided_is_never_seen(self, site: SinkSite, drivers: Drivers) -> None:
        """Another one takes its slot, and its tasks have other rows."""
        drivers.stream(0, parts(site, [1]))
        with pytest.raises(Killed):
            drivers.stream(1, parts(site, [2]), parts(site, [3]), dies=True)
        with pytest.raises(RuntimeError):
            drivers.stream(1, parts(site, [4]), breaking(parts(site, [5])))
        drivers.stream(1, parts(site, [6]))
        drivers.finish()
        self.check(site, [1, 6])


def parts(site: SinkSite, *batches: Sequence[int]) -> list[pa.RecordBatch]:
    """One partition, with these batches."""
    return [site.batch(ids) for ids in batches]


def through_bytes(codec: Codec[Any], values: Sequence[Any]) -> list[Any]:
    """``values`` as another process gets them, which would give the same bytes."""
    data = codec.encode(values)
    found = codec.decode(codec.version, data)
    assert codec.encode(found) == data
    return found
