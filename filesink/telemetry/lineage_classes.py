"""Classes of ``openlineage-python``, by short names. Imported only where that is installed."""

from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import OutputDatasetFacet as OutputFacet
from openlineage.client.facet_v2 import RunFacet
from openlineage.client.generated.error_message_run import ErrorMessageRunFacet as ErrorMessage
from openlineage.client.generated.job_type_job import JobTypeJobFacet as JobType
from openlineage.client.generated.output_statistics_output_dataset import (
    OutputStatisticsOutputDatasetFacet as OutputStatistics,
)
from openlineage.client.generated.schema_dataset import SchemaDatasetFacet as Schema
from openlineage.client.generated.schema_dataset import SchemaDatasetFacetFields as Field

__all__ = [
    "ErrorMessage",
    "Field",
    "Job",
    "JobType",
    "OpenLineageClient",
    "OutputDataset",
    "OutputFacet",
    "OutputStatistics",
    "Run",
    "RunEvent",
    "RunFacet",
    "RunState",
    "Schema",
]
