"""Names of files and directories: how they are made and how our own are recognised. Pure.

    finished   <prefix>-<part id>-<counter><suffix>
    hidden     .<finished name>.inprogress.<sink tag>.<slot>.<attempt>
    upload     .<finished name>.upload.<upload id>
    ledger     _filesink/<sink id>/

A part id is a UUID of version 8 (RFC 9562): eight digits of sink tag, seven of slot, the rest random.
So a file of ours is known by its name alone, and so is a multipart upload, of which an object store
lists no more than the name it will have; in our listings it goes by a hidden name that is no file.
A hidden name never ends like a part file, because DuckDB, polars and fsspec globs do read
``.x.parquet``.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

from filesink.errors import ConfigError, SecurityError
from filesink.ports import Ids

LEDGER_ROOT = "_filesink"
DEAD_LETTERS = "_dead_letters"  # how the directory of records that could not be written begins
MAX_NAME_BYTES = 255  # NAME_MAX of every common file system; S3 keys are longer
UNFINISHED_COPY = "._COPYING_"  # how the names of what Hadoop is copying end: it and Spark skip them

_HIDDEN = re.compile(
    r"\.(?P<target>.+)\.inprogress\.(?P<tag>[0-9a-f]{8})\.(?P<slot>[0-9]{1,18})\.(?P<attempt>[0-9a-f-]{36})"
)
_UPLOAD = re.compile(r"\.(?P<target>.+)\.upload\.(?P<upload_id>[A-Za-z0-9_.~%-]+)")
_OF_PART_ID = re.compile(
    r"-(?P<tag>[0-9a-f]{8})-(?P<high>[0-9a-f]{4})-8(?P<low>[0-9a-f]{3})-[89ab][0-9a-f]{3}-[0-9a-f]{12}-[0-9]+"
)
_PART = re.compile(rf"(?P<prefix>[^._].*){_OF_PART_ID.pattern}(?P<suffix>(?:\..+)?)")
_LAST_SLOT = (1 << 28) - 1  # in a part id; stands for all that follow, too
_UNSAFE = re.compile("[\x00-\x1f\x7f/\\\\\ud800-\udfff]")  # lone surrogates are no names
# Of a name that is no UTF-8, Python makes surrogates from U+DC80 to U+DCFF; no system has names with others.
_NO_NAME = re.compile("[\ud800-\udc7f\udd00-\udfff]")
_SHOWN = 120  # characters of a path in a message


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFileConfig:
    """What a user may choose of a part file's name: ``<prefix>-<part id>-<counter><suffix>``.

    Args:
        part_prefix: beginning of the name; must not begin with ``.`` or ``_``, which readers skip.
        part_suffix: end of the name; ``None`` takes the extension of the format, ``""`` no ending; must
            not end with ``._COPYING_``, which Spark skips.
    """

    part_prefix: str = "part"
    part_suffix: str | None = None

    def __post_init__(self) -> None:
        suffix = "" if self.part_suffix is None else self.part_suffix
        given: tuple[object, ...] = (self.part_prefix, suffix)
        if not all(isinstance(text, str) for text in given):
            raise ConfigError("part_prefix and part_suffix must be text", code="BAD_VALUE")
        if not self.part_prefix or self.part_prefix[0] in "._" or _UNSAFE.search(self.part_prefix):
            raise ConfigError(
                f"part_prefix {self.part_prefix!r} must begin with neither '.' nor '_' (readers skip such "
                "files), must not be empty and must not hold '/', '\\' or control characters",
                code="BAD_VALUE",
            )
        if (suffix and suffix[0] != ".") or _UNSAFE.search(suffix) or ".inprogress." in suffix:
            raise ConfigError(
                f"part_suffix {suffix!r} must be empty or begin with '.', as in '.parquet', and must hold "
                "neither '.inprogress.' nor '/', '\\' or control characters",
                code="BAD_VALUE",
            )
        if suffix.endswith(UNFINISHED_COPY):
            raise ConfigError(
                f"part_suffix {suffix!r} must not end with '{UNFINISHED_COPY}': Spark and Hadoop take such "
                "files for unfinished copies and skip them; choose another, as '.parquet'",
                code="BAD_VALUE",
            )
        if len(self.part_prefix.encode()) + len(suffix.encode()) > 100:
            raise ConfigError(
                "part_prefix and part_suffix together exceed 100 bytes; shorten them", code="TOO_LONG"
            )

    def suffix(self, extension: str) -> str:
        """How finished names end; ``extension`` is the format's own."""
        return extension if self.part_suffix is None else self.part_suffix

    def name_with(self, part_id: str, counter: int, suffix: str) -> str:
        """The finished name of one part; its ending, see ``suffix``, was chosen when it was begun."""
        return f"{self.part_prefix}-{part_id}-{counter}{suffix}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenName:
    """What a hidden file's name tells: whose it is and for which slot of the ledger it was made."""

    target: str
    tag: str
    slot: int
    attempt: str

    def __str__(self) -> str:
        return f".{self.target}.inprogress.{self.tag}.{self.slot}.{self.attempt}"


def parse_hidden(name: str) -> HiddenName | None:
    """The parts of a hidden file's name, or ``None`` for any other file."""
    found = _HIDDEN.fullmatch(name)
    if found is None:
        return None
    return HiddenName(
        target=found["target"], tag=found["tag"], slot=int(found["slot"]), attempt=found["attempt"]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadName:
    """What the name tells of an upload that becomes a part file of ours; see ``HiddenName``."""

    target: str
    upload_id: str
    tag: str
    slot: int


def parse_upload(name: str) -> tuple[str, str] | None:
    """Finished name and upload id of the hidden name of any upload, else ``None``."""
    found = None if parse_hidden(name) else _UPLOAD.fullmatch(name)  # a file's prefix may hold '.upload.'
    return None if found is None else (found["target"], unquote(found["upload_id"]))


def upload_path(target: str, upload_id: str) -> str:
    """The hidden path that stands for the upload ``upload_id`` to ``target``."""
    return join(parent(target), f".{target.rpartition('/')[2]}.upload.{quote(upload_id, safe='')}")


def parse_ours(name: str) -> HiddenName | UploadName | None:
    """Whose hidden file or upload this is, and for which slot; ``None`` if it is not one of ours."""
    upload = parse_upload(name)
    if upload is None:
        return parse_hidden(name)
    target, upload_id = upload
    hidden = parse_hidden(target)  # a held file of several parts, before it is complete
    if hidden is not None:
        return UploadName(target=target, upload_id=upload_id, tag=hidden.tag, slot=hidden.slot)
    found = list(_OF_PART_ID.finditer(target))
    if len(found) != 1:  # a prefix that looks like a part id: not known whose it is
        return None
    slot = int(found[0]["high"] + found[0]["low"], 16)
    if slot == _LAST_SLOT:
        return None
    return UploadName(target=target, upload_id=upload_id, tag=found[0]["tag"], slot=slot)


def slot_of(path: str) -> int | None:
    """The slot that a hidden file or upload was made for; ``None`` if its name is not ours."""
    name = parse_ours(name_of(path))
    return None if name is None else name.slot


def sink_tag(sink_id: str) -> str:
    """Eight hexadecimal digits that stand for a sink in names."""
    return hashlib.sha256(sink_id.encode()).hexdigest()[:8]


def new_part_id(tag: str, slot: int, ids: Ids) -> str:
    """A part id that no other part will ever have; tells sink and slot, see the rules above."""
    shown = f"{min(slot, _LAST_SLOT):07x}"
    return f"{tag}-{shown[:4]}-8{shown[4:]}{ids.uuid()[18:]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartName:
    """What a finished file's name tells: whose it is and the slot of the ledger that made it visible."""

    prefix: str
    tag: str
    slot: int
    suffix: str


def parse_part(name: str) -> PartName | None:
    """The parts of a finished file's name, or ``None`` for any other file."""
    found = _PART.fullmatch(name)
    if found is None:
        return None
    slot = int(found["high"] + found["low"], 16)
    return PartName(prefix=found["prefix"], tag=found["tag"], slot=slot, suffix=found["suffix"])


def slots_of_part(name: str, tag: str) -> list[int]:
    """The slots in part ids of ``name`` with ``tag``: one, unless prefix or suffix look like part ids."""
    found = _OF_PART_ID.finditer(name)
    return [int(match["high"] + match["low"], 16) for match in found if match["tag"] == tag]


def join(directory: str, name: str) -> str:
    """A path below the base from a bucket id (``""`` is the base path) and a name."""
    return f"{directory}/{name}" if directory else name


def is_data(bucket: str) -> bool:
    """Whether readers of the base path look into the bucket; dead letters are in others."""
    return not bucket.startswith(DEAD_LETTERS)


def parent(path: str) -> str:
    """The directory of a path below the base; ``""`` is the base path."""
    return path.rpartition("/")[0]


def name_of(path: str) -> str:
    """The last name of a path, of files mostly."""
    return path.rpartition("/")[2]


def check_relative(path: str) -> str:
    """Return ``path`` if it stays below the base, else raise ``SecurityError``.

    Guards whatever comes from durable state or from another process.
    """
    parts = path.split("/")
    is_no_path = not path or "\0" in path or (not path.isascii() and _NO_NAME.search(path))
    if is_no_path or any(part in {"", ".", ".."} for part in parts):
        raise SecurityError(f"path '{shown(path)}' leaves the base directory; refused", code="ESCAPE")
    return path


def shown(path: str) -> str:
    """``path`` for a message, whatever is in it: in one line of ASCII, and cut if it is long."""
    escaped = path[:_SHOWN].encode("unicode_escape").decode()
    is_cut = len(path) > _SHOWN or len(escaped) > _SHOWN
    return f"{escaped[:_SHOWN]}..." if is_cut else escaped
