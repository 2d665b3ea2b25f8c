"""SeaTunnel's expressions for names of files, as far as names stay unique for ever. Pure.

A finished name is ``<prefix>-<part id>-<counter><suffix>``; the part id stands for ``${transactionId}``.
So an expression chooses the prefix, and has to end with the id: without it the second write would
replace what readers have seen of the first.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final, NoReturn

from filesink.arguments import instance_of
from filesink.buckets.date_patterns import DatePattern
from filesink.errors import ConfigError
from filesink.local_time import LocalTime, time_zone

_VARIABLE: Final = re.compile(r"\$\{([^${}]*)\}")
_IDS: Final = frozenset({"transactionId", "uuid"})
_BEFORE_ID: Final = "-_."  # what may stand between prefix and id, where our names have "-"


def prefix_of(expression: str, *, time_format: str, now: LocalTime) -> str:
    """The prefix that ``expression`` means.

    Args:
        expression: text with ``${now}``, and ``${transactionId}`` or ``${uuid}`` at its end.
        time_format: Java's pattern of ``${now}``, which may also be named by this pattern itself.
        now: what ``${now}`` is.

    Raises:
        ConfigError: ``FILE_NAME``; names would meet, or a variable is unknown. ``BAD_VALUE``; no pattern.
    """
    instance_of(expression, str, name="file_name_expression")
    moment = DatePattern(pattern=time_format).format(now)
    names = _VARIABLE.findall(expression)
    unknown = [name for name in names if name not in {*_IDS, "now", time_format}]
    if unknown:
        _refuse(expression, f"${{{unknown[0]}}} is none of ${{transactionId}}, ${{uuid}} and ${{now}}")
    ids = [name for name in names if name in _IDS]
    if len(ids) != 1 or not expression.endswith(f"${{{ids[0]}}}"):
        _refuse(
            expression,
            "it has to end with ${transactionId} or ${uuid}, once: a random id of each file, and a number, "
            "so that no write ever replaces a file that readers have seen. An exact name cannot be had",
        )
    text = expression.removesuffix(f"${{{ids[0]}}}").rstrip(_BEFORE_ID)
    prefix = _VARIABLE.sub(lambda _: moment, text)
    if "${" in prefix:
        _refuse(expression, "a variable is not closed")
    return prefix or "part"


def now_in(zone: str, now_ms: int) -> LocalTime:
    """What a clock of ``zone`` shows. Raises ``ConfigError`` (``TIME_ZONE``) for no such zone."""
    moment = datetime.fromtimestamp(now_ms // 1000, time_zone(zone))
    offset = moment.utcoffset() or timedelta()
    return LocalTime.of(now_ms // 1000 + int(offset.total_seconds()), now_ms % 1000 * 1_000_000)


def _refuse(expression: str, why: str) -> NoReturn:
    raise ConfigError(
        f"file_name_expression {expression[:120]!r}: {why}. Write it as 'sales_${{now}}-${{transactionId}}'",
        code="FILE_NAME",
    )
