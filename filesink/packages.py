"""Whether Python finds the packages that were installed with this one, or a stranger's of the same name.

``formats`` and ``compaction`` are common names. A ``formats.py`` beside a program, or in the directory of a
Spark worker, comes first on the module path, and what fails then is an import somewhere deep in here.

Rules:
1. Asked before anything of these packages is imported, so that the code of a stranger is not run by us.
2. By Python's own search of its path, which it has to do anyway; no other look at the file system.
"""

from __future__ import annotations

from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path

from filesink.errors import ShadowedError

_HOME = Path(__file__).parents[1]  # a directory, or a zip file


def refuse_shadows(*names: str) -> None:
    """Raise if another package than the one beside this is found under one of ``names``.

    One that was not installed beside this package cannot be shadowed, and is not asked for.

    Raises:
        ShadowedError: ``SHADOWED``; names the file that is found and the one that should be.
    """
    for name in names:
        ours = PathFinder.find_spec(name, [str(_HOME)])
        stranger = None if ours is None else _stranger(name, ours)
        if ours is not None and stranger is not None:
            raise ShadowedError(
                f"'import {name}' finds {stranger}, not what filesink was installed with, {_place(ours)}: "
                "rename yours, or run from another directory, so that filesink's is first on sys.path",
                code="SHADOWED",
            )


def _stranger(name: str, ours: ModuleSpec) -> str | None:
    """What an import gives, or has given, in place of ``ours``."""
    try:
        found = find_spec(name)
    except ValueError:  # it is in ``sys.modules`` without a word on where it came from
        return "a module that was made by hand"
    if found is None or _is_same(found, ours):
        return None  # where none is found, the import says so itself
    return _place(found)


def _is_same(one: ModuleSpec, other: ModuleSpec) -> bool:
    """Whether two searches have led to one file, be it through symbolic links."""
    places = {one.origin, other.origin}
    return None not in places and len({Path(str(place)).resolve() for place in places}) == 1


def _place(spec: ModuleSpec) -> str:
    """The file, in quotes; of a package without one, its directory."""
    return repr(spec.origin or next(iter(spec.submodule_search_locations or ()), "no file"))
