"""Where each of many tables lies below one base path: a template with placeholders, and back. Pure.

    ${table_name}     the table; all of its name, if the template has no schema
    ${schema_name}    what stands before the first dot of the name

Rules:
1. No two tables share a directory: a level has one placeholder at most, and values are escaped as those of
   Hive's partitions are.
2. All tables are equally many levels deep, so none lies inside another.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from filesink.arguments import instance_of
from filesink.buckets.partition_paths import escape, unescape
from filesink.errors import ConfigError

TABLE: Final = "${table_name}"
SCHEMA: Final = "${schema_name}"
_PLACEHOLDER: Final = re.compile(r"\$\{([^}]*)\}")
_KNOWN: Final = (TABLE, SCHEMA)


@dataclass(frozen=True, slots=True)
class TablePath:
    """A template such as ``"${schema_name}/${table_name}"``.

    Raises:
        ConfigError: ``BAD_VALUE``; two tables could share a directory, or it is no relative path.
    """

    template: str = TABLE
    _levels: tuple[re.Pattern[str], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        instance_of(self.template, str, name="the path of tables")
        levels = self.template.split("/")
        found = [text for level in levels for text in _placeholders(level, of="the path of tables")]
        is_one_to_one = TABLE in found and all(len(_placeholders(one, of="")) <= 1 for one in levels)
        if not is_one_to_one or not all(level.strip(".") and level[0] not in "._" for level in levels):
            raise ConfigError(
                f"the path of tables must be relative, name {TABLE}, and have at most one placeholder a "
                f"level, so that no two tables share a directory; got {self.template[:80]!r}",
                code="BAD_VALUE",
            )
        object.__setattr__(self, "_levels", tuple(map(_pattern, levels)))

    @property
    def depth(self) -> int:
        """How many levels a table is below the base path."""
        return len(self._levels)

    def directory(self, name: str) -> str:
        """Where the table ``name`` lies; ``"."``, which no bucket can be, for a name that lacks a part.

        Raises:
            BucketError: ``ILLEGAL_CHAR``; no directory can have that name.
        """
        table, _ = self.parts(name)
        return self.fill(self.template, name) if table else "."

    def fill(self, text: str, name: str) -> str:
        """``text`` with the values of its placeholders, as they are in paths."""
        table, schema = map(escape, self.parts(name))
        return _filled(text, table, schema)

    def plain(self, text: str, name: str) -> str:
        """``text`` with the values of its placeholders, as they are."""
        return _filled(text, *self.parts(name))

    def name_of(self, bucket: str) -> str | None:
        """Whose directory ``bucket`` is, or is below; ``None`` if it is no table's."""
        levels = bucket.split("/")
        found = [pattern.fullmatch(text) for pattern, text in zip(self._levels, levels, strict=False)]
        if len(levels) < self.depth or not all(found):
            return None
        values = {name: unescape(text) for one in found if one for name, text in one.groupdict().items()}
        return f"{values['schema']}.{values['table']}" if "schema" in values else values["table"]

    def inside(self, bucket: str) -> str:
        """The bucket below the directory of its table."""
        return "/".join(bucket.split("/")[self.depth :])

    def parts(self, name: str) -> tuple[str, str]:
        """Table and schema of ``name``; the table is ``""`` if it lacks one of the two that are needed."""
        if SCHEMA not in self.template:
            return name, ""
        schema, _, table = name.partition(".")
        return (table, schema) if schema else ("", "")


def check_text(text: str, *, of: str) -> str:
    """``text`` if its placeholders are known.

    Raises:
        ConfigError: ``BAD_VALUE``.
    """
    _placeholders(instance_of(text, str, name=of), of=of)
    return text


def _filled(text: str, table: str, schema: str) -> str:
    """In one step: a value may hold what looks like a placeholder."""
    values = {TABLE: table, SCHEMA: schema}
    return _PLACEHOLDER.sub(lambda found: values.get(found[0], found[0]), text)


def _placeholders(text: str, *, of: str) -> list[str]:
    found = [one[0] for one in _PLACEHOLDER.finditer(text)]
    for one in found:
        if one not in _KNOWN:
            raise ConfigError(f"{of} has {one[:40]!r}; known are {', '.join(_KNOWN)}", code="BAD_VALUE")
    return found


def _pattern(level: str) -> re.Pattern[str]:
    text = re.escape(level)
    for placeholder, name in ((TABLE, "table"), (SCHEMA, "schema")):
        text = text.replace(re.escape(placeholder), f"(?P<{name}>.+)")
    return re.compile(text, re.DOTALL)
