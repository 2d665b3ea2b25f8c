"""Options of ``spark.read`` and ``spark.readStream``: from Spark's texts to a plan.

Rules: as of ``filesink.data_source.options``. An option of writing is refused here, and one of reading there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Final, TypeVar

from filesink.data_source.format_options import FORMAT_OPTIONS, parse_format
from filesink.data_source.option_texts import Texts
from filesink.data_source.reading.option_table import READING
from filesink.durations import parse_duration_ms
from filesink.errors import ConfigError
from filesink.local_time import time_zone
from filesink.source.directories import Root, root_of
from filesink.source.discovery.after_reading import Action, AfterReading
from filesink.source.discovery.discovery import Pace
from filesink.source.enumerators import RecursiveFileEnumerator
from filesink.source.reading.plan import METADATA, BadRecords, Missing, Reading, Union
from filesink.source.sinks.following import OnOverwrite, Start
from filesink.source.source_plan import Following, SourcePlan, StateLocation
from filesink.source.splits import TASK_SIZE, SizeSplitAssigner
from filesink.source.streams import Limit
from formats.api import ReadableFormat
from formats.errors import FormatError
from formats.sizes import parse_size
from formats.text.encoder import TextEncoder
from formats.text.line_format import TextLineFormat

_OF_STREAMS = (
    "startingVersion", "startingTimestamp", "onOverwrite", "stateLocation", "monitorInterval", "minFileAge",
    "maxFilesPerTrigger", "maxBytesPerTrigger", "afterReading", "moveTo",
)  # fmt: skip
_OF_BATCHES = ("versionAsOf", "timestampAsOf")
#: Every option of reading, as users spell it.
NAMES: Final = (*(option.name for option in READING), *FORMAT_OPTIONS)
# What users of Spark, Auto Loader and Flink may try first.
_MEANT: Final = {
    "sep": "delimiter",
    "encoding": "charset",
    "cleansource": "afterReading",
    "sourcearchivedir": "moveTo",
    "ignorecorruptfiles": "mode",
    "rescueddatacolumn": "mode",
    "columnnameofcorruptrecord": "mode",
    "latestfirst": "maxFilesPerTrigger",
    "maxfileage": "modifiedAfter",
    "filenameonly": "stateLocation",
    "schemalocation": "stateLocation",
    "sourcemonitorinterval": "monitorInterval",
}
_OF_TABLES: Final = "owner"  # which Spark adds to the options of CREATE TABLE, and to no others
T = TypeVar("T")
_TRUTH: Final = {"true": True, "false": False}


def parse_read_options(options: Mapping[str, str]) -> SourcePlan:
    """The options of one read.

    Args:
        options: as Spark hands them over, the path included.

    Raises:
        ConfigError: ``PATH_REQUIRED``, ``UNKNOWN_OPTION``, ``CONFLICT``, ``BAD_VALUE`` …
    """
    given = Texts({name.lower(): text for name, text in options.items()})
    _check_names(given)
    return SourcePlan(
        roots=_roots(given),
        enumerator=RecursiveFileEnumerator(
            name_pattern=given.get("pathGlobFilter"),
            modified_after_ms=_time(given, "modifiedAfter"),
            modified_before_ms=_time(given, "modifiedBefore"),
            is_recursive=given.choice("recursiveFileLookup", _TRUTH, default="true"),
        ),
        assigner=_assigner(given),
        reading=_reading(given),
        following=_following(given),
    )


def check_batch(options: Mapping[str, str]) -> None:
    """Raise ``ConfigError`` (``CONFLICT``) for an option that means nothing where a batch is read."""
    _refuse(options, _OF_STREAMS, "is for streams, and this is a batch", "versionAsOf' chooses a version")


def check_stream(options: Mapping[str, str]) -> None:
    """Raise ``ConfigError`` (``CONFLICT``) for an option that means nothing where a stream is read."""
    _refuse(
        options, _OF_BATCHES, "is for batches, and this is a stream", "startingVersion' says where it begins"
    )


def _refuse(options: Mapping[str, str], names: Sequence[str], why: str, instead: str) -> None:
    found = next((name for name in names if name.lower() in {given.lower() for given in options}), None)
    if found is not None:
        raise ConfigError(f"option '{found}' {why}. Remove it; '{instead}", code="CONFLICT")


def _check_names(given: Texts) -> None:
    known = {name.lower(): name for name in NAMES}
    if _OF_TABLES in given.texts:
        raise ConfigError(
            "this is a table of a catalog: when rows are put into one, Spark hands on neither its options "
            "nor its location. In SQL, use CREATE TEMPORARY VIEW … USING filesink OPTIONS (path '…')",
            code="CATALOG_TABLE",
        )
    for name in given.texts:
        if name in known:
            continue
        plain = "".join(letter for letter in name if letter.isalnum())
        close = get_close_matches(plain, known, n=1)
        meant = _MEANT.get(plain) or (known[close[0]] if close else None)
        hint = f"did you mean '{meant}'?" if meant else f"known are {', '.join(NAMES)}"
        raise ConfigError(
            f"'{name}' is not an option of reading with format('filesink'); {hint}", code="UNKNOWN_OPTION"
        )


def _roots(given: Texts) -> tuple[Root, ...]:
    several, one = given.get("paths"), given.get("path")
    try:
        paths = json.loads(several) if several is not None else [one]
    except ValueError:
        paths = None
    if not isinstance(paths, list) or not paths or paths == [None]:
        raise ConfigError(
            "option 'path' is required and missing: call .load('/data/in'), or set .option('path', …)",
            code="PATH_REQUIRED",
        )
    return tuple(root_of(path, {}) for path in paths)


def _reading(given: Texts) -> Reading:
    metadata = tuple(name.strip() for name in given.get("metadataColumns", "").split(",") if name.strip())
    if not set(metadata) <= set(METADATA):
        raise given.bad("metadataColumns", f"some of {', '.join(METADATA)}, with commas between them")
    return Reading(
        code=_code(given),
        bad_records=given.choice(
            "mode", {kind.value.lower(): kind for kind in BadRecords}, default="failfast"
        ),
        missing=Missing.IGNORE if given.flag("ignoreMissingFiles") else Missing.FAIL,
        metadata=metadata,
        union=Union.ALL if given.flag("mergeSchema") else Union.NEWEST,
        at=_one_of_two(version=given.number("versionAsOf"), time=_moment(given, "timestampAsOf")),
    )


def _code(given: Texts) -> ReadableFormat | None:
    if given.get("format") is not None:
        code = parse_format(given)
        # Lines of others may end in other ways than those of ours.
        return TextLineFormat(charset=code.charset) if isinstance(code, TextEncoder) else code
    without = next((name for name in FORMAT_OPTIONS if given.get(name) is not None), None)
    if without is not None:
        raise ConfigError(
            f"option '{without}' belongs to a format: name it with option 'format', such as 'csv'",
            code="CONFLICT",
        )
    return None


def _following(given: Texts) -> Following:
    state = given.get("stateLocation")
    action = given.choice("afterReading", {kind.value: kind for kind in Action}, default="keep")
    return Following(
        state=None if state is None else StateLocation(path=state),
        pace=Pace(interval_ms=_duration(given, "monitorInterval"), min_age_ms=_duration(given, "minFileAge")),
        limit=Limit(files=_most(given, "maxFilesPerTrigger"), size=_size(given, "maxBytesPerTrigger")),
        after=AfterReading(action=action, move_to=given.get("moveTo", "")),
        start=_start(given),
        on_overwrite=given.choice("onOverwrite", {kind.value: kind for kind in OnOverwrite}, default="fail"),
    )


def _assigner(given: Texts) -> SizeSplitAssigner:
    return SizeSplitAssigner(task_size=_size(given, "splitSize") or TASK_SIZE)


def _duration(given: Texts, name: str) -> int:
    text = given.get(name)
    return 0 if text is None else parse_duration_ms(text, name=f"option '{name}'", least=0)


def _most(given: Texts, name: str) -> int | None:
    number = given.number(name)
    if number == 0:
        raise given.bad(name, "a whole number above 0")
    return number


def _size(given: Texts, name: str) -> int | None:
    size = given.size(name)
    if size is None:
        return None
    try:
        return parse_size(size, name=name)
    except FormatError as error:
        raise given.bad(name, "a number of bytes above 0, or text such as '1GiB'") from error


def _time(given: Texts, name: str) -> int | None:
    """Milliseconds since 1970 UTC."""
    found = _moment(given, name)
    return None if found is None else int(found.timestamp() * 1000)


def _moment(given: Texts, name: str) -> datetime | None:
    """A time by the clock of option ``timeZone``, else of UTC, unless it has an offset of its own."""
    text = given.get(name)
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise given.bad(name, "a time such as '2026-01-31T12:00:00'") from error
    if found.tzinfo is None:
        found = found.replace(tzinfo=time_zone(given.get("timeZone", "UTC")))
    return found


def _start(given: Texts) -> Start:
    is_latest = given.get("startingVersion", "").lower() == "latest"
    version = None if is_latest else given.number("startingVersion")
    time = _moment(given, "startingTimestamp")
    _one_of_two(version=given.get("startingVersion"), time=time)
    return Start(version=version, time=time, is_latest=is_latest)


def _one_of_two(*, version: T | None, time: datetime | None) -> T | datetime | None:
    if version is not None and time is not None:
        raise ConfigError(
            "a version and a time are two ways to say the same: give one of both options", code="CONFLICT"
        )
    return time if version is None else version
