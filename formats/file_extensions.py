"""What a file's extension tells readers, and whether the file holds that.

Rules:
1. Readers choose a codec by the last ending: Spark and Hadoop, DuckDB and pandas take ``x.json`` for plain
   and ``x.gz`` for gzip, whatever is in it. So a compressed file ends as its codec does, and no other.
2. Some choose a format by the ending before that: so it must not be that of another format.
3. What a user's own format holds is known by its ``extension`` alone; without one, anything goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from formats.api import Format

#: How compressed files end, by codec.
OF_CODEC: Final = {
    "gzip": ".gz", "zstd": ".zst", "lz4": ".lz4", "bzip2": ".bz2", "xz": ".xz", "snappy": ".sz"
}  # fmt: skip
# Endings by which one reader or another expands a file.
_COMPRESSED: Final = frozenset(OF_CODEC.values()) | {
    *(".gzip", ".gzp", ".zstd", ".bz", ".lzma", ".snappy", ".deflate", ".br", ".lzo", ".z", ".zip", ".tgz")
}
_SPELLINGS: Final = {
    ".parquet": {".parquet", ".parq", ".pq"},
    ".orc": {".orc"},
    ".avro": {".avro"},
    ".arrow": {".arrow", ".feather", ".ipc"},
    ".seq": {".seq"},
    ".xlsx": {".xlsx", ".xls"},
    ".json": {".json", ".jsonl", ".ndjson"},
    ".csv": {".csv", ".tsv"},
    ".xml": {".xml"},
}
_LINES: Final = (".json", ".csv", ".xml")  # text may hold any of them


def contradiction(code: Format, suffix: str) -> str | None:
    """Why readers would take files of ``code`` whose names end with ``suffix`` for something else.

    Args:
        code: the format.
        suffix: from its first dot; ``""`` for none.

    Returns:
        The reason, and what to use; ``None`` if nothing speaks against it.
    """
    own = code.extension
    is_known = bool(own) or code.writes_text
    if not is_known or suffix == own:
        return None
    rest, codec = _without_codec(own)
    given_rest, given_codec = _without_codec(suffix)
    if given_codec != codec:
        if codec:
            return f"readers know compressed files by the ending '{codec}': use '{given_rest + codec}'"
        return f"readers would expand what ends with '{given_codec}', and these are not compressed as a whole"
    stranger = _format_of(given_rest)
    if stranger is None or not _is_other(stranger, rest):
        return None
    return f"readers would take them for {stranger[1:]}, and the ending of the format is '{own}'"


def _without_codec(suffix: str) -> tuple[str, str]:
    """What stands before the ending of a codec, and that ending, if there is one."""
    start = suffix.rfind(".")
    last = suffix[start:] if start >= 0 else ""
    return (suffix[:start], last) if last.lower() in _COMPRESSED else (suffix, "")


def _format_of(suffix: str) -> str | None:
    last = suffix[suffix.rfind(".") :].lower() if "." in suffix else ""
    return next((own for own, spelled in _SPELLINGS.items() if last in spelled), None)


def _is_other(found: str, own: str) -> bool:
    """Whether files of the extension ``own`` are surely none of ``found``."""
    if not own:  # text, which may hold lines of any format
        return found not in _LINES
    return own in _SPELLINGS and found != own
