"""What a directory lists: to readers, and to whoever looks at hidden files, too."""

from __future__ import annotations

from property_tests.simulation.world.nodes import Directory, Inode

_DEAD_LETTERS = ("_dead_letters/", "_dead_letters_no_bucket/")


def is_hidden(path: str) -> bool:
    """Whether readers skip a path; those of dead letters look below their directory."""
    for directory in _DEAD_LETTERS:
        path = path.removeprefix(directory)
    return path[0] in "._" or "/." in path or "/_" in path


def visible_files(root: Directory, prefix: str = "") -> dict[str, Inode]:
    """What a reader lists: every file below, but for names that begin with ``.`` or ``_``."""
    found: dict[str, Inode] = {}
    for name, node in root.entries.items():
        if name[0] in "._" and f"{prefix}{name}/" not in _DEAD_LETTERS:
            continue
        if isinstance(node, Directory):
            found |= visible_files(node, f"{prefix}{name}/")
        else:
            found[prefix + name] = node
    return found


def all_files(root: Directory, prefix: str = "") -> dict[str, Inode]:
    """Every file below, hidden ones too."""
    found: dict[str, Inode] = {}
    for name, node in root.entries.items():
        if isinstance(node, Directory):
            found |= all_files(node, f"{prefix}{name}/")
        else:
            found[prefix + name] = node
    return found
