"""Every option of reading with ``format("filesink")``: what it takes, its default, and what it means.

``python docs/site/tables.py`` writes the table of docs/reading.md from it. Options of a format are those of
writing.
"""

from __future__ import annotations

from typing import Final

from filesink.data_source.option_table import FLAG, Option

READING: Final = (
    Option("path", "path", "required", "what `load` is given"),
    Option("paths", "JSON list", "none", "several of them"),
    Option("format", "as in writing", "by names of files", "with the options of that format"),
    Option("recursiveFileLookup", FLAG, "`true`", "whether to look into directories below"),
    Option("pathGlobFilter", "pattern", "all files", "of names of files"),
    Option("modifiedAfter", "ISO time", "none", "which files"),
    Option("modifiedBefore", "ISO time", "none", "which files"),
    Option("timeZone", "zone", "`UTC`", "of such times without an offset"),
    Option("mode", "`FAILFAST`, `DROPMALFORMED`, `PERMISSIVE`", "`FAILFAST`", "what a bad record does"),
    Option(
        "ignoreMissingFiles",
        FLAG,
        "`false`",
        "passes over vanished files **and their rows**, even if a merge has moved them",
    ),
    Option("metadataColumns", "columns", "none", "some of `_file`, `_bucket`, `_version`"),
    Option("mergeSchema", FLAG, "`false`", "columns of all files, or of all sinks of the path"),
    Option("splitSize", "size", "`128MiB`", "bytes of a task"),
    Option("stateLocation", "path", "none", "stream of a directory: where it logs what it has read"),
    Option("monitorInterval", "duration", "`0 ms`", "stream: least time between two looks"),
    Option("minFileAge", "duration", "`0 ms`", "stream: leaves younger files for later"),
    Option("maxFilesPerTrigger", "number", "none", "stream: files of a micro-batch"),
    Option("maxBytesPerTrigger", "size", "none", "stream: bytes of a micro-batch"),
    Option("afterReading", "`keep`, `delete`, `move`", "`keep`", "stream: what becomes of a file"),
    Option("moveTo", "path", "none", "stream: where files are moved"),
    Option(
        "versionAsOf",
        "number",
        "the newest",
        "batch of a sink's directory; `SNAPSHOT_GONE` if a file was removed",
    ),
    Option("timestampAsOf", "ISO time", "now", "the same by time"),
    Option(
        "startingVersion",
        "number, `latest`",
        "what is there",
        "stream of a sink's directory: where it begins",
    ),
    Option("startingTimestamp", "ISO time", "what is there", "the same by time"),
    Option(
        "onOverwrite", "`fail`, `new_rows`", "`fail`", "stream of a sink's directory: what an overwrite does"
    ),
)
