"""A path with epochs, and receivers that remember what they were told."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from filesink import FeedEntry, FunctionNotification, SinkDirectory
from filesink.exports.notifications.notification import Notification
from filesink.sink_directory.site import Site
from tests.fakes import SettableClock
from tests.inventory.place import Place


class HurriedClock(SettableClock):
    """Sleeping takes no time, but the clock goes on."""

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.now += round(seconds * 1000)


class Told(Place):
    """An inventory in memory, folded every few epochs."""

    def __init__(self) -> None:
        super().__init__(clock=HurriedClock(now=1_700_000_000_000))
        self.driver = self.inventory(fold_every=4)

    def directory(self) -> SinkDirectory:
        return SinkDirectory(_site=Site(base_path="/base", store=self.store(), clock=self.clock))

    def epochs(self, count: int) -> None:
        """So many more, each with a file."""
        for _ in range(count):
            draft = self.draft(f"part-{len(self.drafts)}")
            assert self.driver.append(draft, floor=self.driver.newest())

    def tell(self, notification: Notification) -> None:
        """As ``filesink.export`` does it."""
        directory = self.directory()
        if notification.version(directory) < directory.version:
            notification.bring_to(directory, directory.version)

    def cursors(self) -> list[str]:
        """Names of all that notifications have left beside the path."""
        return sorted(
            path.partition("_notifications/")[2] for path in self.files.files if "_notifications" in path
        )


@dataclass
class Receiver:
    """A function that takes what it is told, unless ``fails`` says no."""

    fails: Callable[[FeedEntry], bool] = lambda _entry: False
    told: list[FeedEntry] = field(default_factory=list)

    def __call__(self, entry: FeedEntry) -> None:
        if self.fails(entry):
            raise RuntimeError("not now")
        self.told.append(entry)

    @property
    def versions(self) -> list[int]:
        return [entry.version for entry in self.told]

    def notification(self, **more: Any) -> FunctionNotification:
        return FunctionNotification(self, **{"name": "f", **more})


def first_of_each(ids: list[Any]) -> list[Any]:
    """What somebody keeps who drops what he has seen."""
    return list(dict.fromkeys(ids))


def half_of_the_time(seed: int) -> Callable[[object], bool]:
    """True every other time, by chance."""
    chance = random.Random(seed)  # noqa: S311 - to be repeated
    return lambda _: chance.random() < 0.5
