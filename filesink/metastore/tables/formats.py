"""What Hive calls the formats of files. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType

from filesink.metastore.api import StorageFormat, Table

_PROVIDER = "spark.sql.sources.provider"
_SCHEMA_OF_SPARK = "spark.sql.sources.schema"
_CSV_SERDE = "org.apache.hadoop.hive.serde2.OpenCSVSerde"
_QL = "org.apache.hadoop.hive.ql.io"
_TEXT = "org.apache.hadoop.mapred.TextInputFormat"
_TEXT_OUT = f"{_QL}.HiveIgnoreKeyTextOutputFormat"

#: By the word that ``CREATE TABLE … STORED AS`` has for it, in lower case.
HIVE_FORMATS: Mapping[str, StorageFormat] = MappingProxyType(
    {
        "parquet": StorageFormat(
            input_format=f"{_QL}.parquet.MapredParquetInputFormat",
            output_format=f"{_QL}.parquet.MapredParquetOutputFormat",
            serde=f"{_QL}.parquet.serde.ParquetHiveSerDe",
        ),
        "orc": StorageFormat(
            input_format=f"{_QL}.orc.OrcInputFormat",
            output_format=f"{_QL}.orc.OrcOutputFormat",
            serde=f"{_QL}.orc.OrcSerde",
        ),
        "avro": StorageFormat(
            input_format=f"{_QL}.avro.AvroContainerInputFormat",
            output_format=f"{_QL}.avro.AvroContainerOutputFormat",
            serde="org.apache.hadoop.hive.serde2.avro.AvroSerDe",
        ),
        "textfile": StorageFormat(
            input_format=_TEXT,
            output_format=_TEXT_OUT,
            serde="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
        ),
        "json": StorageFormat(
            input_format=_TEXT, output_format=_TEXT_OUT, serde="org.apache.hive.hcatalog.data.JsonSerDe"
        ),
    }
)

_BY_ENDING = MappingProxyType(
    {**{name: name for name in ("parquet", "orc", "avro", "json")}, "txt": "textfile"}
)


def hive_format_of(form: StorageFormat) -> str | None:
    """The word of ``HIVE_FORMATS`` for a table's classes; ``None`` for any other.

    The input format counts, too: that of a table of links, or of Hudi, stands before a serde of Parquet and
    finds none of our files.
    """
    classes = (form.serde, form.input_format)
    return next(
        (name for name, known in HIVE_FORMATS.items() if (known.serde, known.input_format) == classes), None
    )


def is_csv(form: StorageFormat) -> bool:
    """Whether a table's files are CSV as ``OpenCSVSerde`` reads it: one line per record, all values text."""
    return form.serde == _CSV_SERDE


def spark_provider(table: Table) -> str | None:
    """What follows ``USING`` in the statement that made a table of Spark's own; ``None`` for Hive's tables.

    Such a table is read by Spark alone, which keeps its columns in parameters that only Spark writes.
    """
    provider = table.parameters.get(_PROVIDER, "hive").lower()
    return None if provider == "hive" else provider


def names_of_spark(table: Table) -> dict[str, str]:
    """Names of columns and keys as Spark spells them, by their lower case; none for tables of Hive's.

    Spark writes its schema beside that of Hive; whole, or in parts if it is long.
    """
    parameters = table.parameters
    parts = range(int(parameters.get(f"{_SCHEMA_OF_SPARK}.numParts", "0")))
    text = "".join(parameters.get(f"{_SCHEMA_OF_SPARK}.part.{i}", "") for i in parts)
    schema = json.loads(parameters.get(_SCHEMA_OF_SPARK) or text or '{"fields": []}')
    return {field["name"].lower(): field["name"] for field in schema["fields"]}


def format_by_extension(extension: str) -> str | None:
    """What Hive calls files that end like this; the ending of a codec may come before or after."""
    endings = extension.split(".")
    return next((_BY_ENDING[ending] for ending in endings if ending in _BY_ENDING), None)
