"""What a job costs beside the same program by hand: a batch of made-up rows, queried, into Parquet.

python benchmarks/job_overhead.py --rows 5000000 --rounds 10
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
import uuid
from pathlib import Path

import filesink
from filesink.jobs import Jobs, RunOptions
from paired import Contender, compare
from sessions import start_spark

QUERY = "select id, id % 100 as k, name, length(name) as n from `source-1`"
JOB = """
env {{ parallelism = 2 }}
source {{ FakeSource {{ row.num = {rows}, schema {{ fields {{ id = bigint, name = string }} }} }} }}
transform {{ Sql {{ query = "{query}" }} }}
sink {{ LocalFile {{ path = "{path}", file_format_type = parquet }} }}
"""


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=10)
    given = parser.parse_args()
    spark = start_spark()
    frame = columns()
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        file = place / "job.conf"
        out = place / "out"

        def by_hand() -> float:
            begin = time.monotonic()
            session = spark.newSession()
            session.range(0, given.rows, 1, 2).selectExpr(*frame).createOrReplaceTempView("`source-1`")
            sink = filesink.FileSink.for_bulk_format(out, filesink.ParquetWriterFactory()).build()
            sink.write(session.sql(QUERY), txn_id=str(uuid.uuid4()))
            return ended(begin)

        def as_job() -> float:
            begin = time.monotonic()
            file.write_text(JOB.format(rows=given.rows, query=QUERY, path=out))
            info = Jobs(place / "jobs").run(file, options=RunOptions(say=lambda _: None))
            if info.state != "FINISHED":
                sys.exit(info.error)
            return ended(begin)

        def ended(begin: float) -> float:
            took = time.monotonic() - begin
            shutil.rmtree(out)
            return took

        compare(
            f"a job of {given.rows:,} rows, and the same by hand",
            baseline=Contender(name="by hand", measure=by_hand),
            ours=Contender(name="filesink run", measure=as_job),
            unit="s",
            rounds=given.rounds,
        )
    spark.stop()


def columns() -> list[str]:
    """The expressions by which ``FakeSource`` makes the columns up."""
    import pyarrow as pa

    from filesink.jobs.model.column_types import column_type
    from filesink.jobs.plugins.sources.fake_columns import Made

    schema = pa.schema([pa.field("id", column_type("bigint")), pa.field("name", column_type("string"))])
    return list(Made(text_length=5, bytes_length=5, array_size=5, map_size=5).columns(schema))


if __name__ == "__main__":
    main()
