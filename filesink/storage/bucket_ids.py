"""Which bucket ids can be directories that every reader looks into. Pure.

Rules: an id is looked at once per batch, however many records have it. What cannot be a directory is refused,
never rewritten, and why is said without the id: it is made of values of records. ``docs/part-files.md``
has a table of what readers do; ``tests/test_readers.py`` asks them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from filesink.errors import BucketError
from filesink.naming import MAX_NAME_BYTES, UNFINISHED_COPY

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ILLEGAL = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]")
_MOST_BYTES = 3072  # of the 4,095 that a reader can open; the others are for base path and name
_MOST_LEVELS = 256  # Spark's listing ends in a stack overflow beyond some 800
_MARK = "\0"  # begins what an assigner gives for values that have no directory; it is in no path


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why an id cannot be a directory.

    Attributes:
        code: of the ``BucketError``.
        why: the rest of a sentence about what the id is made of.
        level: which component it is, from 0; ``None`` for the id as a whole.
    """

    code: str
    why: str
    level: int | None = None


_NULL: Final = Refusal(code="NULL", why="is null")
_NO_DIRECTORY: Final = (
    Refusal(code="ILLEGAL_CHAR", why="is not valid text, or holds NUL or a lone surrogate"),
    Refusal(code="NAN", why="is NaN, which equals nothing"),
    Refusal(code="RESERVED", why="is the text '__HIVE_DEFAULT_PARTITION__', which stands for null"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """The distinct ids of a batch.

    Attributes:
        names: the ids, each of which has a record. Those of ``refused`` mean nothing.
        codes: for each record the index of its id.
        refused: the indices of ids that cannot be directories, and why.
    """

    names: list[str]
    codes: NDArray[Any]
    refused: Mapping[int, Refusal]


def no_directory(code: str) -> str:
    """What stands in an id for a value that has no directory, for the reason that ``code`` names."""
    return f"{_MARK}{code}"


def check_bucket_id(bucket_id: str) -> str:
    """Return ``bucket_id`` if it can be used as a directory that every reader looks into.

    Raises:
        BucketError: ``ILLEGAL_CHAR``, ``RELATIVE``, ``HIDDEN``, ``EMPTY`` or ``TOO_LONG``.
    """
    found = refusal(bucket_id)
    if found is not None:
        raise BucketError(
            f"a bucket id {found.why}; correct the bucket assigner or the data", code=found.code
        )
    return bucket_id


def refusal(bucket_id: str) -> Refusal | None:
    """Why not every reader would look into directory ``bucket_id``; ``None`` if all do."""
    components = bucket_id.split("/") if bucket_id else []
    for level, component in enumerate(components):
        found = _refusal(component)
        if found is not None:
            return replace(found, level=level)
    if len(components) > _MOST_LEVELS:
        return Refusal(code="TOO_LONG", why=f"makes more than {_MOST_LEVELS} levels of directories")
    if len(bucket_id.encode()) > _MOST_BYTES:
        return Refusal(code="TOO_LONG", why=f"makes a path of more than {_MOST_BYTES} bytes")
    return None


def _refusal(component: str) -> Refusal | None:
    name, equals, value = component.partition("=")
    if component in {"", ".", ".."}:
        found = Refusal(code="RELATIVE", why="has an empty, '.' or '..' component")
    elif _ILLEGAL.search(component):
        found = _of_illegal(component)
    elif component[0] in "._":
        found = Refusal(code="HIDDEN", why="has a component beginning with '.' or '_', as readers skip")
    elif component.endswith(UNFINISHED_COPY):
        why = f"has a component ending with '{UNFINISHED_COPY}', which Spark and Hadoop skip"
        found = Refusal(code="HIDDEN", why=why)
    elif equals and not (name and value):
        why = "has a component with nothing before or after '=', where Spark refuses to read"
        found = Refusal(code="EMPTY", why=why)
    elif len(component.encode()) > MAX_NAME_BYTES:
        found = Refusal(code="TOO_LONG", why=f"makes a directory's name of more than {MAX_NAME_BYTES} bytes")
    else:
        return None
    return found


def _of_illegal(component: str) -> Refusal:
    code = component.rpartition(_MARK)[2]
    why = "holds a control character, a backslash or a lone surrogate, which not every reader can list"
    given = (known for known in _NO_DIRECTORY if known.code == code)
    return next(given, Refusal(code="ILLEGAL_CHAR", why=why))


def encode_ids(ids: pa.Array[Any], why_not: Callable[[str], Refusal | None] = refusal) -> Encoded:
    """The distinct ids that occur, and for each record the index of its id.

    Args:
        ids: strings, dictionary-encoded or not; null for a record that has no bucket.
        why_not: asked once for each distinct id.
    """
    encoded = ids if isinstance(ids, pa.DictionaryArray) else ids.dictionary_encode()
    values, none = encoded.dictionary, len(encoded.dictionary)
    indices = encoded.indices
    if none == 1 and not indices.null_count and len(indices):  # most sinks without buckets, and most days
        return _of_one(text_of(values)[0], len(indices), why_not)
    if indices.null_count:
        indices = indices.cast(pa.int64()).fill_null(none)
    codes = indices.to_numpy(zero_copy_only=False)
    occurring = np.flatnonzero(np.bincount(codes, minlength=none + 1))
    texts = text_of(values.take(occurring[occurring < none]))
    if none in occurring[-1:]:
        texts.append(None)
    # A dictionary may name unused values, or one value twice.
    names = {text: index for index, text in enumerate(dict.fromkeys(texts))}
    recode = np.zeros(none + 1, dtype=np.uint16 if len(names) <= 1 << 16 else np.int64)
    recode[occurring] = [names[text] for text in texts]
    refused = {index: _NULL if text is None else why_not(text) for text, index in names.items()}
    return Encoded(
        names=[text or "" for text in names],
        codes=recode[codes],
        refused={index: found for index, found in refused.items() if found is not None},
    )


def _of_one(text: str | None, length: int, why_not: Callable[[str], Refusal | None]) -> Encoded:
    found = _NULL if text is None else why_not(text)
    codes = np.zeros(length, dtype=np.uint16)
    return Encoded(names=[text or ""], codes=codes, refused={} if found is None else {0: found})


def text_of(values: pa.Array[Any]) -> list[str | None]:
    """The values as Python has them; bytes that are no UTF-8 become lone surrogates, which are refused."""
    try:
        return list(values.to_pylist())
    except UnicodeDecodeError:
        raw = values.cast(pa.large_binary()).to_pylist()
        return [None if value is None else value.decode(errors="surrogateescape") for value in raw]
