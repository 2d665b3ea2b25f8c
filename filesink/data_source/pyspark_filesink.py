"""Found by Spark itself: ``format("filesink")`` needs no ``filesink.register``.

Before it looks for the first Python data source of a session, Spark imports every module on its path whose
name begins with ``pyspark_``, and takes its ``DefaultSource`` (``pyspark.sql.worker.lookup_data_sources``).
The wheel has this file at its top, since that is where Spark looks. If one such module raises, Spark finds
none of them; so this one says what is wrong when it is used.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSource

try:
    from filesink.data_source.source import FileSinkDataSource as DefaultSource
except Exception as failed:  # noqa: BLE001 - whatever it is: it is raised as soon as this source is used
    _WHY = f"{type(failed).__name__}: {failed}"

    class DefaultSource(DataSource):  # type: ignore[no-redef]
        """Says why filesink cannot be imported."""

        def __init__(self, options: dict[str, str]) -> None:
            super().__init__(options)
            raise ImportError(f"filesink cannot be imported by the Python that Spark runs: {_WHY}")

        @classmethod
        def name(cls) -> str:
            """What users give to ``format(…)``."""
            return "filesink"
