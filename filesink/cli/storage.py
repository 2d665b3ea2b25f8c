"""Storage options of a command line: ``name=value``, and a file, so that no list of processes has secrets."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from filesink.errors import ConfigError

_WORDS = {"true": True, "false": False}


def storage_options(file: Path | None, given: Sequence[str]) -> dict[str, Any]:
    """What the file says, and above it what was ``given``.

    Raises:
        ConfigError: ``BAD_VALUE``; no value is in the message.
    """
    options = {} if file is None else _read(file)
    for text in given:
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            raise ConfigError(
                "--storage-option takes NAME=VALUE, such as endpoint_url=http://localhost:9000; a secret is "
                "better in a file, see --storage-options",
                code="BAD_VALUE",
            )
        options[name.strip()] = _value(value)
    return options


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"the file of --storage-options cannot be read: {error.strerror}", code="BAD_VALUE"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        # The parser's message repeats the line, which may hold a secret.
        raise ConfigError(
            'the file of --storage-options is no TOML; write a line such as key = "…" for each option',
            code="BAD_VALUE",
        ) from None


def _value(text: str) -> Any:
    """Numbers and truth values of options are no text."""
    if text in _WORDS:
        return _WORDS[text]
    return (
        int(text) if text.isascii() and text.isdigit() and len(text) < 19 and text == str(int(text)) else text
    )
