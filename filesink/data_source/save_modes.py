"""What an overwrite through the data source replaces if its options do not say.

Then the session's setting counts, as for Spark's own formats. Only tasks can see it: on the driver a data
source has no session. So each task reports the setting that it sees, and commit follows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

from filesink.errors import ConfigError
from filesink.save_mode import SaveMode

if TYPE_CHECKING:
    from pyspark import TaskContext

    from filesink.data_source.task_message import Report

_SETTING = "spark.sql.sources.partitionOverwriteMode"


class ModeOf(Enum):
    """Who says what an overwrite replaces."""

    OPTIONS = "options"
    SESSION = "session"


def session_mode(context: TaskContext) -> SaveMode:
    """The mode of an overwrite in the session of a task, which knows the setting where it was set."""
    is_dynamic = str(context.getLocalProperty(_SETTING)).lower() == "dynamic"
    return SaveMode.OVERWRITE_PARTITIONS if is_dynamic else SaveMode.OVERWRITE


def reported_mode(reports: Sequence[Report]) -> SaveMode:
    """What all tasks have seen.

    Raises:
        ConfigError: ``OVERWRITE_MODE``; there are none, or they have seen different things.
    """
    modes = {report.mode for report in reports}
    if len(modes) != 1:
        raise ConfigError(
            f"it is not known what this overwrite replaces: {len(reports)} tasks have seen {len(modes)} "
            f"values of '{_SETTING}'. Nothing was replaced; give option 'partitionOverwriteMode', 'static' "
            "or 'dynamic'",
            code="OVERWRITE_MODE",
        )
    return SaveMode(modes.pop())
