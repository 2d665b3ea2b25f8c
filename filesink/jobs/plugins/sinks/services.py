"""Sinks of filesink that are no files: PostgreSQL, HTTP, a client that collects, tables of Hive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import filesink
from filesink.errors import JobError
from filesink.jobs.model.column_types import quoted
from filesink.jobs.model.options import Bytes, Milliseconds, Names, option
from filesink.jobs.model.secret import Secret, SecretSettings
from filesink.jobs.plugins.api import Frames, PluginOptions, Run, Sink, Started
from filesink.jobs.plugins.sources.spark import revealed
from filesink.jobs.plugins.transforms.columns import check_columns


class _OneTableSink(Sink):
    """A sink of filesink that takes one table."""

    def write(self, frames: Frames, run: Run) -> int | None:
        """See ``Sink.write``: a repeat finds that it was written."""
        report = self.made(run).write(self._only(frames), txn_id=f"{run.job}-{run.vertex}")
        return int(report.rows)

    def check(self, frames: Frames, run: Run) -> None:
        """See ``Sink.check``."""
        del run
        self._only(frames)

    def start(self, frames: Frames, run: Run) -> Sequence[Started]:
        """See ``Sink.start``."""
        location = f"{run.directory}/checkpoint"
        query = self.made(run).start(self._only(frames), checkpoint_location=location, **run.trigger)
        return [Started(query=query, checkpoint="checkpoint")]

    def made(self, run: Run) -> Any:
        """The sink."""
        raise NotImplementedError

    def _only(self, frames: Frames) -> Any:
        if len(frames) != 1:
            raise JobError(
                f"sink {self.name} takes one table, and there are {len(frames)}; write a sink for each",
                code="JOB_VALUE",
            )
        return next(iter(frames.values()))


def _uid(run: Run) -> str:
    """Of this sink of this job alone: a database knows sinks by it, those of other jobs as well."""
    return f"{run.job}-{run.vertex}"


class PostgresOptions(PluginOptions):
    """A table of PostgreSQL."""

    server: str = option(doc="Of libpq, without a password: host=db dbname=shop user=loader.")
    table: str = option(doc="schema.table.")
    password: Secret | None = option(None, doc="A reference; else libpq finds one.")
    keys: Names = option(
        (), doc="Columns of a unique index: rows update those that are there.", words=("primary_keys",)
    )
    newest_by: str | None = option(None, doc="Which of several rows with one key stands.")
    on_missing: Literal["refuse", "create"] = option("refuse", doc="Whether the table is created.")
    commit: Literal["staged", "prepared"] = option("staged", doc="How rows wait for the decision.")


class Postgres(_OneTableSink):
    """Rows into a table, exactly once: ``PostgresSink``."""

    name = "Postgres"
    options_type = PostgresOptions
    options: PostgresOptions

    def made(self, run: Run) -> Any:
        """See ``_OneTableSink.made``."""
        chosen = self.options
        password = None if chosen.password is None else run.reveal(chosen.password)
        return filesink.PostgresSink(
            filesink.PostgresServer(chosen.server, password=password),
            filesink.PostgresTable(
                chosen.table,
                keys=chosen.keys,
                newest_by=chosen.newest_by,
                on_missing=chosen.on_missing,
                commit=chosen.commit,
            ),
            ledger=f"{run.directory}/ledger",
            uid=_uid(run),
        )


class HttpOptions(PluginOptions):
    """A service."""

    refused = {"params": "write them into the url"}
    without_effect = {
        "retry": "requests are repeated until the service has taken them, or their time is over",
        "retry_backoff_multiplier_ms": "pauses grow by themselves",
        "retry_backoff_max_ms": "pauses grow by themselves",
        "array_mode": "body says it",
    }

    url: str = option(doc="https://host:port/path.")
    headers: SecretSettings = option(
        SecretSettings(), doc="Sent with every request; Authorization is a reference."
    )
    token_env: str | None = option(None, doc="A variable of the environment with a bearer token.")
    body: Literal["json", "ndjson", "array"] = option(
        "ndjson", doc="One object, lines, or an array a request."
    )
    method: Literal["POST", "PUT", "PATCH"] = option("POST", doc="Of HTTP.")
    timeout: Milliseconds = option(30_000, doc="Of connecting and of each pause.", unit="ms")


class Http(_OneTableSink):
    """Rows to a service, at least once, with keys by which it knows a repeat: ``HttpSink``."""

    name = "Http"
    options_type = HttpOptions
    options: HttpOptions

    def made(self, run: Run) -> Any:
        """See ``_OneTableSink.made``."""
        chosen = self.options
        headers: Mapping[str, str] = revealed(chosen.headers, run)
        service = filesink.HttpService(
            chosen.url,
            body=chosen.body,
            method=chosen.method,
            headers=headers,
            token_env=chosen.token_env,
            timeout=chosen.timeout,
        )
        return filesink.HttpSink(service, ledger=f"{run.directory}/ledger", uid=_uid(run))


class KafkaOptions(PluginOptions):
    """A topic."""

    without_effect = {
        "semantics": "readers of what is committed see each row once, whatever it says",
        "transaction_prefix": "transactions are named by the job",
    }
    refused = {"partition": "Kafka's partitioner chooses by the key", "assign_partitions": "as for partition"}

    servers: str = option(doc="Brokers, with commas.", words=("bootstrap.servers",))
    topic: str = option(doc="Of all rows.")
    format: Literal["json", "text"] = option("json", doc="Of values: all columns, or the only one.")
    key: Names = option((), doc="Columns of the key, as JSON.", words=("partition_key_fields",))
    config: SecretSettings = option(
        SecretSettings(), doc="Of the client, in librdkafka's words.", words=("kafka.config",)
    )


class Kafka(_OneTableSink):
    """Rows to a topic, exactly once for readers of what is committed: ``KafkaSink``."""

    name = "Kafka"
    options_type = KafkaOptions
    options: KafkaOptions

    def made(self, run: Run) -> Any:
        """See ``_OneTableSink.made``."""
        chosen = self.options
        cluster = filesink.KafkaCluster(chosen.servers, client=revealed(chosen.config, run))
        return filesink.KafkaSink(cluster, chosen.topic, ledger=f"{run.directory}/ledger", uid=_uid(run))

    def _only(self, frames: Frames) -> Any:
        frame = super()._only(frames)
        key, columns = self.options.key, frame.columns
        check_columns(frame, key, "partition_key_fields")
        if self.options.format == "text" and len(columns) != 1:
            raise JobError(
                f"sink Kafka sends one column as text, and there are {len(columns)}; take json",
                code="JOB_VALUE",
            )
        everything = f"to_json(struct({', '.join(map(quoted, columns))}))"
        value = f"CAST({quoted(columns[0])} AS STRING)" if self.options.format == "text" else everything
        keys = [f"to_json(struct({', '.join(map(quoted, key))})) AS key"] if key else []
        return frame.selectExpr(f"{value} AS value", *keys)


class CollectOptions(PluginOptions):
    """Where rows wait."""

    path: str = option(doc="A directory of this sink alone.")
    most_bytes: Bytes = option(1 << 30, doc="That may wait.", unit="bytes", words=("max_buffered_bytes",))


class Collect(_OneTableSink):
    """Rows for one client, exactly once: ``CollectSink``."""

    name = "Collect"
    options_type = CollectOptions
    options: CollectOptions

    def made(self, run: Run) -> Any:
        """See ``_OneTableSink.made``."""
        del run
        return filesink.CollectSink(self.options.path, max_buffered_bytes=self.options.most_bytes)


class HiveOptions(PluginOptions):
    """A table of Hive."""

    refused = {
        "hive_site_path": "write metastore_uri",
        "kerberos_principal": "run kinit before",
        "kerberos_keytab_path": "run kinit before",
        "schema_save_mode": "the table has to be there",
    }
    harmless = {"schema_save_mode": ("IGNORE", "ERROR_WHEN_SCHEMA_NOT_EXIST", "CREATE_SCHEMA_WHEN_NOT_EXIST")}
    without_effect = {"abort_drop_partition_metadata": "partitions are announced once their rows are there"}

    table: str = option(doc="database.table.", words=("table_name",))
    metastore: str = option(doc="thrift://host:9083; several with commas.", words=("metastore_uri",))
    on_new_columns: Literal["refuse", "add"] = option(
        "refuse", doc="Whether the table gets columns that it lacks."
    )
    overwrite: bool = option(
        default=False, doc="Whether a batch replaces the partitions that it has rows for."
    )


class Hive(_OneTableSink):
    """Rows into a table of Hive, exactly once, and their partitions into its metastore."""

    name = "Hive"
    options_type = HiveOptions
    options: HiveOptions

    def write(self, frames: Frames, run: Run) -> int | None:
        """See ``Sink.write``."""
        if not self.options.overwrite:
            return super().write(frames, run)
        return int(self.made(run).write(self._only(frames), mode="overwrite_partitions").rows)

    def made(self, run: Run) -> Any:
        """See ``_OneTableSink.made``."""
        del run
        metastore = filesink.HiveMetastore(self.options.metastore)
        return filesink.FileSink.for_hive_table(
            self.options.table, metastore=metastore, on_new_columns=self.options.on_new_columns
        ).build()
