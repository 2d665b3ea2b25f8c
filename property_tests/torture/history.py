"""One history: lives into a fresh place, most of which somebody does not survive, and the look at the end."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from property_tests.torture.destination import Destination, Place, Promise, Server
from property_tests.torture.life import End, Life, committed
from property_tests.torture.servers import reborn
from property_tests.torture.steps import CLIENT, DRIVER, LETTERS, SERVER, TASK, Death
from property_tests.torture.verdict import Found, Verdict

_DEATHS = 3  # of a history, at most
_TOLD_EVERY = 50
_LONGEST_DELAY = 0.05  # seconds


@dataclass(frozen=True, kw_only=True)
class Chamber:
    """Where histories happen.

    Attributes:
        live: see ``nursery``.
        traces: of lives in which nobody died, by kind and role; see ``undisturbed``.
        seed: of all chance here.
    """

    destination: Destination
    server: Server | None
    directory: Path
    live: Callable[[Life], End]
    seed: int
    traces: dict[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def victims(self) -> Sequence[str]:
        """Who can be killed."""
        server = [] if self.server is None else [SERVER]
        return [DRIVER, TASK, *server, *([CLIENT] if self.destination.has_client else [])]

    def place(self, kind: str, name: str) -> Place:
        """A fresh one."""
        directory = self.directory / name
        directory.mkdir()
        made = self.destination.place(kind, directory, self.server)
        return {"directory": str(directory), "kind": kind, **made}

    def undisturbed(self, kind: str) -> Mapping[str, str]:
        """Which calls lives make, by role."""
        if kind not in self.traces:
            place = self.place(kind, f"undisturbed-{kind}")
            roles = [DRIVER, *([CLIENT] if self.destination.has_client else [])]
            ends = {
                role: self.live(Life(place=place, role=role, batches=self.destination.batches, tasks=2))
                for role in roles
            }
            for end in ends.values():
                assert end.how == "done", end
            self.traces[kind] = {role: end.trace for role, end in ends.items()}
        return self.traces[kind]


class History:
    """The history with this number.

    Args:
        chamber: where it happens.
        number: its own, from which all chance follows, together with the seed.
    """

    def __init__(self, chamber: Chamber, number: int) -> None:
        destination = chamber.destination
        self._chamber = chamber
        self._destination = destination
        self._number = number
        self._chance = Random(f"{chamber.seed}/{number}")
        self._kind = destination.kinds[number % len(destination.kinds)]
        self._kills: Counter[str] = Counter()
        self._failed = 0
        self._wrong: list[str] = []

    def run(self) -> Verdict:
        """From an empty place to the last look."""
        traces = self._chamber.undisturbed(self._kind)
        place = self._chamber.place(self._kind, f"{self._number}")
        victims = self._chamber.victims
        first = self._chance.randrange(len(victims))
        for number in range(self._chance.randint(1, _DEATHS)):
            # In turn, so that in the end about as many of each are dead.
            self._die(self._mortal(place, victims[(first + number) % len(victims)], traces))
            self._look(place, self._destination.batches)
        self._end(place, self._destination.batches)
        found = self._end(place, self._destination.batches + 1)
        if left := self._destination.left(place):
            self._note(f"left behind {left[:5]}")
        return Verdict(
            histories=1,
            kills=self._kills,
            failed=self._failed,
            epochs=self._destination.batches + 1,
            rows=(self._destination.batches + 1) * self._destination.rows_in_batch,
            lost=len(found.lost),
            doubled=found.doubled,
            one_key=found.one_key,
            wrong=tuple(self._wrong),
        )

    def _mortal(self, place: Place, who: str, traces: Mapping[str, str]) -> Life:
        """A life in which somebody is to die."""
        chance, most = self._chance, self._destination.batches
        done = committed(place)
        batches = chance.randint(min(done + 1, most), most)
        role = CLIENT if who == CLIENT else DRIVER
        calls = [at for at, letter in enumerate(traces[role]) if who != TASK or letter == LETTERS[TASK]]
        there = done if role == CLIENT else batches - done  # for the life to work on
        death = Death(
            who=who,
            at=chance.choice(calls[: max(1, len(calls) * there // most)]),
            side=chance.choice(["before", "after", "during"]),
            delay=chance.random() ** 3 * _LONGEST_DELAY,
            signal=self._destination.deadly if who == SERVER else signal.SIGKILL,
        )
        tasks = chance.choice(self._destination.tasks)
        is_last = chance.random() < 0.5
        return Life(place=place, role=role, batches=batches, tasks=tasks, is_last=is_last, death=death)

    def _die(self, life: Life) -> None:
        """Live it. An error is an end that only a server may bring about."""
        death, server = life.death, self._chamber.server
        assert death is not None
        if death.who == SERVER:
            assert server is not None
            with reborn(server, death.signal):
                end = self._chamber.live(replace(life, death=replace(death, pid=server.pid)))
        else:
            end = self._chamber.live(life)
        self._kills += Counter({
            life.role: int(end.how == "killed"), TASK: end.killed_tasks, SERVER: int(death.who == SERVER)
        })  # fmt: skip
        self._failed += end.how == "failed"
        expected = {"done", {SERVER: "failed", TASK: "done"}.get(death.who, "killed")}
        if end.how not in expected or (end.killed_tasks and death.who != TASK):
            self._note(f"a life {end.how} with {death}: {end.why}")

    def _end(self, place: Place, batches: int) -> Found:
        """Lives that nobody disturbs. The first publishes all; one more epoch leaves nothing else behind."""
        self._whole(Life(place=place, batches=batches, tasks=self._chance.choice(self._destination.tasks)))
        if self._destination.has_client:
            self._whole(Life(place=place, role=CLIENT))
        self._destination.settle(place)
        found = self._look(place, batches)
        if found.lost:
            self._note(f"lost {found.lost[:5]}")
        return found

    def _whole(self, life: Life) -> None:
        """A life that comes to its end: one restart is enough."""
        end = self._chamber.live(life)
        if end.how != "done":
            self._note(f"a life that nobody ends has {end.how}: {end.why}")

    def _look(self, place: Place, batches: int) -> Found:
        """What has arrived of so many batches. Some things are never right, at any time."""
        found = Found.of(self._destination.arrived(place), batches * self._destination.rows_in_batch)
        if found.strange:
            self._note(f"found {found.strange[:5]}, which nobody has written")
        allowed = 0 if self._destination.promise is Promise.ONCE else found.one_key
        if found.doubled > allowed:
            self._note(f"{found.doubled} times a row came again, {found.one_key} of them under one key")
        return found

    def _note(self, what: str) -> None:
        self._wrong.append(f"history {self._number} of seed {self._chamber.seed} ({self._kind}): {what}")


def histories(chamber: Chamber, *, kills: int, first: int = 0) -> Verdict:
    """Histories from the number ``first`` on, until so many of each kind of process were killed in them."""
    verdict, number = Verdict(), first
    while min(verdict.kills.get(who, 0) for who in chamber.victims) < kills:
        verdict += History(chamber, number).run()
        number += 1
        if number % _TOLD_EVERY == 0:
            print(f"{number - first} histories, killed {dict(verdict.kills)}", file=sys.stderr, flush=True)
    return verdict
