"""Commands that change something print what they would do, and do it with ``--yes`` only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from filesink import GlueCatalog, HiveMetastore, Metastore
from filesink.cli.call import Call
from filesink.cli.tables import show_table
from filesink.cli.text import plain
from filesink.errors import ConfigError
from filesink.operations.path_tiers import Announcing

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do it. Without it, only the plan is shown.")]
MetastoreOption = Annotated[
    str | None,
    typer.Option("--metastore", metavar="URI", help="thrift://host:9083 of a Hive metastore, or glue."),
]
TableOption = Annotated[
    str | None, typer.Option("--table", metavar="DATABASE.TABLE", help="The table of --metastore.")
]
SuccessOption = Annotated[
    str | None,
    typer.Option("--success-file", metavar="NAME", help="Put such a file into each directory, as _SUCCESS."),
]


@dataclass(frozen=True, kw_only=True)
class Planned:
    """What a command would do.

    Attributes:
        title: a sentence about all of it.
        columns, rows: of a table that has the details.
        is_empty: whether there is nothing to do.
        value: the plan for machines.
        nothing: what is told if there is nothing to do.
    """

    title: str
    value: Any
    is_empty: bool
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    nothing: str = "There is nothing to do."


_SHOWN = 40  # rows of a plan


def carry_out(
    call: Call, planned: Planned, *, yes: bool, do: Callable[[], Any], told: Callable[[Any], str]
) -> None:
    """Show the plan; with ``yes``, do it and tell what was done."""
    is_done = yes and not planned.is_empty
    if not call.json:
        call.line(planned.title)
        if planned.rows:
            show_table(call, planned.columns, planned.rows[:_SHOWN])
            if len(planned.rows) > _SHOWN:
                call.line(f"and {len(planned.rows) - _SHOWN:,} more; --json has all")
    result = do() if is_done else None
    if call.json:
        call.show({"plan": plain(planned.value), "done": is_done, "result": plain(result)})
    elif is_done:
        call.line(f"Done: {told(result)}.")
    else:
        again = "Nothing was done. Call it again with --yes to do that."
        call.line(planned.nothing if planned.is_empty else again)


def announcing(metastore: str | None, table: str | None, success_file: str | None) -> Announcing:
    """Who is told of partitions, as options say it.

    Raises:
        ConfigError: ``CONFLICT``, ``METASTORE_URI``; or the client of the metastore is missing.
    """
    return Announcing(
        metastore=None if metastore is None else _metastore(metastore),
        table=table or "",
        success_file=success_file or "",
    )


def _metastore(uri: str) -> Metastore:
    if "://" not in uri and uri != "glue":
        raise ConfigError(
            f"--metastore takes thrift://host:9083, of a Hive metastore, or glue; got {uri!r}",
            code="METASTORE_URI",
        )
    return GlueCatalog() if uri == "glue" else HiveMetastore(uri)
