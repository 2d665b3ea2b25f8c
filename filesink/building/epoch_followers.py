"""Who follows the epochs of a file sink: listeners, exports and notifications. Chosen on its builder."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, Self

from filesink.api.events import Listener, check_listener
from filesink.arguments import choice
from filesink.exports.api import Exporter, ExportPlan, OnExportFailure
from filesink.exports.notifications.background import Receiver, notifying


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EpochFollowers:
    """The part of ``SinkBuilder`` that never touches the commit: what fails here fails no epoch."""

    listeners: tuple[Listener, ...] = ()
    exports: ExportPlan = field(default_factory=ExportPlan)

    def with_listener(self, listener: Listener) -> Self:
        """Have ``listener`` called on the driver with every event of the epochs; any number of them.

        What it raises is logged and fails nothing; see ``filesink.Listener``. ``filesink.telemetry`` has
        some that feed Prometheus and logs.
        """
        return replace(self, listeners=(*self.listeners, check_listener(listener)))

    def with_export(self, exporter: Exporter) -> Self:
        """Keep something beside the files, such as the log of a table: ``DeltaExport()``; any number of them.

        Each is brought to the newest version of the path when an epoch is complete, on the driver, and
        outside of the commit. One that fails is logged and goes on after the next epoch;
        ``EpochReport.behind`` says by how many versions it is behind. See also ``filesink.export``.

        Raises:
            ConfigError: ``CONFLICT``; there is one of this name.
        """
        return replace(self, exports=self.exports.and_(exporter))

    def with_notification(self, receiver: Receiver) -> Self:
        """Tell a receiver of each epoch, such as ``WebhookNotification("https://…")`` or a function of yours.

        At least once, in order, and never before the files are visible. An epoch waits two seconds for it at
        most; what is not told by then is told in the background. Otherwise as ``with_export``.

        Raises:
            ConfigError: ``CONFLICT``; or the receiver cannot be told like this.
        """
        return self.with_export(notifying(receiver))

    def on_export_failure(self, action: Literal["lag", "fail"]) -> Self:
        """Say what becomes of an epoch whose export fails.

        ``"lag"`` (default) logs it and goes on. ``"fail"`` raises ``ExportError`` (``EXPORT``): files are
        visible and the epoch is complete all the same, but the write is not reported as done, and a query
        ends. Its restart, which finds the batch written, exports again.
        """
        chosen = choice(OnExportFailure, action, "on_export_failure")
        return replace(self, exports=replace(self.exports, on_failure=chosen))
