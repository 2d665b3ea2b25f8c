"""What a batch write does with the files that are there already. Pure."""

from __future__ import annotations

from enum import Enum


class SaveMode(Enum):
    """The modes of ``FileSink.write``, named as users write them.

    ``APPEND`` leaves existing files alone; streams can only append. ``OVERWRITE`` replaces every
    data file below the base path, ``OVERWRITE_PARTITIONS`` those in the buckets that get data,
    ``ERROR_IF_DATA_EXISTS`` writes only if there is no data file yet.
    """

    APPEND = "append"
    OVERWRITE = "overwrite"
    OVERWRITE_PARTITIONS = "overwrite_partitions"
    ERROR_IF_DATA_EXISTS = "error_if_data_exists"
