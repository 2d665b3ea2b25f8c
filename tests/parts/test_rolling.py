"""Rolling policies, against the cases of Flink's BucketsRollingPolicyTest and its kin."""

from __future__ import annotations

import pickle

import pytest

from filesink.errors import ConfigError, EncoderError
from filesink.parts.part_file import PartFileInfo
from filesink.parts.rolling import (
    Allowance,
    AnsweringPolicy,
    CheckpointRollingPolicy,
    DefaultRollingPolicy,
    RollingPolicy,
)

MAX = 134_217_728


def part(*, size=0, rows=0, created=0, updated=None):
    """What a policy sees of a part."""
    return PartFileInfo(
        bucket_id="b",
        size=size,
        rows=rows,
        creation_time=created,
        last_update_time=created if updated is None else updated,
    )


def written(policy, sizes):
    """Sizes of the parts that records of ``sizes`` make when the policy is asked before each record."""
    parts: list[list[int]] = []
    for size in sizes:
        if not parts or policy.should_roll_on_event(part(size=sum(parts[-1]), rows=len(parts[-1]))):
            parts.append([])
        parts[-1].append(size)
    return parts


def test_defaults():
    """Without arguments the policy has Flink's three values."""
    assert RollingPolicy.default_rolling_policy() == DefaultRollingPolicy(
        part_size=MAX, rollover_interval_ms=60_000, inactivity_interval_ms=60_000
    )


@pytest.mark.parametrize(("size", "rolls"), [(MAX, False), (MAX + 1, True)])
def test_size_is_exceeded_not_reached(size, rolls):
    """At the limit a part stays open, one byte above it rolls, on records and on epochs."""
    policy = RollingPolicy.default_rolling_policy()
    assert policy.should_roll_on_event(part(size=size)) is rolls
    assert policy.should_roll_on_checkpoint(part(size=size)) is rolls


@pytest.mark.parametrize(
    ("rollover", "inactivity", "created", "updated", "now", "rolls"),
    [
        (10, 60_000, 11, 12, 20, False),
        (10, 60_000, 11, 21, 21, True),
        (20, 10, 11, 12, 21, False),
        (20, 10, 11, 12, 22, True),
        (20, 10, 11, 21, 30, False),
        (20, 10, 11, 21, 31, True),
    ],
)
def test_times_are_reached(rollover, inactivity, created, updated, now, rolls):
    """Flink's cases 4 to 6: age and inactivity roll at their value, counted from creation and last record."""
    policy = RollingPolicy.default_rolling_policy(MAX, rollover, inactivity)
    assert policy.should_roll_on_processing_time(part(created=created, updated=updated), now) is rolls


def test_flink_case_7():
    """Size 10, inactivity 4, rollover 11: the third record and two of three timers roll."""
    policy = RollingPolicy.default_rolling_policy(10, 11, 4)
    assert not policy.should_roll_on_event(part(size=6, created=1, updated=1))
    assert policy.should_roll_on_event(part(size=12, created=1, updated=2))
    assert not policy.should_roll_on_processing_time(part(size=6, created=3), 5)
    assert policy.should_roll_on_processing_time(part(size=6, created=3), 7)
    assert policy.should_roll_on_processing_time(part(size=6, created=3), 20)


def test_overshoot_is_one_record():
    """Case 11: with a limit of 10 and records of 6 bytes, parts hold two records."""
    policy = RollingPolicy.default_rolling_policy(10)
    assert written(policy, [6] * 5) == [[6, 6], [6, 6], [6]]


def test_on_checkpoint_policy():
    """Case 9: closes at each epoch, never by itself when no limit is set."""
    policy = RollingPolicy.on_checkpoint_rolling_policy()
    assert policy.should_roll_on_checkpoint(part())
    assert not policy.should_roll_on_event(part(size=2**40, rows=2**40))
    assert not policy.should_roll_on_processing_time(part(), 2**50)
    assert policy.allowance(part()) == Allowance(bytes=None, rows=None)


def test_on_checkpoint_limits():
    """Rows roll when they are reached, bytes when they are exceeded, whichever is first."""
    policy = RollingPolicy.on_checkpoint_rolling_policy("10 B", 3)
    assert written(policy, [1, 1, 1, 1, 11, 1]) == [[1, 1, 1], [1, 11], [1]]


@pytest.mark.parametrize(
    "policy",
    [
        RollingPolicy.default_rolling_policy(10),
        RollingPolicy.on_checkpoint_rolling_policy(10),
        RollingPolicy.on_checkpoint_rolling_policy(None, 3),
        RollingPolicy.on_checkpoint_rolling_policy(10, 3),
    ],
    ids=repr,
)
@pytest.mark.parametrize("sizes", [[6] * 7, [10, 1, 1], [11, 1], [1] * 25, [3, 3, 4, 1, 9, 2]], ids=str)
def test_allowance_is_the_same_rule(policy, sizes):
    """Writing by allowance makes the same parts as asking before every record."""
    parts: list[list[int]] = []
    left = Allowance(bytes=0, rows=1)
    grown = count = 0
    for size in sizes:
        spent = (left.bytes is not None and grown > left.bytes) or (
            left.rows is not None and count >= left.rows
        )
        if parts and spent:
            info = part(size=sum(parts[-1]), rows=len(parts[-1]))
            if policy.should_roll_on_event(info):
                parts.append([])
        if not parts or not parts[-1] or spent:
            parts = parts or [[]]
            left, grown, count = policy.allowance(part(size=sum(parts[-1]), rows=len(parts[-1]))), 0, 0
        parts[-1].append(size)
        grown, count = grown + size, count + 1
    assert parts == written(policy, sizes)


class EveryThird(CheckpointRollingPolicy):
    def should_roll_on_event(self, part: PartFileInfo) -> bool:
        return part.rows >= 3


class Timed(CheckpointRollingPolicy):
    def should_roll_on_processing_time(self, part: PartFileInfo, now_ms: int) -> bool:
        return now_ms > part.creation_time


class Stricter(DefaultRollingPolicy):
    def should_roll_on_event(self, part: PartFileInfo) -> bool:
        return part.rows >= 2


@pytest.mark.parametrize(
    "policy",
    [EveryThird(), Stricter(part_size=10, rollover_interval_ms=1, inactivity_interval_ms=1)],
    ids=["own", "derived"],
)
def test_overridden_rule_is_asked_before_every_record(policy):
    """A user's rule never inherits the allowance of the rule it replaces."""
    assert policy.allowance(part()) == Allowance(bytes=0, rows=1)


def test_untouched_rule_keeps_its_allowance():
    """A user's policy without a rule for records costs nothing per record."""
    assert Timed().allowance(part()) == Allowance(bytes=None, rows=None)


def test_checkpoint_rule_is_final():
    """Bulk formats accept the policy by its type, so its promise cannot be overridden."""
    with pytest.raises(ConfigError, match="FINAL"):
        type("Wrong", (CheckpointRollingPolicy,), {"should_roll_on_checkpoint": lambda *_: False})


@pytest.mark.parametrize("value", [0, -1, "abc", "1e400", float("nan"), True, "0 MiB", None])
def test_bad_sizes(value):
    """A size that is none is a ConfigError with a code, not an error of the formats package."""
    with pytest.raises(ConfigError, match=r"BAD_VALUE.*part_size"):
        RollingPolicy.default_rolling_policy(value)


@pytest.mark.parametrize("value", [0, -1, True, "3", 1.5])
def test_bad_rows(value):
    """A number of records is a positive int."""
    with pytest.raises(ConfigError, match=r"BAD_VALUE.*max_rows"):
        RollingPolicy.on_checkpoint_rolling_policy(max_rows=value)


@pytest.mark.parametrize("name", ["rollover_interval", "inactivity_interval"])
def test_bad_intervals(name):
    """An interval of zero is refused by its name."""
    with pytest.raises(ConfigError, match=f"BAD_VALUE.*{name}"):
        RollingPolicy.default_rolling_policy(**{name: 0})


@pytest.mark.parametrize("limits", [{"bytes": -1, "rows": None}, {"bytes": None, "rows": 0}])
def test_bad_allowance(limits):
    """An allowance that permits nothing would never end."""
    with pytest.raises(ConfigError, match="BAD_VALUE"):
        Allowance(**limits)


def test_pickle_and_repr():
    """Policies travel to the tasks, compare by value and show their units."""
    policy = RollingPolicy.default_rolling_policy("1KiB", "1 min", "5 s")
    assert pickle.loads(pickle.dumps(policy)) == policy  # noqa: S301 - our own bytes
    assert repr(policy) == (
        "DefaultRollingPolicy(part_size=1024 B, rollover_interval=60000 ms, inactivity_interval=5000 ms)"
    )
    assert repr(RollingPolicy.on_checkpoint_rolling_policy("1KiB")) == (
        "OnCheckpointRollingPolicy(part_size=1024 B, max_rows=None)"
    )


class Answers(RollingPolicy):
    """To each question its own answer; fails for a part without records."""

    def should_roll_on_event(self, part: PartFileInfo) -> bool:
        return 6 // part.rows == 3

    def should_roll_on_checkpoint(self, part: PartFileInfo) -> bool:
        return 6 // part.rows == 2

    def should_roll_on_processing_time(self, part: PartFileInfo, now_ms: int) -> bool:
        return 6 // part.rows == now_ms

    def allowance(self, part: PartFileInfo) -> Allowance:
        return Allowance(bytes=6 // part.rows - 1, rows=7)


QUESTIONS = {
    "event": lambda policy, part: policy.should_roll_on_event(part),
    "checkpoint": lambda policy, part: policy.should_roll_on_checkpoint(part),
    "time": lambda policy, part: policy.should_roll_on_processing_time(part, 1),
    "allowance": lambda policy, part: policy.allowance(part),
}


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
def test_a_user_s_policy_is_asked_as_it_is(ask):
    """Each question is that question; what the policy raises is named as its own, our errors stay ours."""
    for rows in (1, 2, 3, 6):
        assert ask(AnsweringPolicy(Answers()), part(rows=rows)) == ask(Answers(), part(rows=rows))
    with pytest.raises(EncoderError, match="Answers failed with ZeroDivisionError: ") as raised:
        ask(AnsweringPolicy(Answers()), part(rows=0))
    assert raised.value.code == "POLICY"
    if ask is QUESTIONS["allowance"]:
        with pytest.raises(ConfigError):
            ask(AnsweringPolicy(Answers()), part(rows=7))
