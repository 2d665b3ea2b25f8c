"""Tells a function of the driver's own of each epoch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from filesink.errors import ConfigError
from filesink.exports.notifications.notification import Notification
from filesink.metastore.service_errors import sentence
from filesink.sink_directory.feed import FeedEntry
from filesink.sinks.asynchronous import Again, Answer, Delivered
from formats.arguments import kind_of


@dataclass(frozen=True)
class FunctionNotification(Notification):
    """Calls a function with the entry of each epoch, in a thread of the driver.

    An entry is taken when the function returns. If it raises, it is called again with the same entry.

    Args:
        function: takes a ``FeedEntry``. Known by module and name, unless ``name`` is given: two programs that
            tell functions of one name in ``__main__`` about one path need names.
        name, after: see ``Notification``.

    Raises:
        ConfigError: ``BAD_VALUE``.
    """

    function: Callable[[FeedEntry], object] = field(repr=False)

    def __post_init__(self) -> None:
        """Check what was given."""
        given: object = self.function
        if not callable(given) or isinstance(given, type):
            raise ConfigError(
                f"a receiver must be a function of a FeedEntry, got {kind_of(given)}", code="BAD_VALUE"
            )

        super().__post_init__()

    def _receiver(self) -> tuple[str, str]:
        named = self.function if hasattr(self.function, "__qualname__") else type(self.function)
        if named is partial or "<lambda>" in named.__qualname__:
            # Two of a module would share how far they were told, and each epoch would reach one of them.
            raise ConfigError(
                "a lambda or functools.partial has no name of its own; give FunctionNotification(…, name=…)",
                code="BAD_VALUE",
            )
        return "function", f"{named.__module__}.{named.__qualname__}"

    def open(self) -> Calls:
        """See ``Notification.open``."""
        return Calls(self.function)


class Calls:
    """See ``Sender``."""

    def __init__(self, function: Callable[[FeedEntry], object]) -> None:
        self._function = function

    def send(self, entry: FeedEntry) -> Answer:
        """See ``Sender.send``."""
        try:
            self._function(entry)
        except Exception as error:  # noqa: BLE001 - of the user's own; the entry is not taken, and comes again
            return Again(why=f"the function has failed: {sentence(f'{type(error).__name__}: {error}')}")
        return Delivered()

    def close(self) -> None:
        """See ``Sender.close``."""
