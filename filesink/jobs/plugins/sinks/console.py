"""``Console``: rows for people."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from filesink.jobs.model.options import option
from filesink.jobs.plugins.api import Frames, PluginOptions, Run, Sink, Started

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_SPARK = {"processing_time": "processingTime", "available_now": "availableNow"}


class ConsoleOptions(PluginOptions):
    """How much is printed."""

    without_effect = {
        "log.print.delay.ms": "rows are printed at once",
        "multi_table_sink_replica": "tables are printed one after the other",
    }

    most_rows: int = option(
        100, doc="Of each table; 0 prints none.", unit="rows", words=("most_rows",), ge=0, le=100_000
    )
    print_data: bool = option(default=True, doc="Whether rows are printed.", words=("log.print.data",))


class Console(Sink):
    """Prints the first rows, and executes all of them."""

    name = "Console"
    options_type = ConsoleOptions
    options: ConsoleOptions

    def write(self, frames: Frames, run: Run) -> int | None:
        """See ``Sink.write``."""
        return sum(self._print(name, frame, run) for name, frame in frames.items())

    def start(self, frames: Frames, run: Run) -> Sequence[Started]:
        """See ``Sink.start``."""
        return [
            self._started(name, frame, run, f"checkpoint-{number}")
            for number, (name, frame) in enumerate(frames.items())
        ]

    def _started(self, name: str, frame: DataFrame, run: Run, checkpoint: str) -> Started:
        trigger = {_SPARK[word]: value for word, value in run.trigger.items()}
        writer = frame.writeStream.foreachBatch(partial(self._print_batch, name, run)).trigger(**trigger)
        query = writer.option("checkpointLocation", f"{run.directory}/{checkpoint}").start()
        return Started(query=query, checkpoint=checkpoint)

    def _print_batch(self, name: str, run: Run, batch: DataFrame, _number: int) -> None:
        self._print(name, batch, run)

    def _print(self, name: str, frame: DataFrame, run: Run) -> int:
        kept = frame.persist()
        try:
            rows = kept.count()
            most = self.options.most_rows if self.options.print_data else 0
            for row in kept.limit(most).collect() if most else ():
                run.say(f"{name}: {', '.join('null' if value is None else str(value) for value in row)}")
            run.say(f"{name}: {rows:,} rows{f', {rows - most:,} of them not shown' if rows > most else ''}")
        finally:
            kept.unpersist()
        return rows
