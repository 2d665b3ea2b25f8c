"""What every public call is given that it does not expect; see ``tests.package.test_wrong_types``."""

from __future__ import annotations

import inspect
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pyarrow as pa
from pyspark.sql.streaming import StreamingQuery

import compaction
import filesink
from compaction import FileCompactor, FileCompactStrategy
from filesink import (
    BucketAssigner,
    BulkWriterFactory,
    DeadLetters,
    Encoder,
    FileSink,
    FileSinkBuilder,
    FilesinkError,
    FormatError,
    OrcBulkWriterFactory,
    OrcIndexes,
    OutputFileConfig,
    ParquetEncryption,
    ParquetLayout,
    ParquetWriterFactory,
    PartitionCommit,
    PartitionPolicy,
    ReadLimits,
    RollingPolicy,
)
from filesink.metastore.memory import MemoryMetastore
from formats.text.line_format import TextLineFormat
from tests.exports.lists import Names
from tests.fakes import World, micro_batch
from tests.formats.bulk.test_parquet import Kms
from tests.sinks.letters import Letters

#: By the name under which a test shows it. Text of one letter is a valid value of some parameters.
WRONG: Mapping[str, Any] = {
    "None": None,
    "1": 1,
    "-1": -1,
    "1.5": 1.5,
    "nan": float("nan"),
    "huge": 10**400,
    "True": True,
    "x": "x",
    "empty": "",
    "surrogate": "\ud800",
    "nul": "\0",
    "bytes": b"x",
    "list": [1],
    "empty list": [],
    "tuple": ("x", None),
    "dict": {},
    "dict of None": {"x": None},
    "dict of numbers": {1: 2},
    "dict of surrogates": {"x": "\ud800"},
    "list of names": ["x"],
    "object": object(),
    "function": len,
    "class": int,
}
TYPED = (FilesinkError, FormatError)

_NONE = inspect.Parameter.empty
_STARRED = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}

#: Values that users are given and do not make, and what ``FileSink`` makes for them.
_MADE_HERE = frozenset(
    {
        compaction.CompactionPlan,
        filesink.Changes,
        filesink.CollectPosition,
        filesink.CollectResults,
        filesink.CommittedPartition,
        filesink.CopyPlan,
        filesink.CopyReport,
        filesink.DroppedFiles,
        filesink.Epoch,
        filesink.EpochBegan,
        filesink.EpochComplete,
        filesink.EpochDecided,
        filesink.EpochFailed,
        filesink.EpochReport,
        filesink.Erasure,
        filesink.ErasurePlan,
        filesink.EpochVisible,
        filesink.ExportEnded,
        filesink.ExportReport,
        filesink.FeedEntry,
        filesink.FileChanges,
        filesink.FileSplit,
        filesink.Finding,
        filesink.FinishedFile,
        filesink.FsckReport,
        filesink.HeldPart,
        filesink.HiddenFilesSwept,
        filesink.HttpAnswer,
        filesink.Left,
        filesink.LiveFile,
        filesink.Matching,
        filesink.PartFileInfo,
        filesink.PartsMerged,
        filesink.PartsRolled,
        filesink.PathStatus,
        filesink.RecoveryReport,
        filesink.RetentionPlan,
        filesink.RollbackPlan,
        filesink.Root,
        filesink.SinkDirectory,
        filesink.SinkEvent,
        filesink.SinkReport,
        filesink.SinkState,
        filesink.Snapshot,
        filesink.SourceFile,
        filesink.SweepPlan,
        filesink.TableReport,
    }
)
#: What a call needs beside the one wrong value, by name of the parameter, or of the call and the parameter.
#: Parameters with a default are those that a call needs all the same.
_GOOD: Mapping[str, Any] = {
    "base_path": "base",
    "path": "base",
    "StoreLedger.path": "ledger",
    "HttpService.url": "http://localhost/",
    "HttpSink.service": "http://localhost/",
    "HttpSink.ledger": "ledger",
    "encoder": Encoder.simple_string_encoder(),
    "writer_factory": ParquetWriterFactory(),
    "form": ParquetWriterFactory(),
    "open_kms": Kms,
    "footer_key": "foot",
    "exporter": Names(),
    "follow.path": "base",
    "receiver": print,
    "FunctionNotification.function": print,
    "KafkaNotification.cluster": "localhost:9092",
    "KafkaNotification.topic": "topic",
    "SnsNotification.topic_arn": "arn:aws:sns:eu-central-1:1:topic",
    "SqsNotification.queue_url": "https://localhost/queue",
    "WebhookNotification.service": "http://localhost/",
    "stream_format": TextLineFormat(),
    "bulk_format": ParquetWriterFactory(),
    "adopt.path": "base",
    "open.path": "base",
    "FileSourceBuilder.after_reading.action": "keep",
    "FileSourceBuilder.with_state_location.path": "state",
    "file": io.BytesIO(),
    "limits": ReadLimits(),
    "sink": Letters(Path("letters")),
    "FileCompactStrategy.checkpoints": 2,
    "BucketAssigner.table_bucket_assigner.column": "value",
    "Retention.keep": 1,
    "Split.start": 0,
    "Split.end": 1,
    "retain.retention": filesink.Retention(keep=1),
    "plan_retain.retention": filesink.Retention(keep=1),
    "version": 0,
    "where": "value = 'x'",
    "target": "copy",
    "Tables.frames": {"t": SimpleNamespace(isStreaming=False, schema=[])},  # as much of one as is looked at
    "KafkaCluster.bootstrap_servers": "localhost:9092",
    "KafkaSink.cluster": "localhost:9092",
    "KafkaSink.ledger": "ledger",
    "PostgresSink.server": "",
    "PostgresSink.table": "table",
    "PostgresSink.ledger": "ledger",
    "PostgresTable.name": "table",
    "GlueCatalog.client": MemoryMetastore(),  # has methods of the same names, and no region
}


@dataclass(frozen=True, kw_only=True)
class Call:
    """One parameter of something public. ``give`` calls it with a value for that parameter.

    ``required`` are arguments that the call needs. That of the parameter is among them if one is known.
    """

    name: str
    function: Callable[..., Any]
    parameter: inspect.Parameter
    required: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.name}({self.parameter.name})"

    def give(self, value: Any) -> None:
        """Call it. Who takes the value may say later that it is none."""
        kwargs = dict(self.required)
        match self.parameter.kind:
            case inspect.Parameter.VAR_POSITIONAL:
                result = self.function(*kwargs.values(), value)
            case inspect.Parameter.VAR_KEYWORD:
                result = self.function(**kwargs, x=value)
            case _:
                result = self.function(**(kwargs | {self.parameter.name: value}))
        repr(result)
        use(result)


def use(result: object) -> None:
    """Write with what was made: a value that is taken must be one that can be used, or be refused."""
    if isinstance(result, StreamingQuery):
        result.stop()
    builders = (make(result) for kind, make in _USES.items() if isinstance(result, kind))
    for builder in builders:
        _write(builder)


def _lines() -> FileSinkBuilder:
    return FileSink.for_row_format("base", Encoder.simple_string_encoder())


def _files(factory: BulkWriterFactory) -> FileSinkBuilder:
    return FileSink.for_bulk_format("base", factory)


#: What users make, and a sink that writes with it.
_USES: Mapping[type, Callable[[Any], FileSinkBuilder]] = {
    FileSinkBuilder: lambda builder: builder,
    Encoder: lambda encoder: FileSink.for_row_format("base", encoder),
    BulkWriterFactory: _files,
    ParquetLayout: lambda layout: _files(ParquetWriterFactory(layout=layout)),
    ParquetEncryption: lambda encryption: _files(ParquetWriterFactory(encryption=encryption)),
    OrcIndexes: lambda indexes: _files(OrcBulkWriterFactory(indexes=indexes)),
    BucketAssigner: lambda assigner: _lines().with_bucket_assigner(assigner),
    RollingPolicy: lambda policy: _lines().with_rolling_policy(policy),
    OutputFileConfig: lambda config: _lines().with_output_file_config(config),
    DeadLetters: lambda letters: _lines().on_bad_record(letters),
    PartitionCommit: lambda commit: _lines().with_partition_commit(commit),
    PartitionPolicy: lambda policy: _lines().with_partition_commit(PartitionCommit(policies=[policy])),
    FileCompactStrategy: lambda strategy: _lines().enable_compact(
        strategy, FileCompactor.concat_file_compactor()
    ),
    FileCompactor: lambda compactor: _lines().enable_compact(FileCompactStrategy(checkpoints=1), compactor),
}


def _write(builder: FileSinkBuilder) -> None:
    """One record of text; a stream of one batch that ends."""
    builder.build()
    tiers = builder.tiers()
    schema = pa.schema([("value", pa.string())])
    tiers.check_schema(schema)
    tiers.projection(schema)
    world = World(plan=tiers.plan, compaction=tiers.compaction, partition_commit=builder.partition_commit)
    driver = world.driver()
    driver.run(micro_batch(0), world.job(pa.record_batch({"value": ["x"]})))
    driver.finish()


def calls(good: Mapping[str, Any], instances: Mapping[str, Any]) -> Iterator[Call]:
    """Every parameter of every public function, constructor and method.

    Args:
        good: values of parameters, as ``_GOOD`` has them.
        instances: whose methods users call, by name of the class; those of other classes the sink calls.
    """
    for module in (filesink, compaction):  # what is in ``formats`` is in ``filesink``
        for name, function in _functions(module, instances):
            yield from _calls(name, function, {**_GOOD, **good})


def _functions(module: ModuleType, instances: Mapping[str, Any]) -> Iterator[tuple[str, Callable[..., Any]]]:
    also = ["open"] if module is filesink else []  # which ``import *`` must not bring
    for name in [*module.__all__, *also]:
        public = getattr(module, name)
        if public in _MADE_HERE:
            continue
        if not inspect.isclass(public):
            yield name, public
        elif not issubclass(public, Exception | Enum):
            is_made = public not in {filesink.FileSinkBuilder, filesink.FileSourceBuilder}  # by their methods
            if is_made and not inspect.isabstract(public) and not getattr(public, "_is_protocol", False):
                yield name, public
            yield from _methods(name, public, instances.get(name))


def _methods(name: str, kind: type, instance: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    for method in dir(kind):
        found = inspect.getattr_static(kind, method)
        if method.startswith("_"):
            continue
        if isinstance(found, staticmethod | classmethod):
            yield f"{name}.{method}", getattr(kind, method)
        elif inspect.isfunction(found) and instance is not None:
            yield f"{name}.{method}", getattr(instance, method)


def _calls(name: str, function: Callable[..., Any], good: Mapping[str, Any]) -> Iterator[Call]:
    parameters = inspect.signature(function).parameters.values()
    needed = {one.name for one in parameters if one.default is _NONE and one.kind not in _STARRED}
    known = {one: good[one] for one in needed & good.keys()}
    known |= {one.name: good[f"{name}.{one.name}"] for one in parameters if f"{name}.{one.name}" in good}
    for parameter in parameters:
        assert needed <= {*known, parameter.name}, f"{name} needs more than {known}"
        yield Call(name=name, function=function, parameter=parameter, required=known)


def refused(call: Call) -> bool:
    """Whether something is wrong with ``call`` although no value is."""
    has_good = call.parameter.default is not _NONE or call.parameter.name in call.required
    try:
        if has_good:
            use(call.function(**call.required))
    except TYPED:
        return True
    return False


def untyped(call: Call) -> dict[str, str]:
    """Wrong values, by their name, that ``call`` has answered with an error that is none of ours."""
    found = {}
    for name, value in WRONG.items():
        try:
            call.give(value)
        except TYPED:
            pass
        except Exception as error:  # noqa: BLE001 - what is looked for
            found[name] = f"{type(error).__name__}: {error}"[:200]
    return found
