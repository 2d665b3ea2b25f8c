"""All commands as one program: what becomes of output that nobody takes, and of what was typed wrong.

Rules:
1. Who reads the output may close it, as ``head`` does: then the program ends as one that dies of it would.
2. Output that cannot be written was not seen: that is told, and is no success.
3. With ``--json`` a wrong use is an object, too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from typing import Any, Final

import typer
from typer.core import TyperGroup

from filesink.cli.call import Call, Exit, OutputError
from filesink.errors import FilesinkError

_GIVEN: Final = "filesink.given"  # in the context: what was typed
#: Of click, or of typer's own copy of it: the name of that module differs between releases.
_UsageError: Final[Any] = typer.BadParameter.__mro__[1]


class Program(TyperGroup):
    """The group of all commands; typer calls both methods, the first one for ``--help``, too."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Read options; see ``click.Command.make_context``."""
        given = tuple(args)  # the parser takes them out
        with _told(given):
            if sys.stdout is None:  # as the program began
                raise OutputError(0, "it is closed")
            context = super().make_context(info_name, args, parent, **extra)
        context.meta[_GIVEN] = given
        return context

    def invoke(self, ctx: Any) -> Any:
        """Run a command; see ``click.Command.invoke``."""
        with _told(ctx.meta[_GIVEN]):
            return super().invoke(ctx)


@contextmanager
def _told(given: Sequence[str]) -> Iterator[None]:
    """Around all that prints. Errors of a command have become sentences further in, see ``call.ending``."""
    try:
        yield
    except BrokenPipeError:
        sys.stdout = StringIO()  # nor is it tried once more when the interpreter ends
        raise typer.Exit(int(Exit.NOBODY_READS)) from None
    except _UsageError as error:
        if "--json" not in given:
            raise
        with _told(()):
            Call(json=True).show({"error": error.format_message(), "code": "USAGE"})
        raise typer.Exit(int(Exit.USAGE)) from None
    except OSError as error:
        if isinstance(error, FilesinkError) or "--debug" in given:
            raise
        sys.stdout = StringIO()
        Call(json=False).note(f"filesink: the output cannot be written: {error.strerror} [NOT_WRITTEN]")
        raise typer.Exit(int(Exit.COULD_NOT_LOOK)) from None
