"""``python -m filesink``, and the console script of the same name."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say what it needs."""
    try:
        from filesink.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in {"typer", "rich", "click"}:
            raise
        print(f"filesink: the command line needs {error.name}; pip install 'filesink[cli]'", file=sys.stderr)  # noqa: T201 - a program
        sys.exit(3)
    app()


if __name__ == "__main__":
    main()
