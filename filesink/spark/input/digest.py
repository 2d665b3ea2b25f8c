"""A hash of all rows of a DataFrame, whatever their order, taken while they pass.

Rows are hashed one by one (``xxhash64``), and what comes of it is added up in two ways that know no order:
as bits, and as numbers with a modulus, since equal rows vanish in pairs from the bits. The sums cannot
overflow in a way that fails a job in ANSI mode.

Spark's hash passes over nulls, and takes nested values for the row of their atoms. So every value is hashed
behind whether it is null, and every array behind its length. ``-0.0`` is ``0.0``, as it is for Spark, and one
NaN is another.

Behind the digest of the rows stands that of what else the call has asked for: the same rows with other
partitions to be emptied are another write.
"""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING

from pyspark.sql import Column, Observation
from pyspark.sql import functions as F  # noqa: N812 - as all PySpark code does
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType, UserDefinedType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger("filesink")

_MODULUS = 2**31 - 1


class Digested:
    """The digest of one DataFrame. Call ``observe``, run what it returns, then ``get``.

    Args:
        also: what else makes a write another one, as text; ``""`` for nothing.
    """

    def __init__(self, also: str = "") -> None:
        self._also = also
        self._observation = Observation()
        self._columns = ""

    def observe(self, df: DataFrame) -> DataFrame:
        """``df``, whose rows are hashed in whatever job reads it next."""
        self._observation = Observation()
        self._columns = df.schema.simpleString()
        left_out = [field.name for field in df.schema.fields if not _can_be_hashed(field.dataType)]
        if left_out:
            log.warning(
                "columns %s have types that Spark cannot hash: a repeated txn_id is compared without them",
                ", ".join(map(repr, left_out)),
            )
        pieces = [
            piece
            for place, field in enumerate(df.schema.fields)
            for piece in _pieces(_with_numbers(df[place], field.dataType), field.dataType)
        ]
        row = F.xxhash64(*pieces) if pieces else F.lit(0).cast("bigint")
        bits = F.bit_xor(row).alias("bits")
        return df.observe(self._observation, bits, F.try_sum(F.pmod(row, F.lit(_MODULUS))).alias("sum"))

    def get(self) -> str:
        """The digest of columns and rows, then that of ``also``. Waits for the end of the job."""
        found = self._observation.get
        text = f"{self._columns}\n{found.get('bits')}\n{found.get('sum')}"
        return f"2-{_hash(text)[:32]}-{_hash(self._also)[:16]}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _pieces(value: Column, kind: DataType) -> list[Column]:
    """What of a value is hashed, one after the other: no other value has the same pieces."""
    match kind:
        case StructType(fields=fields):
            within = [
                _pieces(value.getField(f"_{place}"), field.dataType) for place, field in enumerate(fields)
            ]
            return [value.isNull(), *(piece for pieces in within for piece in pieces)]
        case ArrayType(elementType=element):
            pieces = F.transform(value, lambda one: F.struct(*_pieces(one, element)))
            return [value.isNull(), F.array_size(value), pieces]
        case _:
            return [value.isNull(), *([value] if _can_be_hashed(kind) else [])]


def _with_numbers(value: Column, kind: DataType) -> Column:
    numbered = _numbered(kind)
    return value if numbered == kind else value.cast(numbered)


def _numbered(kind: DataType) -> DataType:
    """The same type with fields that are named by their places: names may differ in case only."""
    match kind:
        case StructType(fields=fields):
            numbered = enumerate(fields)
            return StructType([StructField(f"_{at}", _numbered(one.dataType)) for at, one in numbered])
        case ArrayType(elementType=element):
            return ArrayType(_numbered(element))
        case _:
            return kind


def _can_be_hashed(kind: DataType) -> bool:
    match kind:
        case StructType(fields=fields):
            return all(_can_be_hashed(field.dataType) for field in fields)
        case ArrayType(elementType=element):
            return _can_be_hashed(element)
        case MapType() | UserDefinedType():
            return False
        case _:
            return kind.typeName() not in {"variant", "geometry", "geography", "void"}
