"""Which promotions of types readers of a format support, if fewer than the values would allow.

``evolution`` asks whether every old value is a value of the new type. A reader that uses the newest
schema for files of all epochs knows less: the bytes of an old file and what the format says about them.

Rules:
1. Avro: the promotions of its specification that Spark supports; its reader fails at the others. A reader
   takes the numbers of an old file for what the new schema says: those of a date for microseconds, those of
   a decimal for one with another scale, and nobody notices.
2. Parquet: the promotions that Spark supports; its readers refuse other files.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from formats.schemas import evolution

# Digits before the point that Spark wants of a decimal, by the bits that the file has for a whole number.
_WHOLE_DIGITS: Final = {32: 10, 64: 20}


def check_avro(old: pa.Schema, new: pa.Schema) -> None:
    """Raise unless readers of Avro, Spark's among them, resolve files of ``old`` with the schema of ``new``.

    Args:
        old: of the files, in the types that Avro has.
        new: the same of what is to come; ``evolution.check_continues`` has taken it.

    Raises:
        FormatError: kind ``"schema"``; names the column with its path.
    """
    evolution.check_types(old, new, fits=_avro_resolves)


def check_parquet(old: pa.Schema, new: pa.Schema) -> None:
    """Raise unless Spark reads Parquet files of ``old`` with the schema of ``new``.

    Args:
        old: of the files.
        new: of what is to come; ``evolution.check_continues`` has taken it.

    Raises:
        FormatError: kind ``"schema"``; names the column with its path.
    """
    evolution.check_types(old, new, fits=_parquet_reads)


def _avro_resolves(old: Any, new: Any) -> bool:
    # Everything else that has a number in the file has a meaning as well, which must stay. By the
    # specification int and long become float as well, and long double; not with Spark, nor does null grow.
    if pt.is_int32(old):
        return bool(old == new or pt.is_int64(new) or pt.is_float64(new))
    return bool(old == new or (pt.is_float32(old) and pt.is_float64(new)))


def _parquet_reads(old: Any, new: Any) -> bool:
    if pt.is_null(old):  # 32-bit numbers, all of them null
        number = pt.is_signed_integer(new) or pt.is_float64(new)
        return bool(number or pt.is_null(new) or pt.is_date32(new))
    if not pt.is_integer(old):
        return True
    stored = max(old.bit_width, 32)
    if pt.is_decimal(new):
        return bool(new.precision - new.scale >= _WHOLE_DIGITS[stored])
    return bool(not pt.is_floating(new) or pt.is_float64(new))
