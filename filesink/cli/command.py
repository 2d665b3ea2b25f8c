"""How a function becomes a command: the options that all of them have, and how they end.

A command is a function of a ``Call`` and of arguments of its own, which it declares as Typer reads them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from filesink.cli.call import Call, ending
from filesink.cli.storage import storage_options
from filesink.errors import ConfigError

PathArgument = Annotated[
    str, typer.Argument(metavar="PATH", help="Base path of the sinks: a directory, s3://…, az://…, hdfs://…")
]
UidOption = Annotated[
    str | None, typer.Option("--uid", metavar="UID", help="One sink of the path, by its uid or its id.")
]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON: an object, or one in each line of a list.")]
_Given = Annotated[
    list[str] | None,
    typer.Option("--storage-option", metavar="NAME=VALUE", help="Option of the store; may be repeated."),
]
_File = Annotated[
    Path | None,
    typer.Option(
        "--storage-options",
        metavar="FILE",
        envvar="FILESINK_STORAGE_OPTIONS",
        help="TOML file with options of the store.",
    ),
]
_Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
_COMMON: dict[str, Any] = {"as_json": _Json, "given": _Given, "file": _File, "debug": _Debug}
_DEFAULTS: dict[str, Any] = {"as_json": False, "given": None, "file": None, "debug": False}


def add(app: typer.Typer, function: Callable[..., None], *, name: str) -> None:
    """Make ``function`` the command ``name``; its docstring is the help."""

    def run(**arguments: Any) -> None:
        common = {option: arguments.pop(option) for option in _COMMON}
        plain = Call(json=common["as_json"], debug=common["debug"])
        with ending(plain):
            options = storage_options(common["file"], common["given"] or ())
            function(Call(json=plain.json, debug=plain.debug, options=options), **arguments)

    hints = get_type_hints(function, include_extras=True)
    own = list(inspect.signature(function).parameters.values())[1:]
    parameters = [
        one.replace(annotation=hints[one.name], kind=inspect.Parameter.KEYWORD_ONLY) for one in own
    ] + [
        inspect.Parameter(
            option, inspect.Parameter.KEYWORD_ONLY, default=_DEFAULTS[option], annotation=annotation
        )
        for option, annotation in _COMMON.items()
    ]
    run.__doc__, run.__name__ = function.__doc__, function.__name__
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # what inspect reads first
    app.command(name)(run)


def whole_number(value: int, *, name: str) -> int:
    """``value`` if it is 0 or more.

    Raises:
        ConfigError: ``BAD_VALUE``.
    """
    if value < 0:
        raise ConfigError(f"{name} must be 0 or more, got {value}", code="BAD_VALUE")
    return value
