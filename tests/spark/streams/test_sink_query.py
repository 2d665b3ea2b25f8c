"""The end of a query whose end fails. Needs no Spark that runs."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import StreamingQueryException

from filesink.errors import CommitFailedError
from filesink.spark.query import End, SinkQuery


class EndedQuery:
    """What Java says of a query with ``availableNow`` that has ended well."""

    no_new_data = True

    def awaitTermination(self) -> None:  # noqa: N802 - Spark's name
        """See Spark."""

    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        """See Spark."""
        return False

    def streamingQuery(self) -> SimpleNamespace:  # noqa: N802 - Spark's name
        """See Spark; the execution."""
        trigger = SimpleNamespace(getSimpleName=lambda: "AvailableNowTrigger$")
        return SimpleNamespace(
            trigger=lambda: SimpleNamespace(getClass=lambda: trigger), noNewData=lambda: self.no_new_data
        )

    def exception(self) -> SimpleNamespace:
        """See Spark; a Scala ``None``."""
        return SimpleNamespace(isDefined=lambda: False)


def nothing() -> None:
    """A step that goes well."""


def ended(*, finish=nothing, release=nothing, java=None) -> SinkQuery:
    """A query that has ended by itself, unless ``java`` says otherwise."""
    query = SimpleNamespace(_jsq=java or EndedQuery(), runId="r")
    return SinkQuery(query, finish=finish, release=release, reports=list)


def failing(error: Exception):
    """A step that raises."""

    def step():
        raise error

    return step


@pytest.mark.parametrize("error", [CommitFailedError("x", code="RETRIES"), ValueError("a policy of mine")])
def test_a_finish_epoch_that_fails_is_told(error):
    """awaitTermination() raises whatever a committer or policy has raised, and exception() shows it."""
    released = []
    query = ended(finish=failing(error), release=lambda: released.append(True))
    with pytest.raises(type(error), match=str(error.args[0])):
        query.awaitTermination()
    shown = query.exception()
    assert isinstance(shown, StreamingQueryException)
    assert str(shown) == str(error)
    assert shown.__cause__ is error
    assert released == [True]
    assert not query.isActive


def test_what_fails_first_is_told():
    """A sink that cannot be closed either does not hide why the finish epoch failed."""
    query = ended(finish=failing(ValueError("first")), release=failing(ValueError("second")))
    with pytest.raises(ValueError, match="first"):
        query.awaitTermination()


def test_an_end_that_goes_well_has_no_exception():
    """exception() is what it is for a query of Spark's own."""
    query = ended()
    assert query.awaitTermination(60)
    assert query.exception() is None


class FailedQuery(EndedQuery):
    """One that has raised."""

    def awaitTermination(self) -> None:  # noqa: N802 - Spark's name
        """See Spark."""
        raise Py4JError("it has failed")


@pytest.mark.parametrize(
    ("java", "finish", "how"),
    [
        (EndedQuery(), nothing, End.ENDED),
        (FailedQuery(), nothing, End.FAILED),
        (EndedQuery(), failing(ValueError("its end")), End.FAILED),
    ],
    ids=["ended", "failed", "its end failed"],
)
def test_who_watches_is_told_how_it_has_ended(java, finish, how):
    """Once, when everything else is done; and ``isActive`` is true until then."""
    told, order = [], []

    def tell(end):
        told.append(end)
        order.append("told")

    query = SinkQuery(
        SimpleNamespace(_jsq=java, runId="r"),
        finish=finish,
        release=lambda: order.append("released"),
        reports=list,
        ended=tell,
    )
    query._finisher.join()
    assert told == [how]
    assert order == ["released", "told"]


def test_a_query_that_was_stopped_has_ended():
    """Whatever Java raises because of that: its user wanted it."""
    told = []
    java = StoppedByUser()
    query = SinkQuery(
        SimpleNamespace(_jsq=java, runId="r"), finish=None, release=nothing, reports=list, ended=told.append
    )
    query.stop()
    assert told == [End.ENDED]


class StoppedQuery(EndedQuery):
    """One that somebody has stopped."""

    no_new_data = False


class LostQuery(EndedQuery):
    """One whose JVM is gone."""

    def streamingQuery(self) -> SimpleNamespace:  # noqa: N802 - Spark's name
        """See Spark."""
        raise Py4JNetworkError("Answer from Java side is empty")


@pytest.mark.parametrize("java", [StoppedQuery(), LostQuery()], ids=["stopped", "lost"])
def test_a_query_that_did_not_end_by_itself_is_not_finished(java):
    """Input may be left, so open parts wait for the next start; the sink lets go of the query."""
    called = []
    query = ended(finish=lambda: called.append("finish"), release=lambda: called.append("release"), java=java)
    assert query.awaitTermination(60)
    assert called == ["release"]


def test_a_trigger_that_never_ends_has_nothing_to_finish():
    """Somebody has stopped its query when no new data was there: that is no end of the input."""
    query = ended(finish=None)
    assert query.awaitTermination(60)
    assert query.exception() is None


class StoppedByUser(EndedQuery):
    """One whose batch fails because it is stopped."""

    def __init__(self) -> None:
        self._end = threading.Event()

    def awaitTermination(self) -> None:  # noqa: N802 - Spark's name
        """See Spark."""
        self._end.wait(30)
        raise Py4JError("its job was cancelled")

    def stop(self) -> None:
        """See Spark."""
        self._end.set()


class RunningQuery(EndedQuery):
    """One that runs until it is stopped, and has taken all there was by then."""

    def __init__(self) -> None:
        self._end = threading.Event()

    def awaitTermination(self) -> None:  # noqa: N802 - Spark's name
        """See Spark."""
        self._end.wait(30)

    def stop(self) -> None:
        """See Spark."""
        self._end.set()


def test_a_query_that_was_stopped_with_all_its_input_is_not_finished():
    """Its user has said stop: more may come, and open parts wait for the next start."""
    called = []
    query = ended(
        finish=lambda: called.append("finish"), release=lambda: called.append("release"), java=RunningQuery()
    )
    query.stop()
    assert called == ["release"]
