"""Lines of text, 766 MB, against Flink's own FileSink driven from Python, with and without compaction.

And against Spark's own writer, which never lets a line out of the JVM either.

Both read the same text files and write every line, on two cores. In streams Flink takes a checkpoint
each second and rolls its files there, which makes five or six commits; ours makes six, as a stream of
micro-batches of four files. As a batch neither does: Flink runs in its batch mode, ours as one epoch.
Flink's job is timed by itself, without the start of its cluster; ours from ``start`` to the end of the
query.
Flink's sources and sinks run in its JVM: no line crosses to Python there, and each does in ours.

Flink needs versions of its own of nearly everything, so it gets an environment of its own, made once.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from compaction import FileCompactor, FileCompactStrategy
from environments import environment, own_packages_only
from filesink import BucketAssigner, FileSink, FileSinkBuilder, RollingPolicy
from formats import Encoder
from paired import Contender, compare, options, seconds
from sessions import start_spark

FLINK = "apache-flink>=2.2,<3"
FILES = 24
FILES_OF_A_MICRO_BATCH = 4
CHECKPOINT_MS = 1000
_PROGRAM = Path(__file__).with_name("flink_sink.py")


def main() -> None:
    """Make environment and lines once, then compare plain and compacted."""
    arguments = _arguments()
    python = environment(arguments.cache / "pyflink", FLINK)
    source = make_lines(arguments.cache, parts=arguments.files)
    expected = sum(file.stat().st_size for file in source.iterdir())
    out = arguments.cache / "flink-out"
    spark = start_spark()
    with flink(python, source) as run_flink:
        for kind, title in {"plain": "a stream", "compacted": "a stream, compacted"}.items():
            check = partial(checked, out=out, expected=expected)
            ours = partial(write_stream, spark, source, out, compacts=kind == "compacted")
            compare(
                f"lines of text as {title}, {expected / 1e6:.0f} MB",
                baseline=Contender(name="Flink", measure=partial(check, partial(run_flink, kind, out))),
                ours=Contender(name="filesink", measure=partial(check, ours)),
                unit="seconds",
                rounds=arguments.rounds,
            )
        for peer, title, theirs in (
            ("Flink", "a batch", partial(run_flink, "batch", out)),
            ("df.write.text", "a batch of Spark", partial(write_by_spark, spark, source, out)),
        ):
            compare(
                f"lines of text as {title}, {expected / 1e6:.0f} MB",
                baseline=Contender(name=peer, measure=partial(check, theirs)),
                ours=Contender(
                    name="filesink", measure=partial(check, partial(write_batch, spark, source, out))
                ),
                unit="seconds",
                rounds=arguments.rounds,
            )
    spark.stop()


def make_lines(cache: Path, *, parts: int) -> Path:
    """The text files of lineitem, made with tpchgen-cli if they are not there yet."""
    source = cache / f"tpch-lines-{parts}"
    if not source.is_dir():
        unfinished = cache / "tpch-lines.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        tool = Path(sys.executable).with_name("tpchgen-cli")
        options = ["--scale-factor", "1", "--tables", "lineitem", "--parts", str(FILES), "--quiet"]
        subprocess.run([tool, "csv", *options, "--output-dir", unfinished], check=True)
        (unfinished / "chosen").mkdir()
        for file in sorted((unfinished / "lineitem").iterdir())[:parts]:
            file.rename(unfinished / "chosen" / file.name)
        (unfinished / "chosen").rename(source)
        shutil.rmtree(unfinished)
    return source


@contextmanager
def flink(python: Path, source: Path) -> Iterator[Callable[[str, Path], float]]:
    """A process of Flink; the function runs one job in it."""
    command = [python, _PROGRAM, str(source), str(CHECKPOINT_MS)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=own_packages_only()
    )
    assert process.stdin is not None  # noqa: S101 - pipes, as asked for above
    assert process.stdout is not None  # noqa: S101

    def run(kind: str, out: Path) -> float:
        process.stdin.write(f"{kind} {out}\n")
        process.stdin.flush()
        for line in process.stdout:
            if line.startswith("seconds "):
                return float(line.split()[1])
        raise SystemExit("Flink has ended before its job; its own messages are above")

    try:
        yield run
    finally:
        process.stdin.close()
        process.wait(60)


def write_stream(spark: SparkSession, source: Path, out: Path, *, compacts: bool) -> float:
    """Ours: one query over all of the files."""
    lines = spark.readStream.option("maxFilesPerTrigger", FILES_OF_A_MICRO_BATCH).text(str(source))
    sink = _builder(out)
    if compacts:
        strategy = FileCompactStrategy(size_threshold="128MiB", checkpoints=5)
        sink = sink.enable_compact(strategy, FileCompactor.concat_file_compactor())
    checkpoint = out.with_name("flink-checkpoint")
    shutil.rmtree(checkpoint, ignore_errors=True)  # of a run that failed: it would have nothing to do
    built = sink.build()

    def run() -> None:
        query = built.start(lines, checkpoint_location=str(checkpoint), available_now=True)
        query.awaitTermination()

    taken = seconds(run)
    shutil.rmtree(checkpoint)
    return taken


def write_batch(spark: SparkSession, source: Path, out: Path) -> float:
    """Ours: all of the files as one epoch."""
    lines: DataFrame = spark.read.text(str(source))
    return seconds(lambda: _builder(out).build().write(lines))


def write_by_spark(spark: SparkSession, source: Path, out: Path) -> float:
    """Spark's own writer, which syncs nothing."""
    return seconds(lambda: spark.read.text(str(source)).write.text(str(out)))


def checked(run: Callable[[], float], *, out: Path, expected: int) -> float:
    """What ``run`` took; every byte must have been written, under names that readers take."""
    shutil.rmtree(out, ignore_errors=True)
    taken = run()
    found = sum(file.stat().st_size for file in out.rglob("*") if file.is_file() and _is_data(file, out))
    if found != expected:
        raise SystemExit(f"{out} holds {found:,} bytes instead of {expected:,}: nothing was measured")
    shutil.rmtree(out)
    return taken


def _is_data(file: Path, out: Path) -> bool:
    return not any(part[0] in "._" for part in file.relative_to(out).parts)


def _builder(out: Path) -> FileSinkBuilder:
    sink = FileSink.for_row_format(str(out), Encoder.simple_string_encoder())
    sink = sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    return sink.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())


def _arguments() -> argparse.Namespace:
    parser = options("Lines of text against Flink's FileSink", rounds=3)
    parser.add_argument("--files", type=int, default=FILES, help=f"of {FILES}, to write less")
    return parser.parse_args()


if __name__ == "__main__":
    main()
