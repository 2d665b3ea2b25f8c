"""Runs in an environment with apache-flink: Flink's FileSink as PyFlink users write it.

python flink_sink.py SOURCE CHECKPOINT_MILLISECONDS

Reads commands from its input, one a line: ``plain PATH`` or ``compacted PATH``, which stream with
checkpoints, or ``batch PATH``, Flink's batch mode, which takes none. For each it copies the lines below
SOURCE to PATH and prints the seconds of the job, which Flink itself counts without the start of its
cluster. One process serves all rounds, so that its JVM is warm.
"""

from __future__ import annotations

import sys

from pyflink.common import Configuration, Encoder, WatermarkStrategy
from pyflink.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    FileSource,
    RollingPolicy,
    StreamFormat,
)


def main() -> None:
    """Serve until the input ends."""
    source, interval = sys.argv[1], int(sys.argv[2])
    for line in sys.stdin:
        kind, path = line.split()
        print(f"seconds {run(source, interval, path, kind)}", flush=True)


def run(source: str, interval: int, path: str, kind: str) -> float:
    """One job: text lines from files to files; a stream has a checkpoint each ``interval`` milliseconds."""
    settings = Configuration()
    settings.set_string("rest.bind-port", "0")
    environment = StreamExecutionEnvironment.get_execution_environment(settings)
    environment.set_parallelism(2)
    if kind == "batch":
        environment.set_runtime_mode(RuntimeExecutionMode.BATCH)
    else:
        environment.enable_checkpointing(interval)
    lines = FileSource.for_record_stream_format(StreamFormat.text_line_format(), source).build()
    sink = FileSink.for_row_format(path, Encoder.simple_string_encoder())
    sink = sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    sink = sink.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
    if kind == "compacted":
        strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(5)
        strategy = strategy.set_size_threshold(128 << 20).build()
        sink = sink.enable_compact(strategy, FileCompactor.concat_file_compactor())
    stream = environment.from_source(lines, WatermarkStrategy.no_watermarks(), "lines")
    stream.sink_to(sink.build()).uid("sink")  # a compacting sink must have one
    return environment.execute("lines").get_net_runtime() / 1000


if __name__ == "__main__":
    main()
