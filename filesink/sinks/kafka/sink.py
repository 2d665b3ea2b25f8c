"""``KafkaSink``: topics of Kafka behind the doors of Spark.

How it is used:

    sink = KafkaSink("kafka:9092", "orders", ledger="/data/orders-ledger")
    sink.write(df)                                                            # a batch
    sink.start(stream, checkpoint_location="/data/cp", available_now=True)    # a stream
"""

from __future__ import annotations

import os
from functools import partial
from typing import Literal

from filesink.durations import Duration, parse_duration_ms
from filesink.ledger.identity import check_uid
from filesink.sinks.doors import SparkSink, engine_options
from filesink.sinks.kafka.committables import STAGED, Committable
from filesink.sinks.kafka.settings import KafkaCluster, check_topic
from filesink.sinks.kafka.sweeping import sweep_older
from filesink.sinks.kafka.tiers import KafkaTiers
from filesink.sinks.store_ledger import StoreLedger
from filesink.spark.runner import active_runner
from filesink.storage.probes import store_ms
from filesink.system import SystemIds


class KafkaSink(SparkSink[None, Committable, None]):
    """Sends DataFrames to topics of Kafka; readers of what is committed see each row exactly once.

    Tasks stage rows in files; when the epoch is decided, the driver, or a job of ``KafkaCluster(senders=…)``
    tasks, sends them in transactions that also note what they have sent. Columns are those of Spark's own
    Kafka sink: ``value``, and ``key``, ``topic``, ``partition``, ``headers``, also ``timestamp``.

    Args:
        cluster: ``"host:port,…"``, or a ``KafkaCluster``.
        topic: for all rows, whatever their column ``topic`` says; without it each row names its own.
        ledger: a directory in any store, or a ``StoreLedger``, of this sink alone, that driver and tasks
            reach; kept across restarts. Rows are staged there, too.
        uid: the sink's stable name; needed if a stream may get another checkpoint. Sinks that write to the
            same topic of a cluster need different ones.
        on_new_query: as ``FileSinkBuilder.on_new_query``.

    Raises:
        ConfigError: an argument cannot be used.
    """

    def __init__(
        self,
        cluster: str | KafkaCluster,
        topic: str | None = None,
        *,
        ledger: str | os.PathLike[str] | StoreLedger,
        uid: str | None = None,
        on_new_query: Literal["refuse", "append"] = "refuse",
    ) -> None:
        tiers = KafkaTiers(
            cluster=KafkaCluster.at(cluster),
            topic="" if topic is None else check_topic(topic),
            ledger=StoreLedger.at(ledger),
            uid=None if uid is None else check_uid(uid),
            tasks=partial(active_runner, f"filesink {topic or 'Kafka'}", work="{} senders"),
        )
        self._tiers = tiers
        super().__init__(tiers, options=engine_options(tiers.topic or "Kafka", on_new_query=on_new_query))

    def sweep(self, older_than: Duration = "7 days") -> list[str]:
        """Remove what batch writes that died have staged; returns the paths of what was removed.

        A stream does so by itself when it is started again. What is decided and not yet committed stays.

        Args:
            older_than: attempts of batch writes that old count as dead; ``int`` is milliseconds.

        Raises:
            StorageError: the store does not answer, or refuses.
        """
        age, store = parse_duration_ms(older_than, name="older_than"), self._tiers.ledger.open_store()
        if not store.list(STAGED):
            return []
        codec = self._tiers.committable_codec
        ledgers = self._ledgers()
        unfinished = [record for ledger in ledgers for record in ledger.history.unfinished()]
        decided = {
            file.staged.path
            for record in unfinished
            for one in record.committables.decode(codec)
            for file in one.files
        }
        return sweep_older(
            store,
            store_ms(store, SystemIds().uuid()) - age,  # files have the store's time, and this host another
            of_streams=[ledger.sink_id for ledger in ledgers],
            decided=decided,
        )
