"""What is told of a batch write that is complete: what it could not remove, and what is gone of it since."""

from __future__ import annotations

import logging

from filesink.errors import CleanupError
from filesink.file_sink.report import EpochReport
from filesink.naming import join
from filesink.storage.api import Store

log = logging.getLogger("filesink")


def not_removed(report: EpochReport) -> CleanupError:
    """The error for a write that is visible, as are files that it replaces."""
    shown = ", ".join(f"'{path}'" for path in report.not_removed[:3])
    return CleanupError(
        f"the write is complete, all of its {report.rows:,} rows are visible, and {len(report.not_removed)} "
        f"files that they replace could not be removed, such as {shown}: readers see old rows beside the new "
        "ones. The log has the reasons. Later overwrites try again; or remove them by hand. Do not repeat "
        "this write",
        code="NOT_REMOVED",
    )


def warn_of_gone(report: EpochReport, store: Store, *, txn_id: str | None, base_path: str) -> None:
    """Tell of files of an earlier write that are not there any more; a scheduler shows success."""
    there = {
        join(bucket, entry.name)
        for bucket in {file.bucket for file in report.files}
        for entry in store.list(bucket)
    }
    gone = [file.path for file in report.files if file.path not in there]
    if gone:
        log.warning(
            "sink %s: txn_id %r was written before, and %d of its %d files are gone since, such as '%s': "
            "overwritten, merged, or removed by hand. Nothing was written. If the rows are missed, write "
            "them with another txn_id",
            base_path, txn_id, len(gone), len(report.files), gone[0],
        )  # fmt: skip
