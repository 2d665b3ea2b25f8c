"""A hash of all rows of a DataFrame, whatever their order, taken while they pass.

Rows are hashed one by one (``xxhash64``), and what comes of it is added up in two ways that know no order:
as bits, and as numbers with a modulus, since equal rows vanish in pairs from the bits. The sums cannot
overflow in a way that fails a job in ANSI mode.
"""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812 - as all PySpark code does
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, UserDefinedType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger("filesink")

_MODULUS = 2**31 - 1


class Digested:
    """The digest of one DataFrame. Call ``observe``, run what it returns, then ``get``."""

    def __init__(self) -> None:
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
        places = [place for place, field in enumerate(df.schema.fields) if _can_be_hashed(field.dataType)]
        row = F.xxhash64(*(df[place] for place in places)) if places else F.lit(0).cast("bigint")
        bits = F.bit_xor(row).alias("bits")
        return df.observe(self._observation, bits, F.try_sum(F.pmod(row, F.lit(_MODULUS))).alias("sum"))

    def get(self) -> str:
        """The digest, of columns and rows. Waits for the end of the job."""
        found = self._observation.get
        text = f"{self._columns}\n{found.get('bits')}\n{found.get('sum')}"
        return "1-" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


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
