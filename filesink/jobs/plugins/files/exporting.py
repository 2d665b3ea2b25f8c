"""What a sink of files keeps beside them for readers of tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator

import filesink
from filesink.jobs.model.options import Options, option, several
from filesink.jobs.model.secret import SecretSettings
from filesink.jobs.plugins.api import Run
from filesink.jobs.plugins.sources.spark import settings_of

_EXPORTERS: Mapping[str, Callable[[], filesink.Exporter]] = {
    "delta": filesink.DeltaExport,
    "manifest": filesink.ManifestExport,
    "spark-metadata": filesink.SparkMetadataExport,
}
ExportNames = Annotated[tuple[Literal["delta", "manifest", "spark-metadata"], ...], BeforeValidator(several)]


class IcebergTable(Options):
    """A table of Iceberg over the files of a sink."""

    table: str = option(doc="namespace.table; ${table_name} is the name of the table. Made if missing.")
    catalog: SecretSettings = option(doc="Of pyiceberg: name, type, uri, …")


def exporters(
    names: tuple[str, ...], iceberg: IcebergTable | None, run: Run, table: str
) -> Iterator[filesink.Exporter]:
    """What the options of a sink mean, for one of its tables."""
    for name in names:
        yield _EXPORTERS[name]()
    if iceberg is not None:
        catalog = settings_of(iceberg.catalog, run.reveal)
        yield filesink.IcebergExport(catalog, iceberg.table.replace("${table_name}", table))
