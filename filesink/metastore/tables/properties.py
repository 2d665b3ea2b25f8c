"""Properties that a table is made with: text of a user's own, beside what metastores note themselves."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from filesink.arguments import instance_of
from filesink.errors import ConfigError

_LONGEST_NAME: Final = 256  # characters; Hive's own databases have no room for more
_LONGEST_VALUE: Final = 4_000
#: What would make another table of it, or is counted and noted by the metastore, Spark or the policy itself.
_TAKEN: Final = frozenset(
    {
        "column_stats_accurate", "external", "numfiles", "numrows", "rawdatasize", "totalsize",
        "transactional", "transactional_properties", "transient_lastddltime",
    }
)  # fmt: skip
_OF_SPARK: Final = "spark.sql."


def check_properties(given: Mapping[str, str] | None) -> Mapping[str, str]:
    """A copy of ``given``, if a table can have these.

    Raises:
        ConfigError: ``BAD_VALUE``; no text, too long, or a name that is not the user's to choose.
    """
    found = dict(instance_of({} if given is None else given, Mapping, name="properties"))
    for name, value in found.items():
        instance_of(name, str, name="the name of a property")
        instance_of(value, str, name=f"property {name[:80]!r}")
        if not name or len(name) > _LONGEST_NAME or len(value) > _LONGEST_VALUE:
            raise ConfigError(
                f"property {name[:80]!r}: a name has 1 to {_LONGEST_NAME} characters, and a value "
                f"{_LONGEST_VALUE:,} at most",
                code="BAD_VALUE",
            )
        if name.lower() in _TAKEN or name.lower().startswith(_OF_SPARK):
            raise ConfigError(
                f"property {name!r} is kept by the metastore, by Spark or by this sink, and would say "
                "something else of the table than they do; leave it out",
                code="BAD_VALUE",
            )
    return MappingProxyType(found)
