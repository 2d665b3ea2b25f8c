"""What a file sink is made of, and the methods that choose it. ``filesink.sink`` adds ``build()``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Self

from filesink.api.events import Listeners
from filesink.arguments import choice, instance_of
from filesink.buckets.assigner import BucketAssigner
from filesink.buckets.contract import BaseBucketAssigner
from filesink.building.epoch_followers import EpochFollowers
from filesink.commit.layout_guard import OnOtherLayout
from filesink.commit.replay import EpochOptions, OnReplayMismatch
from filesink.durations import Duration, parse_duration_ms
from filesink.errors import ConfigError
from filesink.file_sink.file_names import now_in, prefix_of
from filesink.file_sink.report import changes_of
from filesink.file_sink.tiers import FileTiers, Publishing
from filesink.inventory.folding import HISTORY_MS
from filesink.ledger.identity import OnNewQuery, check_uid
from filesink.metastore.partition_commit import PartitionCommit
from filesink.naming import OutputFileConfig
from filesink.operations.replacing.refresh import Refresh
from filesink.operations.replacing.retention import Retention
from filesink.parts.bucket import Closed
from filesink.parts.committables import LONGEST_GRACE_MS
from filesink.parts.dead_letters import DeadLetters
from filesink.parts.file_format import BulkFormat, FileFormat, RowFormat, check_suffix
from filesink.parts.plan import Plan
from filesink.parts.rolling import AnsweringPolicy, CheckpointRollingPolicy, RollingPolicy
from filesink.parts.stages.closed_parts import Compaction, CompactStrategy, Waiting
from filesink.parts.stages.merger import SinkFiles
from filesink.spark.input.s3a import SessionOptions
from filesink.storage.address import StoreAddress
from filesink.system import SystemClock
from formats.arguments import kind_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SinkBuilder(EpochFollowers):
    """Collects what a ``FileSink`` is made of. Immutable: every ``with_…`` returns a new builder."""

    base_path: str
    format: FileFormat
    policy: RollingPolicy
    assigner: BaseBucketAssigner = field(default_factory=BucketAssigner.date_time_bucket_assigner)
    names: OutputFileConfig = field(default_factory=OutputFileConfig)
    uid: str | None = None
    check_interval_ms: int = 60_000
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    epochs: EpochOptions = field(default_factory=EpochOptions)
    dead_letters: DeadLetters | None = None
    compaction: Compaction | Waiting = Waiting.REFUSED
    partition_commit: PartitionCommit | None = None
    other_layout: OnOtherLayout = OnOtherLayout.REFUSE
    history_ms: int = HISTORY_MS
    reader_grace_ms: int = 0
    retention: Retention | None = None
    in_order: Callable[[], Callable[[DataFrame], DataFrame]] = lambda: lambda df: df

    def with_bucket_assigner(self, assigner: BaseBucketAssigner) -> Self:
        """Choose the directory of each record; by default the hour of writing, as Flink does."""
        return replace(self, assigner=instance_of(assigner, BaseBucketAssigner, name="assigner"))

    def with_rolling_policy(self, policy: RollingPolicy) -> Self:
        """Choose when a part file is closed.

        Bulk formats take a ``CheckpointRollingPolicy`` only: their files end with every epoch.
        """
        instance_of(policy, RollingPolicy, name="policy")
        if isinstance(self.format, BulkFormat) and not isinstance(policy, CheckpointRollingPolicy):
            raise ConfigError(
                f"{type(policy).__name__} may keep a part open across epochs, and a bulk format cannot be "
                "continued. "
                "Use RollingPolicy.on_checkpoint_rolling_policy(…), and compaction for larger files",
                code="CONFLICT",
            )
        return replace(self, policy=policy)

    def with_bucket_check_interval(self, interval: Duration) -> Self:
        """Choose how often age and inactivity are checked; ``int`` is milliseconds. 1 min by default."""
        return replace(self, check_interval_ms=parse_duration_ms(interval, name="bucket_check_interval"))

    def with_output_file_config(self, config: OutputFileConfig) -> Self:
        """Choose prefix and suffix of the names of part files.

        ``build`` raises ``ConfigError`` (``CONFLICT``) if the suffix is that of another codec or format, so
        that readers would misread the files.
        """
        return replace(self, names=instance_of(config, OutputFileConfig, name="config"))

    def with_file_name_expression(
        self, file_names: str, *, time_format: str = "yyyy.MM.dd", time_zone: str = "UTC"
    ) -> Self:
        """Choose the prefix of names as SeaTunnel does: ``"sales_${now}-${transactionId}"``.

        ``${transactionId}``, or ``${uuid}``, is the random id of a file, and has to be the end of the
        expression; a number and the suffix follow. So a name is never used again.

        Args:
            file_names: the expression.
            time_format: how ``${now}`` is written, in Java's pattern.
            time_zone: whose clock ``${now}`` shows. It is the moment of this call, for all files of the sink.

        Raises:
            ConfigError: ``FILE_NAME``, names could meet or a variable is unknown; ``BAD_VALUE``,
                ``TIME_ZONE``, ``TOO_LONG``.
        """
        now = now_in(time_zone, SystemClock().now_ms())
        prefix = prefix_of(file_names, time_format=time_format, now=now)
        return replace(self, names=replace(self.names, part_prefix=prefix))

    def enable_compact(self, strategy: CompactStrategy, compactor: Any) -> Self:
        """Hold small files back, hidden, until ``strategy`` has ``compactor`` merge them.

        Args:
            strategy: ``compaction.FileCompactStrategy(…)``.
            compactor: one of ``compaction.FileCompactor``.

        Raises:
            ConfigError: ``COMPACTION``; the compactor cannot merge files of this format.
        """
        if isinstance(strategy, type) or not callable(getattr(strategy, "stage", None)):
            raise ConfigError(
                "enable_compact takes a strategy, such as compaction.FileCompactStrategy(size_threshold="
                f"'128MiB'), got {kind_of(strategy)}",
                code="BAD_VALUE",
            )
        address = StoreAddress(base_path=self.base_path)
        strategy.stage(compactor, SinkFiles(open_store=address, format=self.format, names=self.names))
        return replace(self, compaction=Compaction(strategy=strategy, compactor=compactor))

    def disable_compact(self) -> Self:
        """Publish the files that an earlier run with compaction has left waiting, without merging them."""
        return replace(self, compaction=Waiting.PUBLISHED)

    def with_uid(self, uid: str) -> Self:
        """Give the sink a stable name, so that it knows its own files under any checkpoint.

        1 to 100 letters, digits, ``.``, ``_`` and ``-``, the first one a letter or digit.
        """
        return replace(self, uid=check_uid(uid))

    def with_history_retention(self, retention: Duration) -> Self:
        """Choose how long the path's inventory remembers epochs and removed files; 30 days by default.

        Older snapshots cannot be read. ``int`` is milliseconds. All sinks of a path share its
        inventory, and the driver that folds it applies its own retention.
        """
        return replace(self, history_ms=parse_duration_ms(retention, name="history_retention"))

    def with_reader_grace(self, grace: Duration) -> Self:
        """Keep what an overwrite replaces for so long, for readers who hold a snapshot; 0 by default.

        Meant are batch writes that overwrite all or some partitions, and those that replace an earlier
        write of their ``txn_id``. ``filesink.open(path).snapshot(…)``, ``FileSource`` and Spark's
        ``versionAsOf`` can read the version before for that long, after the new one is complete. Whoever
        lists directories, as ``spark.read.parquet(path)`` and Hive do, sees old and new rows meanwhile.

        The next write of any kind to the path removes what is due, by the clock of its driver, and so do
        ``sweep()`` and ``recover()``. ``int`` is milliseconds.

        Raises:
            ConfigError: ``BAD_VALUE``; not a duration, or longer than a thousand years.
        """
        parsed = parse_duration_ms(grace, name="reader_grace", least=0)
        if parsed > LONGEST_GRACE_MS:
            raise ConfigError(
                f"reader_grace must not be longer than a thousand years, got {repr(grace)[:80]}",
                code="BAD_VALUE",
            )
        return replace(self, reader_grace_ms=parsed)

    def with_retention(self, retention: Retention) -> Self:
        """Drop what is too old or too much, as ``filesink.retain`` does, without being asked.

        After the first epoch that the built sink has completed, and then after the first one of each hour,
        in an epoch of its own. It takes the thread of that epoch for as long as a listing takes, and fails
        none: the log says what went wrong. Listeners hear of it. Dropped files stay for
        ``with_reader_grace``, and policies of ``with_partition_commit`` are told: partitions without files
        go from the metastore.

        By partition time, directories of ``date_time_bucket_assigner`` are read by its own pattern, unless
        ``retention`` has another one. ``build`` raises ``ConfigError`` (``BAD_VALUE``) if it is known that no
        directory tells a time.
        """
        return replace(self, retention=instance_of(retention, Retention, name="retention"))

    def with_storage_options(self, **options: Any) -> Self:
        """Give options to the store, like fsspec's ``storage_options``; they are never written anywhere.

        For a path on S3 they come before the session's own settings ``spark.hadoop.fs.s3a.*``.
        """
        return replace(self, storage_options={**self.storage_options, **options})

    def on_new_query(self, action: Literal["refuse", "append", "replace"]) -> Self:
        """Say what happens if another query has already written to this sink from another checkpoint.

        ``"refuse"`` (default) raises ``IdentityError``: the new query would read its source from the
        start and write every row a second time. ``"append"`` lets it write. ``"replace"`` is for a full
        refresh: when the first batch of the new query is written, and before it becomes visible, every file
        of the path goes, whoever wrote it, as do parts that earlier queries have left open. Columns, format
        and partitions may be others; dead letters stay. A query that was replaced is refused from then on.
        It needs ``with_uid``, and is refused (``OTHER_STREAM``) where a stream of another uid has written.
        """
        chosen = choice(OnNewQuery, action, "on_new_query")
        return replace(self, epochs=replace(self.epochs, on_new_query=chosen))

    def on_other_layout(self, action: Literal["refuse", "allow"]) -> Self:
        """Say what happens if files of another layout, from any sink, are below the base path.

        Two layouts agree if format, suffix and partition columns are the same, and each column has the
        same type in both, or one of the two types can hold all values of the other.
        ``"refuse"`` (default) raises ``SchemaError`` (``OTHER_LAYOUT``) before anything is visible.
        ``"allow"`` writes beside them, and only for this sink: the next one is refused as before.
        """
        return replace(self, other_layout=choice(OnOtherLayout, action, "on_other_layout"))

    def on_replay_mismatch(self, action: Literal["raise", "keep_first"]) -> Self:
        """Say what happens when a committed micro-batch comes back with another number of rows.

        ``"raise"`` (default) raises ``ReplayMismatchError``; ``"keep_first"`` logs a warning and keeps
        what was committed, for queries that are knowingly not deterministic.
        """
        chosen = choice(OnReplayMismatch, action, "on_replay_mismatch")
        return replace(self, epochs=replace(self.epochs, on_replay_mismatch=chosen))

    def on_bad_record(self, action: Literal["fail"] | DeadLetters) -> Self:
        """Say what happens to a record that has no bucket, or that the encoder of a row format cannot write.

        Examples are 300 bytes in a partition column, or text that the charset cannot express. ``"fail"``
        (default) fails the epoch with a ``BucketError`` or an ``EncoderError`` that says where to look.
        ``DeadLetters()`` puts the record, with the error, into Parquet files below ``_dead_letters``,
        published by the same epoch. A record that a bulk format cannot write always fails the epoch.
        """
        if action == "fail":
            return replace(self, dead_letters=None)
        return replace(self, dead_letters=instance_of(action, DeadLetters, name="action"))

    def with_partition_commit(self, commit: PartitionCommit) -> Self:
        """Announce directories that received files: to a metastore, by success files, to a listener."""
        return replace(self, partition_commit=instance_of(commit, PartitionCommit, name="commit"))

    def audience(self) -> Listeners | None:
        """Who is told of epochs; ``None`` if nobody listens."""
        return Listeners(self.base_path, self.listeners, changes_of) if self.listeners else None

    def tiers(self) -> FileTiers:
        """The sink as an engine drives it; for engines of your own."""
        check_suffix(self.format, self.names)
        if self.uid is None and self.epochs.on_new_query is OnNewQuery.REPLACE:
            raise ConfigError("on_new_query='replace' needs a sink with a name: with_uid(…)", code="CONFLICT")
        commit = self.partition_commit
        return FileTiers(
            address=StoreAddress(
                base_path=self.base_path,
                storage_options=SessionOptions(self.base_path, self.storage_options),
            ),
            plan=self._plan(),
            uid=self.uid,
            publishing=None if commit is None else Publishing(commit=commit, base_path=self.base_path),
            compaction=self.compaction,
            on_other_layout=self.other_layout,
            history_ms=self.history_ms,
            reader_grace_ms=self.reader_grace_ms,
        )

    def epoch_options(self, tiers: FileTiers) -> EpochOptions:
        """How epochs of ``tiers`` are run."""
        return replace(self.epochs, make_way=Refresh(tiers=tiers, base_path=self.base_path))

    def _plan(self) -> Plan:
        commit = self.partition_commit
        return Plan(
            format=self.format,
            assigner=self.assigner,
            policy=AnsweringPolicy(self.policy),
            names=self.names,
            check_interval_ms=self.check_interval_ms,
            closed=Closed.HELD if isinstance(self.compaction, Compaction) else Closed.PENDING,
            on_bad_record=self.dead_letters,
            watermark_column=None if commit is None else commit.watermark_column,
            watermark_zone=None if commit is None else commit.watermark_zone,
        )

    @property
    def label(self) -> str:
        """Names this sink in a log or a ``repr``. Has no options, since these may be secret."""
        form = self.format
        code = form.encoder if isinstance(form, RowFormat) else form.factory
        kinds = (type(one).__qualname__.lstrip("_") for one in (code, self.assigner, self.policy))
        return " ".join([repr(self.base_path), *([] if self.uid is None else [f"uid={self.uid!r}"]), *kinds])
